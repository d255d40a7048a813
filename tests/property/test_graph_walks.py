"""Random graphs and random histories of facts: what is stored answers as what is kept in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.support.graph_samples import BOTH, PEOPLE, PLACES, adding, edge, event, node, year
from tests.support.in_memory_graphs import MemoryGraphs
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import SHELF, notes, prepared, shelf

from conspectus.errors import ConspectusError
from conspectus.model.graph import DIRECTIONS, Edge, Traversal
from conspectus.model.ids import DocumentId
from conspectus.records.graph.store import SqlGraphs
from conspectus.records.store import SqlRecords, open_records

Stores = Callable[[], AbstractAsyncContextManager[tuple[SqlRecords, SqlGraphs, MemoryGraphs]]]
NAMES = "abcde"
DOCUMENTS = ("d1", "d2")
SOME_YEARS = st.none() | st.integers(2000, 2002).map(year)
SPANS = st.tuples(SOME_YEARS, SOME_YEARS).filter(lambda span: None in span or span[0] <= span[1])
WEIGHTS = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0])


@st.composite
def nodes(draw: st.DrawFn) -> list[Any]:
    """Some of the names as nodes of either graph, some of them dated."""
    nodes = []
    for graph in (PEOPLE, PLACES):
        for name in NAMES:
            begins, ends = draw(SPANS) if draw(st.integers(0, 3)) == 0 else (None, None)
            if graph is PEOPLE or name < "c":
                nodes.append(node(name, graph=graph, valid_from=begins, valid_until=ends))
    return nodes


@st.composite
def edges(draw: st.DrawFn) -> Edge:
    """An edge between two nodes of a graph."""
    graph = draw(st.sampled_from([PEOPLE, PEOPLE, PLACES]))
    names = st.sampled_from(NAMES if graph is PEOPLE else "ab")
    begins, ends = draw(SPANS)
    fields = {"type": draw(st.sampled_from(["x", "y"])), "weight": draw(WEIGHTS)}
    proof = draw(st.none() | st.sampled_from(DOCUMENTS))
    ends_and_proof = {"valid_from": begins, "valid_until": ends, "evidence": proof}
    return edge(draw(names), draw(names), graph=graph, **fields, **ends_and_proof)


WALKS = st.builds(
    Traversal,
    hops=st.integers(0, 5),
    types=st.sampled_from([(), ("x",), ("x", "y")]),
    min_weight=st.sampled_from([0.0, 0.3, 0.95]),
    direction=st.sampled_from(DIRECTIONS),
    at=SOME_YEARS,
    offset=st.integers(0, 4),
    limit=st.integers(1, 6) | st.just(100),
)
STARTS = st.lists(st.sampled_from(NAMES), max_size=3)
GRAPHS = st.sampled_from([(PEOPLE.id,), (PLACES.id,), BOTH, BOTH[::-1]])


async def fill(records: SqlRecords) -> None:
    await records.create_collection(shelf())
    for source in (notes(), PEOPLE, PLACES):
        await records.put_source(source)
    await records.write([prepared(name, name) for name in DOCUMENTS])


@cache
def empty_database() -> bytes:
    """A database with two graphs in which nothing is."""

    async def make(path: Path) -> None:
        records = await open_records(path)
        await fill(records)
        await records.purge()
        await records.close()

    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.sqlite"
        asyncio.run(make(path))
        return path.read_bytes()


@asynccontextmanager
async def stores() -> AsyncIterator[tuple[SqlRecords, SqlGraphs, MemoryGraphs]]:
    """The same empty graphs twice."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.sqlite"
        await asyncio.to_thread(path.write_bytes, await asyncio.to_thread(empty_database))
        records = await open_records(path)
        try:
            yield records, SqlGraphs(records.transactions), reference()
        finally:
            await records.close()


def reference() -> MemoryGraphs:
    remembered = MemoryGraphs(PEOPLE, PLACES)
    remembered.write(*DOCUMENTS)
    return remembered


@pytest.fixture(scope="module")
def in_postgres(postgres: PostgresProcess) -> Iterator[Stores]:
    """The same in a database that is emptied each time."""
    with postgres.fresh() as url:
        records = asyncio.run(open_records(url))

        @asynccontextmanager
        async def emptied() -> AsyncIterator[tuple[SqlRecords, SqlGraphs, MemoryGraphs]]:
            if await records.collection(SHELF) is not None:
                await records.delete_collection(SHELF)
            numbers = text("UPDATE counters SET value = 0")
            await records.transactions.write(lambda connection: connection.execute(numbers))
            await fill(records)
            yield records, SqlGraphs(records.transactions), reference()

        yield emptied
        asyncio.run(records.close())


