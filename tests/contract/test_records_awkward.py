"""What databases disagree about by themselves: both give the same, or refuse the same before they write."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf

from conspectus.errors import InvalidInput
from conspectus.model.access import Group
from conspectus.model.filter import EVERYTHING, And, Between, Eq, In, Not
from conspectus.model.ids import ChunkId, DocumentId, GroupId, SourceId
from conspectus.model.memory import PINNED
from conspectus.model.records import Period
from conspectus.model.stream_events import ENTITIES
from conspectus.ports.streams import Span
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.graph.mentions import SqlNames
from conspectus.records.graph.store import SqlGraphs
from conspectus.records.memories.store import SqlMemories
from conspectus.records.store import SqlRecords, open_records

UNSTORABLE = ["a\x00b", "\ud800", "\udc00x"]


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return (
        tmp_path / "records.sqlite" if request.param == "sqlite" else request.getfixturevalue("emptied_url")
    )


@pytest.fixture
async def records(address: Any) -> AsyncIterator[SqlRecords]:
    opened = await open_records(address)
    await opened.create_collection(shelf())
    await opened.put_source(notes())
    yield opened
    await opened.close()


@pytest.mark.parametrize("odd", UNSTORABLE)
async def test_a_text_that_no_database_holds_is_refused_whole(records: SqlRecords, odd: str) -> None:
    documents = [prepared("b", odd), *(prepared("b", "x", **{field: odd}) for field in ("title", "author"))]
    for bad in (*documents, prepared(odd, "x"), prepared("b", "x", thread=odd)):
        with pytest.raises(InvalidInput):
            await records.write([prepared("a", "x"), bad])
    assert await records.count(SHELF, EVERYTHING) == 0


@pytest.mark.parametrize("odd", UNSTORABLE)
async def test_nobody_is_found_by_a_text_that_no_database_holds(records: SqlRecords, odd: str) -> None:
    for ask in (records.collection, SqlAccounts(records.transactions).user):
        with pytest.raises(InvalidInput):
            await ask(odd)
    assert await records.sources(SHELF, names=[odd, NOTES]) == [notes()]
    assert await SqlGraphs(records.transactions).nodes_by_name([NOTES], [odd]) == []
    names = SqlNames(records.transactions)
    assert await names.passages([NOTES], SHELF, {odd: 9}, maximum=9) == {}
    assert await records.count(SHELF, In("author", (odd, "x"))) == 0


async def test_metadata_may_speak_of_anything(records: SqlRecords) -> None:
    odd = {"nul": "\x00", "\x00": "\\u0000", "slash": "\\\x00", "big": 10**40, "deep": {"a": [1.5, None]}}
    named = {ENTITIES: ["Ada\x00", "Bo", 7, None, "Bo"], PINNED: True, **odd}
    times = Period(NOON, NOON)
    metadata_of_rows: list[dict[str, Any]] = [
        named,
        {ENTITIES: {"x": "Cy", "y": 1}},
        {ENTITIES: "Di"},
        {ENTITIES: None},
        {ENTITIES: []},
    ]
    rows = [
        prepared(f"c{number}", "x", kind="caption", occurred=times, metadata=metadata, author="Eve")
        for number, metadata in enumerate(metadata_of_rows)
    ]
    await records.write(rows)
    documents = await records.documents([row.document.id for row in rows])
    assert [document.metadata for document in documents] == metadata_of_rows
    entity_counts = await records.names(NOTES, Span())
    assert {name: entity_counts[name] for name in ("Bo", "Cy", "Di", "Eve")} == {
        "Bo": 1,
        "Cy": 1,
        "Di": 1,
        "Eve": 5,
    }
    assert len(entity_counts) == 5


async def test_only_true_pins_a_memory(records: SqlRecords) -> None:
    pins: list[Any] = [True, False, None, "true", 1, [True], {}]
    fields = {"kind": "memory", "thread": "t", "occurred": Period(NOON, NOON)}
    await records.write(
        [prepared(f"m{number}", "x", metadata={PINNED: pin}, **fields) for number, pin in enumerate(pins)]
    )
    memories = SqlMemories(records.transactions)
    ids = await memories.oldest(NOTES, before=None, beyond=0, pinned=False, limit=9)
    assert ids == [f"m{number}" for number in range(1, len(pins))]
    assert (await memories.totals([NOTES])).pinned == 1


async def test_texts_are_ordered_by_code_point(records: SqlRecords) -> None:
    names = ["", " ", "A", "B", "Z", "_", "a", "aa", "z", "ß", "ä", "é", "\uffff", "🏴"]
    for name in reversed(names):
        await records.put_source(replace(notes(f"id{name}"), name=name))
    assert [source.name for source in await records.sources(SHELF)] == sorted([*names, "notes"])
    accounts = SqlAccounts(records.transactions)
    for name in reversed(names):
        await accounts.add_group(Group(GroupId(f"g{name}"), name, NOON))
    assert [group.name for group in await accounts.groups()] == names
    await records.write([prepared(f"d{number}", "x", author=name) for number, name in enumerate(names)])
    assert await records.count(SHELF, Between("author", "a", "b")) == 2
    assert await records.count(SHELF, Not(Eq("author", "A"))) == len(names) - 1


async def test_numbers_at_the_edge(records: SqlRecords) -> None:
    edges = [2**63 - 1, -(2**63), 2**31, 0]
    await records.write([prepared(f"d{number}", "x", sequence=number) for number in edges])
    documents, _ = await records.list(SHELF, EVERYTHING, limit=9)
    assert {document.sequence for document in documents} == set(edges)
    for low, count in (
        (0.5, 2),
        (-0.5, 3),
        (2**31 - 0.5, 2),
        (-(2.0**63), 4),
        (10**30, 0),
        (float("nan"), 0),
    ):
        assert await records.count(SHELF, Between("sequence", low, None)) == count, low
    assert await records.count(SHELF, Eq("sequence", 0.5)) == 0
    with pytest.raises(InvalidInput):
        await records.write([prepared("beyond", "x", sequence=2**63)])
    with pytest.raises(InvalidInput):
        await records.hydrate([ChunkId(2**63)])


async def test_more_values_than_a_statement_may_name(records: SqlRecords) -> None:
    some, many = ([f"n{number}" for number in range(size)] for size in (6_000, 66_000))
    await records.write([prepared("n5", "x", author="n5", metadata={"tag": "n6"})])
    documents = await records.documents([DocumentId(key) for key in some])
    assert [document.id for document in documents] == ["n5"]
    assert len(await records.hydrate([ChunkId(number) for number in range(6_000)])) == 1
    assert await records.count(SHELF, And((In("author", tuple(some)), In(("tag",), tuple(many))))) == 1
    assert await SqlGraphs(records.transactions).nodes_by_name([SourceId(name) for name in many], many) == []
    sources = [SourceId(name) for name in many]
    assert await SqlNames(records.transactions).counts(sources, SHELF, begins="", limit=5) == []
    assert await SqlMemories(records.transactions).count(sources[:6_000], EVERYTHING) == 0


@pytest.mark.parametrize("size", [2_000, 3_000, 200_000])
async def test_long_names_are_kept_or_refused_alike(records: SqlRecords, size: int) -> None:
    long = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(size))
    try:
        await records.write([prepared("a", long, title=long, metadata={"m": long}, thread=long)])
    except InvalidInput as refused:
        assert "too long" in str(refused)
        assert await records.count(SHELF, EVERYTHING) == 0
    else:
        assert await records.text(DocumentId("a")) == long
