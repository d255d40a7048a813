"""Moves that are killed, run out of disk, or have writers beside them: nothing is lost."""

import asyncio
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument
from conspectus.bootstrap.store_address import RECORDS
from conspectus.bootstrap.transfer import move
from conspectus.records.core.database import migrate_if_needed, transact
from conspectus.records.transfer.target import NOT_MOVED
from conspectus.settings import Settings
from tests.filled_databases import contents, database, fill
from tests.support.postgres_server import PostgresProcess

MOVER = "tests.faults.mover"
SETTINGS = Settings(embedder="none", lock_timeout_seconds=20)
KILLS = {"folder": 5, "postgresql": 3}
ASIDE = frozenset({"job_secrets", "job_files"})


def run_mover(
    source: Path | str, target: Path | str, kills: int = 0, *, largest: int | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", MOVER, str(source), str(target), "7", str(kills)]
    bound = [] if largest is None else [str(largest)]
    return subprocess.run(command + bound, capture_output=True, text=True, check=False)


def create_full_store(folder: Path, rows: int) -> Path:
    folder.mkdir()
    with database(str(folder / RECORDS)) as records:
        migrate_if_needed(records)
        with records.begin_migration() as connection:
            fill(connection, rows=rows)
    return folder


def read_all_rows(address: str) -> object:
    with database(address) as records:
        return transact(
            records, records.reading, lambda connection: contents(connection, without=NOT_MOVED | ASIDE)
        )


@pytest.mark.parametrize("kind", [pytest.param("folder", marks=pytest.mark.slow), "postgresql"])
def test_a_move_that_is_killed_again_and_again_goes_on(
    tmp_path: Path, postgres: PostgresProcess, kind: str
) -> None:
    source = create_full_store(tmp_path / "source", 30)
    with postgres.fresh(empty=True) as url:
        target = url if kind == "postgresql" else str(tmp_path / "target")
        outcome = run_mover(source, target, KILLS[kind])
        assert outcome.returncode == 0, outcome.stderr
        report = json.loads(outcome.stdout)
        assert report["ends"] == [-signal.SIGALRM] * KILLS[kind]
        assert report["resumed"]
        address = url if kind == "postgresql" else str(tmp_path / "target" / RECORDS)
        assert read_all_rows(address) == read_all_rows(str(source / RECORDS))


def test_without_room_the_source_is_untouched_and_the_reason_said(tmp_path: Path) -> None:
    source = create_full_store(tmp_path / "source", 60)
    before = read_all_rows(str(source / RECORDS))
    failed = run_mover(source, tmp_path / "target", largest=700_000)
    assert failed.returncode == 1
    assert "StorageError" in failed.stderr
    assert read_all_rows(str(source / RECORDS)) == before
    assert run_mover(source, tmp_path / "target").returncode == 0
    assert read_all_rows(str(tmp_path / "target" / RECORDS)) == before


async def test_nothing_acknowledged_before_the_moment_is_missing(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    acknowledged: dict[str, datetime] = {}
    stop = asyncio.Event()
    async with conspectus.open(source, settings=SETTINGS) as engine:
        for number in range(30):
            await engine.add(NewDocument(f"text {number}. " * 50, key=f"k{number}"))

        async def write() -> None:
            number = 30
            while not stop.is_set():
                await engine.add(NewDocument(f"text {number}", key=f"k{number}"))
                acknowledged[f"k{number}"] = datetime.now(UTC)
                await engine.add(NewDocument(f"changed at {number}", key=f"k{number % 30}"))
                number += 1

        writing = asyncio.create_task(write())
        receipt = await asyncio.to_thread(move, source, target, settings=SETTINGS)
        stop.set()
        await writing
    before = {key for key, at in acknowledged.items() if at < receipt.moved.moment}
    async with conspectus.open(target, settings=SETTINGS) as engine:
        documents = (await engine.documents.list(limit=1_000)).documents
        assert before <= {document.key for document in documents}
        assert (await engine.maintenance.check()).clean
    assert before
