"""A folder store on a read-only mount: it is read as elsewhere, writes are refused, and no file changes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument

UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")
MAIN = "from conspectus.cli.entry import main; main()"
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
READS = (
    ("search", "heron"),
    ("context", "heron", "--max-tokens", "100"),
    ("explain", "heron", "--max-tokens", "100"),
    ("list",),
    ("status",),
    ("check",),
)


def run_read_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line where the folder is mounted read-only. Skips where nobody may mount."""
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("user namespaces with mounts are not permitted here")
    command = [sys.executable, "-c", MAIN, "--data-dir", str(folder), *arguments]
    mounted = [*UNSHARE, "sh", "-c", MOUNT, str(folder), *command]
    return subprocess.run(mounted, capture_output=True, text=True, timeout=60)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def make_stores(closed: Path, killed: Path) -> None:
    """A store with a built index and newer documents; and the same as its writer's death would leave it."""
    async with conspectus.open(closed) as engine:
        await engine.add([NewDocument("The heron lives by the river.", key="a")])
        await engine.maintenance.reindex()
        await engine.add([NewDocument("Another heron is in the reeds.", key="b")])
        shutil.copytree(closed, killed)


async def test_a_read_only_store_is_read_and_refuses_writes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    await make_stores(store, tmp_path / "killed")
    before = contents(store)
    for arguments in READS:
        told = run_read_only(store, *arguments)
        assert told.returncode == 0, told.stderr
    assert "reeds" in run_read_only(store, "search", "reeds").stdout
    document = tmp_path / "new.md"
    document.write_text("A third heron.")
    for arguments in (("add", str(document)), ("reindex",)):
        told = run_read_only(store, *arguments)
        assert told.returncode != 0
        assert "is read-only" in told.stderr
        assert "Traceback" not in told.stderr
    assert contents(store) == before


async def test_what_a_killed_writer_left_is_read_or_refused(tmp_path: Path) -> None:
    store = tmp_path / "killed"
    await make_stores(tmp_path / "closed", store)
    before = contents(store)
    assert before["records.sqlite-wal"]
    assert "reeds" in run_read_only(store, "search", "reeds").stdout
    assert contents(store) == before
    (store / "records.sqlite-shm").unlink()
    told = run_read_only(store, "search", "reeds")
    assert told.returncode != 0
    assert "was not closed; open it once with write access" in told.stderr
