"""What belongs to one collection waits for its writers, and for those of no other collection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from threading import Event

import pytest
from tests.support.samples import SPACE, notes, prepared, shelf

from conspectus.model.graph import Edge, Node
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Source
from conspectus.ports.graphs import Adding
from conspectus.ports.streams import NewSummary
from conspectus.records.graph.store import SqlGraphs
from conspectus.records.memories import SqlMemories
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.summaries import SqlSummaries

HERE, THERE = CollectionId("here"), CollectionId("there")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Work = Callable[[SqlRecords, CollectionId], Awaitable[object]]


def source(home: CollectionId) -> SourceId:
    return SourceId(f"notes of {home}")


def document(home: CollectionId) -> DocumentId:
    return DocumentId(f"text of {home}")


async def add_to_graph(records: SqlRecords, home: CollectionId) -> object:
    graph = Source(source(home), home, "notes")
    ends = tuple(Node(f"{home} {name}", graph, "town", name, (), {}, NOW, NOW) for name in ("Rome", "Oslo"))
    await SqlGraphs(records.transactions).add(Adding(nodes=ends))
    edge = Edge(f"{home} edge", graph, ends[0].id, ends[1].id, "near", 1.0, {}, NOW, NOW)
    return await SqlGraphs(records.transactions).add(Adding(edges=(edge,)))


async def delete_from_graph(records: SqlRecords, home: CollectionId) -> object:
    return await SqlGraphs(records.transactions).delete_nodes(source(home), ["Rome"])


async def forget(records: SqlRecords, home: CollectionId) -> object:
    memories = SqlMemories(records.transactions)
    return await memories.forget([document(home)], pinned=True, now=NOW)


async def summarize(records: SqlRecords, home: CollectionId) -> None:
    summary = NewSummary(f"summary of {home}", "recipe", "text", (), ())
    await SqlSummaries(records.transactions).add(source(home), summary)


WORKS: dict[str, Work] = {
    "delete": lambda records, home: records.delete([document(home)], now=NOW),
    "fail": lambda records, home: records.fail(document(home), "refused"),
    "put a source": lambda records, home: records.put_source(Source(SourceId(f"new {home}"), home, "new")),
    "change a source": lambda records, home: records.change_source(source(home), name="other"),
    "delete a source": lambda records, home: records.delete_source(source(home)),
    "change the model": lambda records, home: records.switch_space(home, SPACE),
    "begin a purge": lambda records, home: records.begin_purge(home),
    "add to a graph": add_to_graph,
    "delete from a graph": delete_from_graph,
    "forget": forget,
    "summarize": summarize,
}


@pytest.fixture
async def two(postgres_url: str) -> AsyncIterator[tuple[SqlRecords, SqlRecords]]:
    """The records of two processes, as the server sees them."""
    first, second = await open_records(postgres_url), await open_records(postgres_url)
    for home in (HERE, THERE):
        await first.create_collection(shelf(home))
        await first.put_source(notes(source(home), home))
        await first.write([prepared(document(home), "tides", collection=home, source=source(home))])
    yield first, second
    await first.close()
    await second.close()


async def held(records: SqlRecords, home: CollectionId) -> tuple[asyncio.Task[bool], Event]:
    """A writer of the collection that stays in its transaction until the event is set."""
    begun, go = Event(), Event()

    def hold(_: object) -> bool:
        begun.set()
        return go.wait(60.0)

    task = asyncio.create_task(records.transactions.write(hold, lock=home))
    assert await asyncio.to_thread(begun.wait, 60.0)
    return task, go


@pytest.mark.parametrize("name", WORKS)
async def test_it_waits_for_writers_of_its_collection_alone(
    two: tuple[SqlRecords, SqlRecords], name: str
) -> None:
    writer, go = await held(two[0], HERE)
    await asyncio.wait_for(WORKS[name](two[1], THERE), 30.0)
    waiting = asyncio.ensure_future(WORKS[name](two[1], HERE))
    assert await asyncio.wait([waiting], timeout=0.3) == (set(), {waiting})
    go.set()
    assert await writer
    await waiting
    assert await two[0].check() == []


async def test_rows_of_two_collections_and_unknown_ones_wait_for_all(
    two: tuple[SqlRecords, SqlRecords],
) -> None:
    writer, go = await held(two[0], HERE)
    for ids in ([document(HERE), document(THERE)], [document(THERE), DocumentId("unknown")]):
        waiting = asyncio.create_task(two[1].delete(ids, now=NOW))
        assert await asyncio.wait([waiting], timeout=0.3) == (set(), {waiting})
        go.set()
        assert (await waiting).documents >= 1
        await writer
        writer, go = await held(two[0], HERE)
        await two[0].transactions.read(lambda _: None)
        await two[1].write([prepared(document(THERE), "tides", collection=THERE, source=source(THERE))])
    go.set()
    assert await writer
