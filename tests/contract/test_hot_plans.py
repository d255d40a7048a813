"""No statement of a hot path goes through a table that grows, on SQLite and on PostgreSQL."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import event
from tests.contract.test_write_plans import ANN, LARGE, SCANS, fill, plan, write
from tests.stores import SETTINGS

import conspectus
from conspectus import Engine, Settings
from conspectus.model.access import Principal
from conspectus.model.jobs import Upload
from conspectus.testing.embedders import HashedEmbedder

CONSTANT = SCANS.keys() | {"CONSTANT", "asked", "counted", "rare"}
"""One row, lists that were given, and up to so many rows that are counted."""
LIST = "VIRTUAL TABLE"
UP_TO_A_LIMIT = re.compile(r"LIMIT %\(maximum\)s")
"""What is read of a thread and of a channel, up to a number of the settings that is above `LARGE`."""
MOST = 150
"""More rows than any statement has to look at, and fewer than any table has that grows."""
MARKS = re.compile(r"(\?|%\(\w+\)s(::\w+)?)(, (\?|%\(\w+\)s(::\w+)?))*")
WAYS = ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
"""What is quicker than an index only as long as tables are small."""
OTHERS = re.compile(r"\bdbos(\b|_)|\bmain\.|\bpg_")
"""Tables of the job runner, and of PostgreSQL itself."""
Asked = dict[str, tuple[str, Any]]


@contextmanager
def recorded_statements() -> Iterator[Asked]:
    """Every statement on tables of ours that is run in the block, each with the last values of it."""
    statements: Asked = {}

    def note(_: sqlalchemy.Connection, __: object, sql: str, values: Any, *more: Any) -> None:
        if sql.startswith(("SELECT", "UPDATE", "DELETE", "WITH")) and not OTHERS.search(sql):
            statements[MARKS.sub("?", sql)] = (sql, values[0] if more[-1] else values)

    event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
    yield statements
    event.remove(sqlalchemy.Engine, "before_cursor_execute", note)


async def ask_everything(engine: Engine, secret: str) -> None:
    """Ask in every way that is waited for."""
    for reader in (engine, engine.as_person(await engine.keys.authenticate(secret))):
        await reader.retrieve("text 7", limit=5)
        await reader.window("text 7", 500)
    document = await engine.documents.get_by_key("7", source="default")
    await engine.documents.get_text(document.id)
    await engine.memory.recall("note 7", scope=ANN)
    await engine.memory.window("note 7", 500, scope=ANN)
    await engine.channels.window("said 7", 500, channel="ops")
    await engine.streams.list_captions(stream="cam", limit=5)
    await engine.tasks.get("7")
    reader_of_changes = engine._context.core.records.reader(document.collection, None)
    await reader_of_changes.changes_since(await reader_of_changes.last_sequence() - 1, limit=10)


async def record_hot_paths(store: str, settings: Settings = SETTINGS) -> Asked:
    """The statements of all hot paths in a store of some size."""
    async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
        await fill(engine, LARGE)
        await engine.people.create_user("bob")
        for _ in range(LARGE):
            key = await engine.keys.create("bob")
        await engine.access.grant("default", Principal("user", "bob"), "viewer")
        with recorded_statements() as statements:
            await write(engine, "measured")
            await ask_everything(engine, key.secret)
            job = await engine.jobs.ingest_files([Upload("a.txt", b"a text in a file")])
            await engine.jobs.wait(job.id, timeout=60)
    return statements


def walk_scans(node: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """How many rows each scan in a plan of PostgreSQL looked at, and of what."""
    seen = node.get("Actual Rows", 0) + node.get("Rows Removed by Filter", 0)
    if "Relation Name" in node or "Index Name" in node:
        yield node.get("Relation Name") or node["Index Name"], seen * node.get("Actual Loops", 1)
    for inner in node.get("Plans", ()):
        yield from walk_scans(inner)


def long_scans(server: psycopg.Connection[Any], sql: str, values: Any) -> list[tuple[str, float]]:
    """The scans of a statement that look at many rows, where it takes an index if there is one."""
    with server.transaction(force_rollback=True):
        for way in WAYS:
            server.execute(f"SET LOCAL enable_{way} = off")
        [[[explained]]] = server.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values).fetchall()
    return [scan for scan in walk_scans(explained["Plan"]) if scan[1] > MOST]


async def test_no_hot_statement_goes_through_a_table_of_a_file(tmp_path: Path) -> None:
    statements = await record_hot_paths(str(tmp_path))
    assert len(statements) > 60
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as database:
        plans = {sql: plan(database, sql, values) for sql, values in statements.values()}
    gone = {
        sql: lines
        for sql, lines in plans.items()
        if {line.split()[1] for line in lines if line.startswith("SCAN") and LIST not in line} - CONSTANT
    }
    assert gone == {}


@pytest.mark.parametrize("row_security", ["off", pytest.param("on", marks=pytest.mark.slow)])
async def test_no_hot_statement_looks_at_many_rows_of_a_server(postgres_url: str, row_security: str) -> None:
    """With row security, there are no statistics of the columns of most tables."""
    statements = await record_hot_paths(postgres_url, replace(SETTINGS, row_security=row_security))
    assert len(statements) > 60
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("ANALYZE")
        looked_at = {sql: long_scans(server, sql, values) for sql, values in statements.values()}
    assert {sql: plan for sql, plan in looked_at.items() if plan and not UP_TO_A_LIMIT.search(sql)} == {}
