"""Backups: whole or not at all, of a store that is used; nothing of a hostile file leaves its place."""

import asyncio
import json
import random
import shutil
import sqlite3
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.filled_databases import database, keep_job

import conspectus
from conspectus import NewDocument
from conspectus.bootstrap.store_address import RECORDS
from conspectus.bootstrap.transfer import back_up, check_backup, restore
from conspectus.errors import Conflict, ConspectusError, InvalidInput, NotFound, StorageError, UnreadableFile
from conspectus.records.core.database import transact
from conspectus.settings import Settings

SETTINGS = Settings(embedder="none", lock_timeout_seconds=20)
MANIFEST = "manifest.json"


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    async with conspectus.open(folder, settings=SETTINGS) as engine:
        await engine.add([NewDocument(f"note {n} about printers", key=f"k{n}") for n in range(20)])
    with database(str(folder / RECORDS)) as opened:
        await asyncio.to_thread(
            transact, opened, opened.writing, lambda connection: keep_job(connection, "job-1", "running")
        )
    (folder / "uploads" / "job-1").mkdir(parents=True)
    (folder / "uploads" / "job-1" / "0").write_bytes(bytes(range(256)) * 50)
    return folder


@pytest.fixture
def archive(store: Path, tmp_path: Path) -> Path:
    back_up(store, tmp_path / "a.zip", settings=SETTINGS)
    return tmp_path / "a.zip"


