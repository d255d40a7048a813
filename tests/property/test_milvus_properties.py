"""Whatever the rows and the filters are, the index in Milvus admits and scores as the exact one does."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.index_strategies import (
    BM25,
    DIMENSIONS,
    assert_as_exact,
    catch_up,
    filters,
    operations,
    perform,
    probes,
    rows,
)
from tests.milvus_locations import TakenForAServer, location_in
from tests.repetitions import tries
from tests.support.journal import Journal, make_chunk
from tests.support.milvus_server import MilvusProcess

from conspectus.index.bm25 import Bm25
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.facts import fact_word, facts_of
from conspectus.index.milvus.rows import Weights
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import Between, Eq, Exists, Filter, matches
from conspectus.model.index import IndexedChunk
from conspectus.ports import Probe

LITE, ARRAYS = MilvusServer, TakenForAServer
kinds = st.sampled_from([LITE, ARRAYS])
LASTING = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


async def find_admitted(
    server: MilvusServer, stored: list[IndexedChunk], conditions: list[Filter]
) -> list[list[int]]:
    journal = Journal()
    journal.put(stored)
    with tempfile.TemporaryDirectory() as folder:
        index = await MilvusIndex.open(location_in(server, Path(folder), 0), journal, str.split)
        await catch_up(index, journal)
        every = np.array([chunk.chunk.id for chunk in stored])
        id_lists = [
            (await index.score(every, Probe(where, "fox", None, 1))).ids.tolist() for where in conditions
        ]
        for name in await server.collections():
            await server.drop(name)
    await server.close()
    return id_lists


@given(st.lists(rows, min_size=1, max_size=12), st.lists(filters, min_size=1, max_size=40), kinds)
@settings(max_examples=tries(30), deadline=None, suppress_health_check=LASTING)
@example(
    [make_chunk(1, "", metadata={"a": 2**53 + 1})],
    [Eq(("a",), 2.0**53), Between(("a",), 2.0**53)],
    MilvusServer,
)
@example([make_chunk(1, "", metadata={"a": [None]})], [Exists(("a",)), Between(("a",))], ARRAYS)
@example(
    [make_chunk(1, "", author="2024-05-01T12:00Z")],
    [Between("author", "2", "3"), Exists("author")],
    MilvusServer,
)
@example(
    [make_chunk(1, "", sequence=2**70)], [Eq("sequence", 2**70), Between("sequence", 2**69)], MilvusServer
)
def test_filters_mean_what_matches_means(
    milvus: MilvusProcess, stored: list[IndexedChunk], conditions: list[Filter], kind: type[MilvusServer]
) -> None:
    stored = list({chunk.chunk.id: chunk for chunk in stored}.values())
    id_lists = asyncio.run(find_admitted(kind(milvus.uri, seconds=20), stored, conditions))
    for where, ids in zip(conditions, id_lists, strict=True):
        expected = sorted(chunk.chunk.id for chunk in stored if matches(where, chunk.row()))
        assert ids == expected, where


async def compare_with_reference(
    server: MilvusServer, steps: list[tuple[str, object]], probes: list[Probe]
) -> None:
    journal = Journal(batch=7)
    with tempfile.TemporaryDirectory() as folder:
        location = replace(location_in(server, Path(folder), DIMENSIONS), bm25=BM25)
        index = await MilvusIndex.open(location, journal, str.split)
        for step, value in steps:
            if step == "reopen":
                index = await MilvusIndex.open(location, journal, str.split)
            await perform(index, journal, step, value)
        await assert_as_exact(index, journal, probes)
        for name in await server.collections():
            await server.drop(name)
    await server.close()


@given(
    st.lists(operations("rebuild", "purge", "reopen"), max_size=12),
    st.lists(probes, min_size=1, max_size=4),
    kinds,
)
@settings(max_examples=tries(20), deadline=None, suppress_health_check=LASTING)
def test_the_history_does_not_matter(
    milvus: MilvusProcess, steps: list[tuple[str, object]], probes: list[Probe], kind: type[MilvusServer]
) -> None:
    asyncio.run(compare_with_reference(kind(milvus.uri, seconds=20), steps, probes))


@given(
    st.dictionaries(st.integers(1, 2**32 - 3), st.integers(1, 65_535), max_size=20),
    st.integers(1, 10**6),
    st.floats(1.0, 10**5),
)
def test_counts_come_back_from_weights(counts: dict[int, int], length: int, average: float) -> None:
    weights = Weights(Bm25(), average)
    row = weights.encode_terms(counts, length) | {"length": length}
    assert {number: int(weights.counts([row], number)[0]) for number in counts} == counts
    assert weights.counts([row], 2**32 - 2).tolist() == [0.0]


@given(rows)
def test_facts_are_words_without_meaning(chunk: IndexedChunk) -> None:
    facts = facts_of(chunk.row())
    assert all(0 <= number < 2**62 for number in facts.numbers)
    assert {len(fact_word(number)) for number in facts.numbers} <= {16}
