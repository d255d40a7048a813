"""Versions of the tables on PostgreSQL: the same as in a file, also for processes that begin at once."""

import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from conspectus.records import migrations
from conspectus.records.core.postgres import DRIVER, PostgresDatabase
from conspectus.records.core.schema import SHARED_COUNTERS
from conspectus.records.tables.core import metadata
from tests.support.postgres_server import PostgresProcess

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, l.collname,
  pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation l ON l.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
"""
SEQUENCES = "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace"
OPEN = "import asyncio, sys; from conspectus.records.store import open_records\n\
async def main():\n    await (await open_records(sys.argv[1])).close()\n\
asyncio.run(main())"
BEGIN = "import sys, time\n\
from conspectus.records.core.database import DatabaseAccess, database_at\n\
from conspectus.records.core.schema import make_tables\n\
with database_at(sys.argv[1], DatabaseAccess()).begin_migration() as connection:\n\
    make_tables(connection); print('made', flush=True); time.sleep(600)"


@pytest.fixture
def empty_url(postgres: PostgresProcess) -> Iterator[str]:
    with postgres.fresh(empty=True) as url:
        yield url


def query_catalog(url: str, *questions: str) -> list[set[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        return [set(connection.execute(question.encode()).fetchall()) for question in questions]


def migrate_to(url: str, version: str) -> None:
    database = PostgresDatabase(url, 30.0, 1)
    with database.begin_migration() as connection:
        migrations.upgrade(connection, version=version)
    database.reading.dispose()


def starts(script: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, url], stdout=subprocess.PIPE, text=True)


@pytest.mark.filterwarnings("ignore:autogenerate skipping metadata-specified expression-based index")
def test_migrating_from_nothing_equals_what_is_made_anew(empty_url: str, postgres_url: str) -> None:
    migrate_to(empty_url, "head")
    for question in (COLUMNS, INDEXES, CONSTRAINTS, "SELECT * FROM counters"):
        assert query_catalog(empty_url, question) == query_catalog(postgres_url, question)
    engine = create_engine(empty_url.replace("postgresql", DRIVER, 1))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_texts_are_ordered_by_code_point_and_numbers_come_from_us(postgres_url: str) -> None:
    columns, indexes, sequences = query_catalog(postgres_url, COLUMNS, INDEXES, SEQUENCES)
    ours = {(table.name, column.name) for table in metadata.sorted_tables for column in table.columns}
    existing = {column[:2] for column in columns}
    assert ours <= existing
    collated = {column[4] for column in columns if column[:2] in ours and column[4] is not None}
    assert collated == {"C"}
    partial = {
        index.name
        for table in metadata.sorted_tables
        for index in table.indexes
        if "_where" in str([name for name, value in index.dialect_kwargs.items() if value is not None])
    }
    assert partial == {name for name, definition in indexes if " WHERE " in str(definition)}
    assert sequences == set()


def test_processes_that_open_a_new_database_at_once_all_succeed(empty_url: str) -> None:
    openers = [starts(OPEN, empty_url) for _ in range(3)]
    assert [(opener.communicate(), opener.returncode)[1] for opener in openers] == [0, 0, 0]
    assert query_catalog(empty_url, "SELECT count(*) FROM counters") == [{(len(SHARED_COUNTERS),)}]


def test_a_process_killed_while_it_migrates_leaves_it_to_the_next(empty_url: str) -> None:
    first = starts(BEGIN, empty_url)
    assert first.stdout is not None
    assert first.stdout.readline() == "made\n"
    second = starts(OPEN, empty_url)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(1)
    first.kill()
    first.communicate()
    second.communicate()
    assert second.returncode == 0
    assert query_catalog(empty_url, "SELECT count(*) FROM counters") == [{(len(SHARED_COUNTERS),)}]