async def test_a_backup_restores_to_the_same_store(store: Path, archive: Path, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    restore(archive, restored, settings=SETTINGS)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert stat.S_IMODE((restored / "uploads").stat().st_mode) == 0o700
    assert (restored / "uploads" / "job-1" / "0").read_bytes() == bytes(range(256)) * 50
    assert {path.name for path in restored.iterdir()} == {"records.sqlite", "uploads"}
    pages = []
    for folder in (store, restored):
        async with conspectus.open(folder, settings=SETTINGS) as engine:
            assert (await engine.maintenance.check()).clean
            pages.append(await engine.documents.list(limit=100))
    assert pages[0] == pages[1]


async def test_a_store_at_work_is_backed_up_whole(tmp_path: Path) -> None:
    stop = asyncio.Event()
    async with conspectus.open(tmp_path / "store", settings=SETTINGS) as engine:

        async def write() -> None:
            number = 0
            while not stop.is_set():
                await engine.add([NewDocument(f"text {number} " * 99, key=f"k{number % 9}") for _ in "a"])
                number += 1

        writing = asyncio.create_task(write())
        receipt = await asyncio.to_thread(
            back_up, tmp_path / "store", tmp_path / "b.zip", settings=SETTINGS, progress=lambda *_: None
        )
        stop.set()
        await writing
    restore(tmp_path / "b.zip", tmp_path / "restored", settings=SETTINGS)
    async with conspectus.open(tmp_path / "restored", settings=SETTINGS) as engine:
        assert (await engine.maintenance.check()).clean
        assert (await engine.maintenance.status()).path == str(tmp_path / "restored")
    assert receipt.manifest.tables["documents"].rows <= 9


def test_what_cannot_be_backed_up(store: Path, archive: Path, tmp_path: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(Conflict):
        back_up(store, archive, settings=SETTINGS)
    with pytest.raises(NotFound):
        back_up(tmp_path / "nothing", tmp_path / "x.zip", settings=SETTINGS)
    with pytest.raises(InvalidInput, match=r"postgres_backup\.sh"):
        back_up("postgresql://localhost/x", tmp_path / "x.zip", settings=SETTINGS)
    with pytest.raises(StorageError):
        back_up(store, tmp_path / "no folder" / "x.zip", settings=SETTINGS)
    assert archive.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "store"]


def test_a_damaged_store_gives_no_backup(store: Path, tmp_path: Path) -> None:
    with sqlite3.connect(store / "records.sqlite") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM collections")
    connection.close()
    with pytest.raises(StorageError, match="damaged"):
        back_up(store, tmp_path / "x.zip", settings=SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("offset", [2**63, 2**64 - 1])
def test_a_backup_whose_parts_are_said_to_lie_nowhere_is_damaged(archive: Path, offset: int) -> None:
    with zipfile.ZipFile(archive, "a") as zipped:
        zipped.infolist()[0].header_offset = offset
        zipped.comment = b"has the list of parts written again"
    with pytest.raises(UnreadableFile, match="is damaged"):
        check_backup(archive, settings=SETTINGS)


def test_a_database_is_no_folder_to_restore_to(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="migrate"):
        restore(archive, Path("postgresql://localhost/x"), settings=SETTINGS)
    assert not (tmp_path / "postgresql:").exists()


def test_only_an_empty_folder_is_restored_to(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".restoring").mkdir()
    (folder / "letter").write_text("dear")
    with pytest.raises(Conflict, match="letter"):
        restore(archive, folder, settings=SETTINGS)
    assert (folder / "letter").read_text() == "dear"
    (folder / "letter").unlink()
    restore(archive, folder, settings=SETTINGS)
    with pytest.raises(Conflict):
        restore(archive, folder, settings=SETTINGS)


def test_more_than_the_limit_is_not_unpacked(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(ConspectusError, match="limit"):
        restore(archive, tmp_path / "r", settings=replace(SETTINGS, max_restored_bytes=1_000))
    assert not (tmp_path / "r").exists()


def rewrite(archive: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """The archive with other members or another manifest."""
    with zipfile.ZipFile(archive) as original:
        members = {name: original.read(name) for name in original.namelist()}
    manifest = json.loads(members.pop(MANIFEST))
    change(members, manifest)
    hostile = archive.with_name("hostile.zip")
    with zipfile.ZipFile(hostile, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
        target.writestr(MANIFEST, json.dumps(manifest))
    return hostile


def with_member(name: str, content: bytes) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
        members[name] = content
        manifest["members"][name] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}

    return change


def with_manifest(**facts: object) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    return lambda _, manifest: manifest.update(facts)


def miscount_rows(_: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["tables"]["documents"]["rows"] += 1


def with_schema(*statements: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    def change(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(members["records.sqlite"])
        for statement in statements:
            connection.execute(statement)
        with_member("records.sqlite", connection.serialize())(members, manifest)
        connection.close()

    return change


def with_raw_schema(statement: str, name: str) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    """With a statement for a name as SQLite itself would never write it down."""
    written = f"UPDATE sqlite_master SET sql = '{statement}' WHERE name = '{name}'"
    return with_schema("PRAGMA writable_schema = ON", written)


def list_manifest_as_member(members: dict[str, bytes], manifest: dict[str, Any]) -> None:
    manifest["members"][MANIFEST] = {"bytes": 1, "sha256": ""}


HOSTILE = {
    "a path out of the folder": with_member("../../escaped", b"x"),
    "an absolute path": with_member("/tmp/conspectus-escaped", b"x"),
    "a path in a place of ours": with_member("uploads/../../escaped", b"x"),
    "a file of another name": with_member("index/segment", b"x"),
    "no database": with_member("records.sqlite", b"nothing of a database" * 1000),
    "an empty database": with_member("records.sqlite", b""),
    "a trigger": with_schema("CREATE TRIGGER harm AFTER INSERT ON documents BEGIN DELETE FROM users; END"),
    "a view": with_schema("CREATE VIEW harm AS SELECT zeroblob(900000000)"),
    "a view in the place of a table": with_schema(
        "DROP TABLE allowances", "CREATE VIEW allowances AS SELECT 1 AS name, 2 AS minute, 3 AS taken"
    ),
    "a generated column": with_schema(
        "DROP TABLE allowances",
        "CREATE TABLE allowances (name VARCHAR, taken AS (zeroblob(90000)))",
        "INSERT INTO allowances VALUES ('a')",
    ),
    "a check that calls": with_schema("CREATE TABLE job (id INTEGER CHECK (load_extension('x') IS NULL))"),
    "a default that calls": with_schema("ALTER TABLE users ADD COLUMN hash BLOB DEFAULT (randomblob(9))"),
    "an index that calls": with_schema("CREATE INDEX ix_keys_kind ON keys (zeroblob(90000))"),
    "a virtual table": with_schema("CREATE VIRTUAL TABLE harm USING fts5(text)"),
    "a virtual table in disguise": with_raw_schema(
        "CREATE/**/VIRTUAL TABLE members USING fts5(x)", "members"
    ),
    "a schema that cannot be read": with_raw_schema("CREATE TABLE members (", "members"),
    "a table with other rows": miscount_rows,
    "another format": with_manifest(format=2),
    "no members": with_manifest(members={}),
    "members that are none": with_manifest(members=[1, 2]),
    "the manifest as a member": list_manifest_as_member,
    "a manifest of many levels": with_manifest(tables=json.loads("[" * 900 + "]" * 900)),
    "more rows than any number": with_manifest(tables={"documents": {"rows": float("inf"), "hash": ""}}),
    "rows that are no number": with_manifest(tables={"documents": {"rows": float("nan"), "hash": ""}}),
    "a moment that steers a terminal": with_manifest(moment="2026-01-31 \x1b]0;mine\x07"),
    "a moment that is none": with_manifest(moment=None),
    "a negative size": with_manifest(members={"records.sqlite": {"bytes": -1, "sha256": ""}}),
    "a newer version": with_manifest(version="9999"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_backup_is_refused_and_nothing_is_left(
    archive: Path, tmp_path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]
) -> None:
    hostile = rewrite(archive, change)
    before = sorted(tmp_path.rglob("*"))
    for refused in (lambda: restore(hostile, tmp_path / "r", settings=SETTINGS),):
        with pytest.raises((UnreadableFile, StorageError)):
            refused()
    with pytest.raises((UnreadableFile, StorageError)):
        check_backup(hostile, settings=SETTINGS)
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/conspectus-escaped").exists()


def test_a_link_in_a_backup_is_refused(archive: Path, tmp_path: Path) -> None:
    hostile = archive.with_name("link.zip")
    with zipfile.ZipFile(archive) as original, zipfile.ZipFile(hostile, "w") as target:
        for member in original.infolist():
            if member.filename.startswith("uploads"):
                member.external_attr = (stat.S_IFLNK | 0o777) << 16
            target.writestr(member, original.read(member.filename))
    with pytest.raises(UnreadableFile, match="not a plain file"):
        restore(hostile, tmp_path / "r", settings=SETTINGS)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_packed_as_no_backup_is_is_not_unpacked(archive: Path, tmp_path: Path, method: int) -> None:
    hostile = archive.with_name("packed.zip")
    with zipfile.ZipFile(archive) as original, zipfile.ZipFile(hostile, "w") as target:
        for member in original.infolist():
            target.writestr(
                member, original.read(member.filename), method if member.filename == MANIFEST else None
            )
    with pytest.raises(UnreadableFile, match="a compression that no backup has"):
        check_backup(hostile, settings=SETTINGS)


def test_a_manifest_that_is_encrypted_is_refused(archive: Path) -> None:
    hostile = bytearray(archive.read_bytes())
    for sign, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        hostile[hostile.rindex(sign) + offset] |= 1
    archive.write_bytes(hostile)
    with pytest.raises(UnreadableFile, match="not a plain file"):
        check_backup(archive, settings=SETTINGS)


def test_a_member_that_is_there_twice_is_refused(archive: Path) -> None:
    with zipfile.ZipFile(archive, "a") as zipped, pytest.warns(UserWarning, match="Duplicate"):
        zipped.writestr("uploads/job-1/0", b"x")
    with pytest.raises(UnreadableFile, match="do not match its manifest"):
        check_backup(archive, settings=SETTINGS)


def test_every_cut_and_most_flipped_bits_are_found(archive: Path, tmp_path: Path) -> None:
    content, chance = archive.read_bytes(), random.Random(5)
    broken = tmp_path / "broken.zip"
    for _ in range(40):
        broken.write_bytes(content[: chance.randrange(len(content))])
        with pytest.raises(UnreadableFile):
            restore(broken, tmp_path / "r", settings=SETTINGS)
    for _ in range(80):
        flipped = bytearray(content)
        flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        broken.write_bytes(flipped)
        shutil.rmtree(tmp_path / "r", ignore_errors=True)
        try:
            receipt = restore(broken, tmp_path / "r", settings=SETTINGS)
        except (UnreadableFile, StorageError):
            assert not (tmp_path / "r").exists()
        else:
            assert receipt.manifest.members == check_backup(archive, settings=SETTINGS).manifest.members
