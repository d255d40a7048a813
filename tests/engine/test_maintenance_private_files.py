"""No other account can read what a store writes, whatever the umask."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import conspectus
from conspectus import NewDocument
from conspectus.bootstrap.transfer import back_up, restore
from conspectus.engine import Engine
from conspectus.index.segments import ivf
from conspectus.model.jobs import Upload
from conspectus.settings import Settings

SETTINGS = Settings(embedder="none", job_backoff_ms=1)


@pytest.fixture(params=[0o022, 0o000], ids=["022", "000"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """What of a folder another account may read, write or enter, with its mode."""
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    return {str(path): stat.filemode(mode) for path, mode in modes.items() if mode & 0o077}


def make_repository(folder: Path) -> None:
    """A Git repository with one page."""
    folder.mkdir()
    (folder / "page.md").write_text("# Page\n\nScanners are upstairs.\n", encoding="utf-8")
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    for arguments in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "A page")):
        subprocess.run(["git", "-C", str(folder), *named, *arguments], check=True)


async def work_with(engine: Engine, address: Path) -> None:
    """Use what writes files: documents, an index, jobs, a copy of a repository, a purge."""
    await engine.add([NewDocument(f"note {n} about printers", key=f"k{n}") for n in range(50)], wait=True)
    await engine.connections.create("wiki", "git", {"address": str(address)})
    for job in (
        await engine.jobs.ingest_files([Upload("a.md", b"# Note\n\nCellar.\n")]),
        await engine.connections.sync("wiki"),
    ):
        assert (await engine.jobs.wait(job.id, timeout=60)).state == "succeeded"
    await engine.maintenance.reindex()
    await engine.documents.delete((await engine.documents.list()).documents[0].id, purge=True)


@pytest.mark.usefixtures("umask")
async def test_a_store_is_private_while_it_is_used_and_after(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "store"
    make_repository(tmp_path / "repository")
    async with conspectus.open(folder, settings=SETTINGS) as engine:
        await work_with(engine, tmp_path / "repository")
        assert open_to_others(tmp_path / "above") == {}
        written = {path.name for path in folder.rglob("*") if path.is_file()}
        assert {"records.sqlite", "records.sqlite-wal", "records.sqlite-shm"} <= written
        assert {"arrays.bin", "HEAD"} <= written
        back_up(folder, tmp_path / "a.zip", settings=SETTINGS)
    assert open_to_others(tmp_path / "above") == {}
    restore(tmp_path / "a.zip", tmp_path / "restored", settings=SETTINGS)
    async with conspectus.open(tmp_path / "restored", settings=SETTINGS) as engine:
        assert await engine.documents.count() == 51
    assert open_to_others(tmp_path / "restored") == open_to_others(tmp_path / "a.zip") == {}


@pytest.mark.usefixtures("umask")
def test_codes_of_vectors_are_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    vectors = np.random.default_rng(1).normal(size=(500, 8)).astype(np.float16)
    ivf.build_codes(tmp_path, vectors, np.arange(500, dtype=np.int64), lists=True)
    assert open_to_others(tmp_path) == {}
    assert list(tmp_path.iterdir())
