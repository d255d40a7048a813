"""The history of the tables: from nothing to the newest, from every old version, and never a newer one."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine.interfaces import ReflectedIndex

from conspectus.errors import StorageError, StorageTooNew
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId, CollectionId, DocumentId
from conspectus.model.records import EmbeddingSpace
from conspectus.records import migrate, newest
from conspectus.records.backup.copying import checked
from conspectus.records.sqlite import migrating, sqlite_engine
from conspectus.records.store import open_records
from conspectus.records.tables import VERSION, schema
from conspectus.testing.samples import vector
from tests.migration.first_version import FIRST_VERSION_ROWS

MIGRATIONS = Path(migrate.__file__).with_name("migrations")
OPEN = "import asyncio, sys; from conspectus.records.store import open_records; from pathlib import Path\n\
async def main():\n    await (await open_records(Path(sys.argv[1]))).close()\n\
asyncio.run(main()); print('alembic' in sys.modules)"


def migrate_to(path: Path, version: str) -> None:
    engine = sqlite_engine(path, busy_seconds=1, connections=1)
    with migrating(engine) as connection:
        migrate.upgrade(connection, version=version)
    engine.dispose()


def run_sql(path: Path, script: str) -> None:
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()


def described(index: ReflectedIndex) -> tuple[str, str, str]:
    condition = index.get("dialect_options", {}).get("sqlite_where")
    return str(index["name"]), str(index["column_names"]), str(condition)


def shape(url: str) -> dict[str, object]:
    """Everything SQLAlchemy can see of a database's tables, which is more than Alembic compares."""
    engine = create_engine(url)
    look = inspect(engine)
    found: dict[str, object] = {
        name: (
            [column | {"type": str(column["type"])} for column in look.get_columns(name)],
            look.get_pk_constraint(name),
            sorted(map(str, look.get_foreign_keys(name))),
            sorted(map(str, look.get_unique_constraints(name))),
            sorted(map(str, look.get_check_constraints(name))),
            sorted(map(described, look.get_indexes(name))),
        )
        for name in sorted(look.get_table_names())
    }
    engine.dispose()
    return found


def rows(path: Path) -> set[str]:
    database = sqlite3.connect(path)
    found = {line for line in database.iterdump() if line.startswith("INSERT")}
    database.close()
    return found


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
def test_migrating_from_nothing_equals_what_is_made_anew(tmp_path: Path) -> None:
    migrate_to(tmp_path / "migrated", "head")
    migrated, made = (f"sqlite:///{tmp_path / name}" for name in ("migrated", "made"))
    engine = create_engine(made)
    with engine.begin() as connection:
        newest.make(connection)
    engine.dispose()
    assert shape(migrated) == shape(made)
    assert rows(tmp_path / "migrated") == rows(tmp_path / "made")
    engine = create_engine(migrated)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema) == []
    engine.dispose()


def test_the_newest_migration_is_the_version_that_the_program_knows() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert scripts.get_heads() == [VERSION]
    history = [step.revision for step in scripts.walk_revisions()]
    assert history == sorted(history, reverse=True)


def test_a_backup_of_every_version_holds_what_is_expected(tmp_path: Path) -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    for version in sorted(step.revision for step in scripts.walk_revisions()):
        made = tmp_path / version
        migrate_to(made, version)
        run_sql(made, "INSERT OR REPLACE INTO counters VALUES ('change', 5); ANALYZE")
        found, sums = checked(made)
        assert (found, sums["counters"].rows >= 3) == (version, True)


async def test_a_database_of_the_first_version_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    await asyncio.to_thread(migrate_to, path, "0001")
    await asyncio.to_thread(run_sql, path, FIRST_VERSION_ROWS)
    records = await open_records(path)
    assert await records.check() == []
    collection, space = CollectionId("c"), EmbeddingSpace("sample", 4)
    assert await records.state(collection) == (3, space)
    assert [await records.text(DocumentId(key)) for key in "de"] == ["one two ", "last"]
    assert await records.count(collection, EVERYTHING) == 2
    assert [each.chunk.id for each in await records.unembedded(collection, space, limit=9)] == [3]
    assert await records.put_vectors(space, [(ChunkId(3), vector(1))]) == 1
    assert (await records.delete([DocumentId("d")])).documents == 2
    assert await records.check() == []
    await records.close()


async def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    await (await open_records(path)).close()
    await asyncio.to_thread(run_sql, path, "UPDATE alembic_version SET version_num = '9999'")
    for _ in range(2):
        with pytest.raises(StorageTooNew, match="9999"):
            await open_records(path)


@pytest.mark.parametrize("version", ["0000", "0005 x", "\x1b[31m"])
async def test_a_version_that_never_was_is_refused(tmp_path: Path, version: str) -> None:
    path = tmp_path / "records.sqlite"
    await (await open_records(path)).close()
    await asyncio.to_thread(run_sql, path, f"UPDATE alembic_version SET version_num = '{version}'")
    with pytest.raises(StorageError, match="holds no store"):
        await asyncio.to_thread(checked, path)
    with pytest.raises(StorageError, match="no program wrote"):
        await open_records(path)


@pytest.mark.parametrize("old", [False, True])
def test_processes_that_open_a_new_or_old_path_at_once_all_succeed(tmp_path: Path, old: bool) -> None:
    if old:
        migrate_to(tmp_path / "records.sqlite", "0001")
    command = [sys.executable, "-c", OPEN, str(tmp_path / "records.sqlite")]
    openers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [opener.communicate()[0].strip() for opener in openers]
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0]
    assert ("True" in outputs) == old
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.strip() == "False"


async def test_a_migration_that_was_interrupted_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"

    def interrupted() -> None:
        engine = sqlite_engine(path, busy_seconds=1, connections=1)
        with pytest.raises(KeyboardInterrupt), migrating(engine) as connection:
            migrate.upgrade(connection, version="head")
            raise KeyboardInterrupt
        engine.dispose()

    await asyncio.to_thread(interrupted)
    records = await open_records(path)
    assert (await records.collections(), await records.check()) == ([], [])
    await records.close()
