"""A store in a database with settings of its own that change what PostgreSQL reads and says."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, Float, cast, literal, select, text
from tests.stores import SETTINGS
from tests.support.postgres_server import PostgresProcess

import conspectus
from conspectus.model.filter import Between, Eq
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from conspectus.records.core.dialects import json_kind
from conspectus.records.core.postgres import STATEMENT_SECONDS
from conspectus.records.store import open_records
from conspectus.testing.embedders import HashedEmbedder

UNUSUAL = (
    "standard_conforming_strings = off",
    "backslash_quote = off",
    "array_nulls = off",
    "transform_null_equals = on",
    "bytea_output = escape",
    "DateStyle = 'German, DMY'",
    "IntervalStyle = iso_8601",
    "TimeZone = 'Pacific/Kiritimati'",
    "extra_float_digits = -15",
    "default_transaction_isolation = serializable",
    "enable_indexscan = off",
    "plan_cache_mode = force_generic_plan",
)


@pytest.fixture
def unusual(postgres: PostgresProcess) -> Iterator[str]:
    with postgres.fresh() as url:
        name = url.partition("@/")[2].partition("?")[0]
        for setting in UNUSUAL:
            postgres.run(f"ALTER DATABASE {name} SET {setting}")
        yield url


async def test_a_store_is_written_asked_and_checked(unusual: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, index="pgvector", cache=str(tmp_path))
    sign = "it's a \\ sign"
    metadata = {"kind": sign, "weight": 0.1}
    async with conspectus.open(unusual, settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.collections.create("c")
        remaining, gone = await engine.add(
            [NewDocument("the quick fox\\ 'quoted'", metadata=metadata), NewDocument("another fox")],
            collection="c",
            wait=True,
        )
        for where in (Eq(("kind",), sign), Between(("kind",), "it", "iu"), Eq(("weight",), 0.1)):
            query = Query("fox", collection="c", filter=where, retrievers=("keyword",))
            assert [hit.document.id for hit in (await engine.retrieve(query)).hits] == [remaining.id]
        await engine.documents.delete(gone.id, purge=True)
        (hit,) = (await engine.retrieve("fox", collection="c")).hits
        assert (hit.document.metadata, hit.chunk.text) == (metadata, "the quick fox\\ 'quoted'")
        report = await engine.maintenance.check()
        assert (report.records, report.index) == ((), {"c": ()})


async def test_numbers_come_back_as_they_were_given(unusual: str) -> None:
    numbers = [0.1 + 0.2, 20_000.5, 1_700_000_000.123456]
    query = select(*(cast(literal(number), Float) for number in numbers))
    records = await open_records(unusual)
    assert (
        await records.transactions.read(lambda connection: list(connection.execute(query).one())) == numbers
    )
    await records.close()


async def test_json_that_speaks_of_a_nul_is_read(unusual: str) -> None:
    kind = select(json_kind(literal('{"name": "\\u0000"}'), "name"))
    records = await open_records(unusual)
    assert await records.transactions.read(lambda connection: connection.scalar(kind)) == "text"
    await records.close()


async def test_a_connection_without_a_pooler_keeps_statements_and_limits(postgres_url: str) -> None:
    query = text("SELECT count(*), current_setting('statement_timeout') FROM pg_prepared_statements")
    records = await open_records(postgres_url)
    for _ in range(10):
        await records.collection("nothing")
    statements, limit = await records.transactions.read(lambda connection: connection.execute(query).one())
    assert (statements > 0, limit) == (True, f"{STATEMENT_SECONDS // 60}min")
    await records.close()


async def test_a_table_made_anew_is_read_by_the_same_statement(postgres_url: str) -> None:
    records = await open_records(postgres_url)
    counted = text("SELECT count(*) FROM beside")
    for rows in (2, 3):
        await records.transactions.write(partial(_make_anew, rows=rows))
        for _ in range(4):
            assert await records.transactions.read(lambda connection: connection.scalar(counted)) == rows
    await records.close()


def _make_anew(connection: Connection, rows: int) -> None:
    connection.execute(text("DROP TABLE IF EXISTS beside"))
    connection.execute(text(f"CREATE TABLE beside AS SELECT generate_series(1, {rows})"))
