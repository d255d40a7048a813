"""A full disk under a folder or under PostgreSQL: it is said, nothing is half written, and room is enough."""

import errno
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import StorageError
from conspectus.model.jobs import Upload
from conspectus.testing.embedders import HashedEmbedder
from tests.support.postgres_server import TEMPLATE, PostgresProcess

SETTINGS = replace(
    Settings(), log_level="critical", lock_timeout_seconds=5, database_connections=4, tail_chunks=40
)
BLOCK = 1 << 12
BATCH = 20
FULL = "no space left; nothing was stored: free some space"


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A disk of its own. Skips the test where nobody may have one."""
    folder.mkdir()
    size = f"size={megabytes}m"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("only an administrator may mount a disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill_disk(disk: Path) -> Path:
    """A file that leaves no room for another."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(BLOCK)):
                pass
        except OSError as fault:
            assert fault.errno == errno.ENOSPC
    return ballast


def build_batch(number: int) -> list[NewDocument]:
    return [
        NewDocument(f"tide {number} of {position} " + "comes in " * 200, key=f"{number}-{position}")
        for position in range(BATCH)
    ]


async def write_until_full(engine: Engine) -> int:
    """How many batches were acknowledged before the first that was refused."""
    for number in range(200):
        try:
            await engine.add(build_batch(number))
        except StorageError as fault:
            assert FULL in str(fault)
            return number
    raise AssertionError("the disk never was full")


async def require_complete(engine: Engine, batches: int) -> None:
    """All that was acknowledged is there and is found, and nothing else."""
    keys = {document.key for document in (await engine.documents.list(limit=1000)).documents}
    assert keys == {"first"} | {document.key for number in range(batches) for document in build_batch(number)}
    assert (await engine.retrieve("ferry", retrievers=["keyword"])).hits[0].chunk.text == "a ferry"
    assert (await engine.maintenance.check()).records == ()


async def require_recovery(engine: Engine, disk: Path) -> None:
    """Full, then not full any more, without a restart in between."""
    await engine.add(NewDocument("a ferry", key="first"), wait=True)
    ballast = fill_disk(disk)
    stored = await write_until_full(engine)
    with pytest.raises(StorageError, match="space left"):
        await engine.jobs.ingest_files([Upload("a.md", b"# Ferries\n" * 100_000)])
    await require_complete(engine, stored)
    ballast.unlink()
    await engine.add(build_batch(stored))
    await engine.maintenance.resume()
    await engine.documents.wait_until_embedded()
    await require_complete(engine, stored + 1)
    assert (await engine.maintenance.check()).clean
    assert (await engine.jobs.list()).jobs == ()
    assert {document.status for document in (await engine.documents.list(limit=1000)).documents} == {
        "embedded"
    }


async def test_a_folder_without_room_goes_on_when_there_is_some(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6) as disk:
        async with conspectus.open(disk / "store", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            await require_recovery(engine, disk)
            assert not list((disk / "store").glob("uploads/*"))


@pytest.fixture
def small_database(postgres: PostgresProcess) -> Iterator[tuple[str, Path]]:
    """The URL of a database on a disk of its own, and the disk."""
    with small_disk(postgres.folder.parent / "small", 32) as disk:
        tablespace = disk / "tables"
        tablespace.mkdir()
        shutil.chown(disk, postgres.folder.owner(), postgres.folder.group())
        shutil.chown(tablespace, postgres.folder.owner(), postgres.folder.group())
        tablespace.chmod(0o700)
        postgres.run(f"CREATE TABLESPACE small LOCATION '{tablespace}'")
        postgres.run(f"CREATE DATABASE small TEMPLATE {TEMPLATE} TABLESPACE small")
        yield postgres.url("small"), disk
        (disk / "ballast").unlink(missing_ok=True)
        postgres.run("DROP DATABASE small WITH (FORCE)")
        postgres.run("DROP TABLESPACE small")


async def test_a_database_without_room_goes_on_when_there_is_some(
    small_database: tuple[str, Path], tmp_path: Path
) -> None:
    url, disk = small_database
    settings = replace(SETTINGS, cache=str(tmp_path))
    async with conspectus.open(url, settings=settings, embedder=HashedEmbedder()) as engine:
        await require_recovery(engine, disk)
