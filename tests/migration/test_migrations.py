"""Versions of the tables: migrating makes what the program knows, and an unknown version is refused."""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from conspectus.errors import StorageError, StorageTooNew
from conspectus.records import migrations
from conspectus.records.core.schema import SHARED_COUNTERS, make_tables
from conspectus.records.core.sqlite import begin_migration, sqlite_engine
from conspectus.records.store import open_records
from conspectus.records.tables.core import VERSION, metadata
from conspectus.records.transfer.sqlite_copies import check_copy

MIGRATIONS = Path(migrations.__file__).parent
INDEXES = "SELECT name, tbl_name, trim(sql, char(10)) FROM sqlite_master WHERE type = 'index'"
OPEN = "import asyncio, sys; from conspectus.records.store import open_records; from pathlib import Path\n\
async def main():\n    await (await open_records(Path(sys.argv[1]))).close()\n\
asyncio.run(main()); print('alembic' in sys.modules)"


def migrate_to(path: Path, version: str) -> None:
    engine = sqlite_engine(path, busy_seconds=1, connections=1)
    with begin_migration(engine) as connection:
        migrations.upgrade(connection, version=version)
    engine.dispose()


def run_sql(path: Path, script: str) -> None:
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()


def contents(path: Path) -> tuple[dict[str, set[object]], list[tuple[str, int]]]:
    """The columns, keys and indexes of each table, and the first rows.

    A column that a migration adds stands last in the text of its table, so that texts are not compared.
    """
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        schema: dict[str, set[object]] = {
            table: {
                row[1:]
                for pragma in ("table_xinfo", "foreign_key_list")
                for row in database.execute(f'PRAGMA {pragma}("{table}")')
            }
            for table in tables
        }
        indexes = database.execute(
            "SELECT name, tbl_name, trim(sql, char(10)) FROM sqlite_master WHERE type = 'index'"
        )
        return schema | {"indexes": set(indexes)}, sorted(
            database.execute("SELECT name, value FROM counters")
        )


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_migrating_from_nothing_equals_what_is_made_anew(tmp_path: Path) -> None:
    migrate_to(tmp_path / "migrated", "head")
    engine = create_engine(f"sqlite:///{tmp_path / 'made'}")
    with engine.begin() as connection:
        make_tables(connection)
    engine.dispose()
    assert contents(tmp_path / "migrated") == contents(tmp_path / "made")
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated'}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_the_newest_migration_is_the_version_that_the_program_knows() -> None:
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert scripts.get_heads() == [VERSION]
    history = [step.revision for step in scripts.walk_revisions()]
    assert history == sorted(history, reverse=True)


def test_a_backup_of_a_migrated_store_holds_what_is_expected(tmp_path: Path) -> None:
    migrate_to(tmp_path / "made", "head")
    run_sql(tmp_path / "made", "UPDATE counters SET value = 5 WHERE name = 'change'; ANALYZE")
    version, sums = check_copy(tmp_path / "made")
    assert (version, sums["counters"].rows) == (VERSION, len(SHARED_COUNTERS))


@pytest.mark.parametrize("version", ["0019", "9999"])
async def test_a_version_of_another_program_is_refused_and_left_as_it_is(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "records.sqlite"
    await (await open_records(path)).close()
    await asyncio.to_thread(run_sql, path, f"UPDATE alembic_version SET version_num = '{version}'")
    for _ in range(2):
        with pytest.raises(StorageTooNew, match=f"{version}.*; open it with the version that wrote it"):
            await open_records(path)


@pytest.mark.parametrize("version", ["0000", "0000 x", "\x1b[31m"])
async def test_a_version_that_never_was_is_refused(tmp_path: Path, version: str) -> None:
    path = tmp_path / "records.sqlite"
    await (await open_records(path)).close()
    await asyncio.to_thread(run_sql, path, f"UPDATE alembic_version SET version_num = '{version}'")
    with pytest.raises(StorageError, match="holds no store"):
        await asyncio.to_thread(check_copy, path)
    with pytest.raises(StorageError, match="restore a backup"):
        await open_records(path)


def test_processes_that_open_a_new_path_at_once_all_succeed_without_alembic(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN, str(tmp_path / "records.sqlite")]
    openers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [opener.communicate()[0].strip() for opener in openers]
    assert [opener.returncode for opener in openers] == [0, 0, 0, 0]
    assert outputs == ["False"] * 4


async def test_a_migration_that_was_interrupted_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"

    def interrupted() -> None:
        engine = sqlite_engine(path, busy_seconds=1, connections=1)
        with pytest.raises(KeyboardInterrupt), begin_migration(engine) as connection:
            migrations.upgrade(connection, version="head")
            raise KeyboardInterrupt
        engine.dispose()

    await asyncio.to_thread(interrupted)
    records = await open_records(path)
    assert (await records.collections(), await records.check()) == ([], [])
    await records.close()
