"""The scripts that back up and restore a store in PostgreSQL, run against a real server."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.support.postgres_server import PostgresProcess

import conspectus
from conspectus import NewDocument
from conspectus.records.core.row_security import READER
from conspectus.settings import Settings

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(embedder="none", cache=str(tmp_path / "cache"))


def run_script(
    name: str, server: PostgresProcess, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
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
            before = (await engine.documents.list(limit=100), (await engine.retrieve("note 3")).hits)
        backup = run_script("postgres_backup.sh", postgres, url, file)
        assert backup.returncode == 0, backup.stderr
        restored = run_script("postgres_restore.sh", postgres, file, empty)
        assert restored.returncode == 0, restored.stderr
        async with conspectus.open(empty, settings=settings) as engine:
            assert (await engine.documents.list(limit=100), (await engine.retrieve("note 3")).hits) == before
            assert (await engine.maintenance.check()).clean
        again = run_script("postgres_restore.sh", postgres, file, empty)
        assert (again.returncode, "empty" in again.stderr) == (1, True)


@contextmanager
def keeper(server: PostgresProcess, database: str) -> Iterator[str]:
    """The URL of an owner of the database, which has pgvector, who may do nothing else."""
    name = database.rpartition("/")[2].partition("?")[0]
    server.run("CREATE ROLE keeper LOGIN")
    server.run(f"ALTER DATABASE {name} OWNER TO keeper")
    server.run("CREATE EXTENSION vector", name)
    yield database.replace("postgres@", "keeper@")
    server.run("REASSIGN OWNED BY keeper TO postgres", name)
    server.run(f"REVOKE {READER} FROM keeper")
    server.run("DROP ROLE keeper")


async def test_an_owner_who_is_no_superuser_restores_what_has_row_security(
    postgres: PostgresProcess, tmp_path: Path, settings: Settings
) -> None:
    file = tmp_path / "a.dump"
    walled = replace(settings, row_security="on")
    with postgres.fresh() as url, postgres.fresh(empty=True) as empty, keeper(postgres, empty) as owned:
        async with conspectus.open(url, settings=walled) as engine:
            await engine.add([NewDocument("about printers", key="k")])
        postgres.run(f"GRANT {READER} TO keeper")
        assert run_script("postgres_backup.sh", postgres, url, file).returncode == 0
        restored = run_script("postgres_restore.sh", postgres, file, owned)
        assert restored.returncode == 0, restored.stderr
        async with conspectus.open(owned, settings=walled) as engine:
            assert (await engine.retrieve("printers")).hits
        with psycopg.connect(owned) as connection:
            statement = f"SELECT has_table_privilege('{READER}', 'documents', 'SELECT')"
            assert connection.execute(statement.encode()).fetchone() == (True,)


def test_a_backup_is_whole_or_not_there(postgres: PostgresProcess, tmp_path: Path) -> None:
    file = tmp_path / "a.dump"
    assert run_script("postgres_backup.sh", postgres, postgres.url("nothing"), file).returncode != 0
    assert list(tmp_path.iterdir()) == []
    file.write_bytes(b"mine")
    assert run_script("postgres_backup.sh", postgres, postgres.url(), file).returncode == 1
    assert file.read_bytes() == b"mine"
    assert run_script("postgres_backup.sh", postgres, postgres.url()).returncode == 2
