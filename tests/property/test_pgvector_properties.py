"""Whatever the rows and the filters are, the index in PostgreSQL admits and scores as the exact one does."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.index_strategies import (
    BM25,
    DIMENSIONS,
    assert_same,
    catch_up,
    filters,
    operations,
    perform,
    probes,
    rows,
)
from tests.pgvector_options import options_at
from tests.repetitions import tries
from tests.support.in_memory_index import MemoryIndex
from tests.support.journal import Journal, make_chunk
from tests.support.postgres_server import PostgresProcess

from conspectus.index.pgvector.building import forget
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.store import PgvectorIndex
from conspectus.model.filter import Between, Eq, Exists, Filter, In, Not, matches
from conspectus.model.index import IndexedChunk
from conspectus.ports import Probe

LASTING = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def url(postgres: PostgresProcess) -> Iterator[str]:
    with postgres.fresh() as fresh:
        yield fresh


def analyse(text: str) -> Sequence[str]:
    return text.split()


@asynccontextmanager
async def create_location(
    url: str, dimensions: int, *, graph_from: int = 20_000, max_listed: int = 10_000
) -> AsyncIterator[PgvectorOptions]:
    """A place for one index, where there is none yet."""
    async with options_at(url, dimensions, graph_from=graph_from, max_listed=max_listed) as options:
        await options.database.write(lambda connection: forget(connection, options.name))
        yield options


async def find_admitted(url: str, stored: list[IndexedChunk], conditions: list[Filter]) -> list[list[int]]:
    journal = Journal()
    journal.put(stored)
    every = np.array([chunk.chunk.id for chunk in stored])
    async with create_location(url, 0) as location:
        index = await PgvectorIndex.open(location, journal, analyse)
        await catch_up(index, journal)
        return [(await index.score(every, Probe(where, "fox", None, 1))).ids.tolist() for where in conditions]


@given(st.lists(rows, min_size=1, max_size=12), st.lists(filters, min_size=1, max_size=40))
@settings(max_examples=tries(40), deadline=None, suppress_health_check=LASTING)
@example([make_chunk(1, "", metadata={"a": 2**53 + 1})], [Eq(("a",), 2.0**53), Between(("a",), 2.0**53)])
@example([make_chunk(1, "", metadata={"a": [None]})], [Exists(("a",)), Between(("a",))])
@example(
    [make_chunk(1, "", author="2024-05-01T12:00Z")],
    [Between("author", "2", "3"), Exists("author"), Eq("author", NOON), Between("author", "2", NOON)],
)
@example(
    [make_chunk(1, "", sequence=2**70), make_chunk(2, "", sequence=2**63 - 1), make_chunk(3, "")],
    [Eq("sequence", 2**70), Between("sequence", 2**69), Between("sequence", float("-inf"), 2**70)],
)
@example(
    [make_chunk(1, "", metadata={"a": 10**4_000})], [Eq(("a",), 10**4_000), Exists(("a",)), Exists("thread")]
)
@example(
    [make_chunk(1, "", thread="t" * 5_000), make_chunk(2, "")], [Eq("thread", "t" * 5_000), Exists("thread")]
)
@example([make_chunk(1, "", author="100%(f0)s")], [Eq("author", "100%(f0)s"), Not(In("author", ("%s", "'")))])
def test_filters_mean_what_matches_means(
    url: str, stored: list[IndexedChunk], conditions: list[Filter]
) -> None:
    stored = list({chunk.chunk.id: chunk for chunk in stored}.values())
    id_lists = asyncio.run(find_admitted(url, stored, conditions))
    for where, ids in zip(conditions, id_lists, strict=True):
        expected = sorted(chunk.chunk.id for chunk in stored if matches(where, chunk.row()))
        assert ids == expected, where


steps_of_a_history = st.one_of(
    operations("rebuild", "purge", "reopen", "search"), st.tuples(st.just("many"), st.integers(1, 2))
)


async def perform_step(index: PgvectorIndex, journal: Journal, name: str, value: object) -> None:
    match name, value:
        case "many", int():
            while changes := await journal.changes_since(index.applied_sequence(), limit=value):
                await index.apply(changes)
        case "search", _:
            await index.search(Probe(Exists(("group",)), "fox sun", None, 5))
        case _:
            await perform(index, journal, name, value)


async def compare_with_reference(
    url: str, steps: list[tuple[str, object]], probes: list[Probe], *, graph_from: int, max_listed: int
) -> None:
    journal = Journal(batch=7)
    async with create_location(url, DIMENSIONS, graph_from=graph_from, max_listed=max_listed) as location:
        location = replace(location, bm25=BM25)
        index = await PgvectorIndex.open(location, journal, analyse)
        reference = MemoryIndex(journal, analyse, bm25=BM25)
        for step, value in steps:
            if step == "reopen":
                await index.close()
                index = await PgvectorIndex.open(location, journal, analyse)
            await perform_step(index, journal, step, value)
        await catch_up(index, journal)
        await catch_up(reference, journal)
        again = await PgvectorIndex.open(location, journal, analyse)
        for probe in probes:
            for opened in (index, again):
                assert_same(await opened.search(probe), await reference.search(probe))
                ids = np.arange(0, 60, 3)
                assert_same(await opened.score(ids, probe), await reference.score(ids, probe))
        assert await index.check() == []
        status, expected = await index.status(), await reference.status()
        assert (status.chunks, status.vectors) == (expected.chunks, expected.vectors)
        await index.close()
        await again.close()


@given(st.lists(steps_of_a_history, max_size=15), st.lists(probes, min_size=1, max_size=4))
@settings(max_examples=tries(40), deadline=None, suppress_health_check=LASTING)
def test_the_history_does_not_matter(url: str, steps: list[tuple[str, object]], probes: list[Probe]) -> None:
    asyncio.run(compare_with_reference(url, steps, probes, graph_from=20_000, max_listed=10_000))


@given(st.lists(steps_of_a_history, max_size=15), st.lists(probes, min_size=1, max_size=4))
@settings(max_examples=tries(40), deadline=None, suppress_health_check=LASTING)
def test_nor_does_a_graph_nor_that_rows_are_not_listed(
    url: str, steps: list[tuple[str, object]], probes: list[Probe]
) -> None:
    asyncio.run(compare_with_reference(url, steps, probes, graph_from=5, max_listed=2))
