"""`list` and `count` agree with `matches` on random filters and rows."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.filters import build_leaves
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import NOON, SHELF, notes, prepared, shelf

from conspectus.model.filter import (
    FIELDS,
    And,
    Between,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Overlaps,
    document_row,
    matches,
)
from conspectus.model.ids import DocumentId
from conspectus.model.records import Period, PreparedDocument
from conspectus.ports import Records
from conspectus.records.store import SqlRecords, open_records

ZONES = [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))]
WORDS = [
    "",
    "a",
    "A",
    "ä",
    "é",
    "\u212aa\u00df",
    "z",
    "Z",
    "0",
    "5",
    "%",
    "_",
    "'",
    "🏴",
    "\uffff",
    "2024-05-01T12:00:00+00:00",
    "page",
    '"\\\n\x00',
]

words = st.sampled_from(WORDS)
zones = st.sampled_from(ZONES)
steps = st.sampled_from([0, 1, -1, 3_600_000_000, 10**15, -(10**16)])
instants = st.builds(lambda step, zone: (NOON + timedelta(microseconds=step)).astimezone(zone), steps, zones)
small = st.integers(-2, 2)
huge = st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1])
beyond = st.sampled_from([2**63, -(2**63) - 1, 10**30])
floats = st.sampled_from(
    [0.0, -0.0, 0.5, 1.0, 2.0**53, 2.0**63, -(2.0**63), 1e300, float("inf"), float("nan")]
)
scalars: st.SearchStrategy[Any] = words | small | huge | beyond | floats | st.booleans() | instants
naive = st.just(datetime(2024, 5, 1, 12))
finite = st.sampled_from([0.0, 0.5, 1.0, 2.0**53])
values = st.recursive(
    st.none() | words | small | huge | beyond | finite | st.booleans() | instants.map(datetime.isoformat),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
fields: st.SearchStrategy[Any] = st.sampled_from(sorted(FIELDS)) | st.lists(
    words, min_size=1, max_size=2
).map(tuple)
ordered = fields.filter(lambda field: field != "occurred")
leaves = (
    build_leaves(Eq, fields, scalars | naive)
    | build_leaves(In, fields, st.lists(scalars, max_size=3).map(tuple))
    | build_leaves(Between, ordered, st.none() | scalars, st.none() | scalars)
    | build_leaves(Overlaps, st.none() | instants, st.none() | instants)
    | build_leaves(Exists, fields)
    | build_leaves(Contains, fields, words | st.sampled_from(["Ä", "k", "AGE", "ss"]))
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
    ),
    max_leaves=6,
)
periods = st.builds(
    lambda start, hours: Period(start, start + timedelta(hours=hours)), instants, st.integers(0, 2)
)
optional_words = st.none() | words.filter(lambda word: "\x00" not in word)
"""Metadata are stored as JSON and may hold a NUL; texts may not, in any database."""


@st.composite
def documents(draw: st.DrawFn) -> list[PreparedDocument]:
    """A few documents with random fields; some are children of the first."""
    number = draw(st.integers(1, 6))
    return [
        prepared(
            f"d{position}",
            "text",
            kind=draw(st.sampled_from(["page", "message"])),
            author=draw(optional_words),
            role=draw(optional_words),
            thread=draw(optional_words),
            parent=draw(st.sampled_from([None, DocumentId("d0")])) if position else None,
            sequence=draw(st.none() | small | huge),
            occurred=draw(st.none() | periods),
            recorded=draw(instants),
            metadata=draw(st.dictionaries(words, values, max_size=3)),
        )
        for position in range(number)
    ]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecords]:
    opened = asyncio.run(open_records(tmp_path_factory.mktemp("filters") / "records.sqlite"))
    yield opened
    asyncio.run(opened.close())


@pytest.fixture(scope="module")
def postgres_records(postgres: PostgresProcess) -> Iterator[SqlRecords]:
    with postgres.fresh() as url:
        opened = asyncio.run(open_records(url))
        yield opened
        asyncio.run(opened.close())


async def refill(records: Records, rows: list[PreparedDocument]) -> None:
    if await records.collection(SHELF):
        await records.delete_collection(SHELF)
    await records.create_collection(shelf())
    await records.put_source(notes())
    await records.write(rows)


async def ids_in_pages(records: Records, where: Filter) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page, cursor = await records.list(SHELF, where, after=cursor, limit=2)
        ids += [document.id for document in page]
        if cursor is None:
            return ids


async def compare(records: Records, rows: list[PreparedDocument], conditions: list[Filter]) -> None:
    await refill(records, rows)
    documents = sorted((row.document for row in rows), key=lambda document: (document.recorded, document.id))
    for where in conditions:
        expected = [document.id for document in documents if matches(where, document_row(document))]
        assert await ids_in_pages(records, where) == expected, where
        assert await records.count(SHELF, where) == len(expected), where


@given(documents(), st.lists(filters, min_size=5, max_size=15))
def test_the_store_means_what_matches_means(
    records: SqlRecords, rows: list[PreparedDocument], conditions: list[Filter]
) -> None:
    asyncio.run(compare(records, rows, conditions))


@settings(max_examples=25)
@given(documents(), st.lists(filters, min_size=5, max_size=15))
def test_postgresql_means_what_matches_means(
    postgres_records: SqlRecords, rows: list[PreparedDocument], conditions: list[Filter]
) -> None:
    asyncio.run(compare(postgres_records, rows, conditions))
