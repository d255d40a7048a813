"""A folder store on a read-only mount: it is read as elsewhere, writes are refused, and no file changes."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument, Settings
from tests.cli.conftest import Outcome
from tests.programs import ROOT

UNSHARE = ("unshare", "--user", "--map-root-user", "--mount")
COMMANDS = """
import dataclasses, json, sys
from pathlib import Path
from tests.cli.conftest import Shell

shell = Shell(Path(sys.argv[1]))
for arguments in json.loads(sys.argv[2]):
    print(json.dumps(dataclasses.astuple(shell("--data-dir", *arguments))))
"""
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
READS = (
    ("search", "heron"),
    ("context", "heron", "--max-tokens", "100"),
    ("explain", "heron", "--max-tokens", "100"),
    ("list",),
    ("status",),
    ("check",),
)


def run_read_only(folder: Path, *commands: Sequence[str]) -> list[Outcome]:
    """Run command lines where the folder is mounted read-only. Skips where nobody may mount."""
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("user namespaces with mounts are not permitted here")
    program = [sys.executable, "-c", COMMANDS, str(folder), json.dumps(commands)]
    mounted = [*UNSHARE, "sh", "-c", MOUNT, str(folder), *program]
    done = subprocess.run(mounted, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def make_stores(folder: Path) -> None:
    """A store with a built index and newer documents; and the same as its writer's death may leave it."""
    async with conspectus.open(folder / "closed", settings=Settings(embedder="none")) as engine:
        await engine.add([NewDocument("The heron lives by the river.", key="a")])
        await engine.maintenance.reindex()
        await engine.add([NewDocument("Another heron is in the reeds.", key="b")])
        for name in ("killed", "in part"):
            shutil.copytree(folder / "closed", folder / name)
    assert (folder / "killed" / "records.sqlite-wal").read_bytes()
    (folder / "in part" / "records.sqlite-shm").unlink()


async def test_a_read_only_store_is_read_and_refuses_writes_also_where_its_writer_was_killed(
    tmp_path: Path,
) -> None:
    stores, document, reeds = tmp_path / "stores", tmp_path / "new.md", ("search", "reeds")
    await make_stores(stores)
    before = read_files(stores)
    document.write_text("A third heron.")
    closed = (*READS, reeds, ("add", str(document)), ("reindex",))
    commands = [(str(stores / "closed"), *command) for command in closed]
    commands += [(str(stores / name), *reeds) for name in ("killed", "in part")]
    *read, search, adding, building, killed, refused = run_read_only(stores, *commands)
    assert len(read) == len(READS)
    for outcome in (*read, search, killed):
        assert outcome.code == 0, outcome.err
    assert "reeds" in search.out
    assert "reeds" in killed.out
    for outcome in (adding, building):
        assert outcome.code != 0
        assert "is read-only" in outcome.err
        assert "Traceback" not in outcome.err
    assert refused.code != 0
    assert "was not closed; open it once with write access" in refused.err
    assert read_files(stores) == before
