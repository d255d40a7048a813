"""The scripts that back up and restore a store in PostgreSQL, run against a real server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument
from conspectus.settings import Settings
from conspectus.testing.postgres_server import PostgresProcess

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(embedder="none", cache=str(tmp_path / "cache"))


def script(name: str, server: PostgresProcess, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PG_BIN": str(server.program("pg_dump").parent),
        "CONSPECTUS": str(Path(sys.executable).with_name("conspectus")),
        "CONSPECTUS_EMBEDDER": "none",
    }
    command = [str(SCRIPTS / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


async def test_a_backup_of_a_database_restores_to_another(
    postgres: PostgresProcess, tmp_path: Path, settings: Settings
) -> None:
    file = tmp_path / "a.dump"
    with postgres.fresh() as url, postgres.fresh(empty=True) as empty:
        async with conspectus.open(url, settings=settings) as engine:
            await engine.add([NewDocument(f"note {n} about printers", key=f"k{n}") for n in range(20)])
            before = (await engine.list(limit=100), (await engine.retrieve("note 3")).hits)
        made = script("postgres_backup.sh", postgres, url, file)
        assert made.returncode == 0, made.stderr
        restored = script("postgres_restore.sh", postgres, file, empty)
        assert restored.returncode == 0, restored.stderr
        async with conspectus.open(empty, settings=settings) as engine:
            assert (await engine.list(limit=100), (await engine.retrieve("note 3")).hits) == before
            assert (await engine.check()).clean
        again = script("postgres_restore.sh", postgres, file, empty)
        assert (again.returncode, "empty" in again.stderr) == (1, True)


def test_a_backup_is_whole_or_not_there(postgres: PostgresProcess, tmp_path: Path) -> None:
    file = tmp_path / "a.dump"
    assert script("postgres_backup.sh", postgres, postgres.url("nothing"), file).returncode != 0
    assert list(tmp_path.iterdir()) == []
    file.write_bytes(b"mine")
    assert script("postgres_backup.sh", postgres, postgres.url(), file).returncode == 1
    assert file.read_bytes() == b"mine"
    assert script("postgres_backup.sh", postgres, postgres.url()).returncode == 2
