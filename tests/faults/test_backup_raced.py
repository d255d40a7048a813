"""Backups of which a file goes away, or comes, in the very moment before it gets a name."""

import errno
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conspectus import NewDocument, sync
from conspectus.bootstrap.store_address import RECORDS
from conspectus.bootstrap.transfer import back_up, check_backup
from conspectus.errors import Conflict
from conspectus.records.core.database import transact
from conspectus.settings import Settings
from tests.filled_databases import database, keep_job

SETTINGS = Settings(embedder="none", lock_timeout_seconds=20)
Act = Callable[[Path, Path], None]


@cache
def audit_listeners() -> list[Callable[[str, Any], None]]:
    """Who is told of what Python is about to do, which no one can stop telling once it began."""
    listeners: list[Callable[[str, Any], None]] = []

    def notify(event: str, arguments: Any) -> None:
        for listener in listeners:
            listener(event, arguments)

    sys.addaudithook(notify)
    return listeners


@contextmanager
def before_naming(act: Act) -> Iterator[None]:
    """Do something before each file gets another name, or one more; what it raises is raised instead."""

    def heard(event: str, arguments: Any) -> None:
        if event in {"os.link", "os.rename"}:
            act(Path(arguments[0]), Path(arguments[1]))

    audit_listeners().append(heard)
    try:
        yield
    finally:
        audit_listeners().remove(heard)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One with the files of a job that runs, and of one that has ended."""
    folder = tmp_path / "store"
    with sync.open(folder, settings=SETTINGS) as engine:
        engine.add(NewDocument("a note about printers"))
    with database(str(folder / RECORDS)) as records_database:
        for job, state in (("ended", "succeeded"), ("running", "running")):
            transact(
                records_database,
                records_database.writing,
                lambda connection, job=job, state=state: keep_job(connection, job, state),
            )
            (folder / "uploads" / job).mkdir(parents=True)
            (folder / "uploads" / job / "0").write_bytes(b"text")
    return folder


@pytest.mark.parametrize("is_gone", [False, True])
def test_files_of_jobs_that_have_ended_are_left_out_and_may_go_away(
    store: Path, tmp_path: Path, is_gone: bool
) -> None:
    def drop_folder(file: Path, name: Path) -> None:
        if is_gone and file.parent.name == "ended":
            shutil.rmtree(file.parent)

    with before_naming(drop_folder):
        back_up(store, tmp_path / "a.zip", settings=SETTINGS)
    members = check_backup(tmp_path / "a.zip", settings=SETTINGS).manifest.members
    assert set(members) == {"records.sqlite", "uploads/running/0"}
    assert (store / "uploads" / "ended").exists() != is_gone


def test_a_backup_is_made_where_files_have_one_name_only(store: Path, tmp_path: Path) -> None:
    def refuse_link(file: Path, name: Path) -> None:
        if not name.exists():
            raise PermissionError(errno.EPERM, "no links here")

    with before_naming(refuse_link):
        back_up(store, tmp_path / "a.zip", settings=SETTINGS)
    assert stat.S_IMODE((tmp_path / "a.zip").stat().st_mode) == 0o600
    members = check_backup(tmp_path / "a.zip", settings=SETTINGS).manifest.members
    assert set(members) == {"records.sqlite", "uploads/running/0"}


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_appears_last_of_all_is_not_replaced(
    store: Path, tmp_path: Path, has_links: bool
) -> None:
    target = tmp_path / "a.zip"

    def create_target(file: Path, name: Path) -> None:
        if name == target:
            name.write_bytes(b"mine")
        if not has_links:
            raise PermissionError(errno.EPERM, "no links here")

    with before_naming(create_target), pytest.raises(Conflict, match=r"a\.zip"):
        back_up(store, target, settings=SETTINGS)
    assert target.read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "store"]