async def compare_walks(stores: Stores, there: Any, links: list[Edge], questions: list[Any]) -> None:
    async with stores() as (_, stored, remembered):
        for graphs in (stored, remembered):
            for home in (PEOPLE, PLACES):
                await graphs.add(adding(*(member for member in there if member.graph == home)))
            await graphs.add(adding(*links))
        for graphs, starts, walk in questions:
            expected = await remembered.walk(graphs, starts, walk)
            assert list(await stored.walk(graphs, starts, walk)) == list(expected)


EDGES = st.lists(edges(), max_size=40)
ASKED = st.lists(st.tuples(GRAPHS, STARTS, WALKS), min_size=5, max_size=20)


@given(nodes(), EDGES, ASKED)
def test_walks_are_those_of_the_reference(there: Any, links: list[Edge], questions: list[Any]) -> None:
    asyncio.run(compare_walks(stores, there, links, questions))


@settings(max_examples=15)
@given(nodes(), EDGES, ASKED)
def test_walks_in_postgresql_are_those_of_the_reference(
    in_postgres: Stores, there: Any, links: list[Edge], questions: list[Any]
) -> None:
    asyncio.run(compare_walks(in_postgres, there, links, questions))


@st.composite
def facts(draw: st.DrawFn) -> Edge:
    """Where one and the same node leads, since one year or another."""
    begins, proof = draw(SOME_YEARS), draw(st.none() | st.sampled_from(DOCUMENTS))
    ends = draw(st.none() | st.none() | st.just(year(2002)))
    target = draw(st.sampled_from("bcd"))
    return edge("a", target, type="x", valid_from=begins, valid_until=ends, evidence=proof)


STEPS = st.lists(
    st.tuples(st.just("add"), st.lists(edges(), min_size=1, max_size=5), st.booleans())
    | st.tuples(st.just("add"), st.lists(facts(), min_size=1, max_size=5), st.just(True))
    | st.tuples(st.just("forget"), st.sampled_from(DOCUMENTS), st.none())
    | st.tuples(st.just("merge"), st.sampled_from(NAMES), st.sampled_from(NAMES))
    | st.tuples(st.just("split"), st.integers(1, 4), st.none()),
    max_size=12,
)


async def perform_step(step: Any, graphs: SqlGraphs | MemoryGraphs, records: SqlRecords | None) -> Any:
    """What comes of a step: the answer, or the kind of error."""
    kind, what, how = step
    try:
        match kind:
            case "add":
                return [*(await graphs.add(adding(*what, single=how)))]
            case "forget" if records is not None:
                await records.delete([DocumentId(what)])
            case "forget" if isinstance(graphs, MemoryGraphs):
                graphs.forget(what)
            case "merge" if what != how:
                return await graphs.merge(PEOPLE.id, what, [how], event("merge", (what, how), (what,)))
            case "split":
                return [*(await graphs.split(PEOPLE.id, what, event("split", (), ())))]
    except ConspectusError as error:
        return type(error)


async def compare_histories(stores: Stores, steps: list[Any]) -> None:
    async with stores() as (records, stored, remembered):
        for graphs in (stored, remembered):
            await graphs.add(adding(*map(node, NAMES)))
            await graphs.add(adding(*(node(name, graph=PLACES) for name in "ab")))
        for step in steps:
            assert await perform_step(step, stored, records) == await perform_step(step, remembered, None)
            expected = await remembered.edges(BOTH, limit=100)
            page = await stored.edges(BOTH, limit=100)
            assert sorted(page.edges, key=str) == sorted(expected.edges, key=str)
            assert await stored.read_at(PEOPLE.id, year(2001)) == await remembered.read_at(
                PEOPLE.id, year(2001)
            )
            assert await stored.nodes_by_name(BOTH, NAMES) == await remembered.nodes_by_name(BOTH, NAMES)
        assert await records.check() == []


@given(STEPS)
def test_histories_end_as_in_the_reference(steps: list[Any]) -> None:
    asyncio.run(compare_histories(stores, steps))


@settings(max_examples=15)
@given(STEPS)
def test_histories_in_postgresql_end_as_in_the_reference(in_postgres: Stores, steps: list[Any]) -> None:
    asyncio.run(compare_histories(in_postgres, steps))
