"""Random chunks, filters and questions for indexes, awkward ones first, and what it means that two agree."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
from hypothesis import strategies as st

from conspectus.index.bm25 import Bm25
from conspectus.index.filter_terms import NAMES_IN_FACTS
from conspectus.model.filter import (
    And,
    Between,
    Contains,
    Eq,
    Exists,
    In,
    Not,
    Or,
    Overlaps,
    among_sources,
)
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.ports import Candidates, Index, Probe
from tests.support.filters import build_leaves
from tests.support.in_memory_index import MemoryIndex
from tests.support.journal import Journal, make_chunk, unit

DIMENSIONS = 6
BM25 = Bm25(max_source_chunks=8)
"""Some sources of the random chunks have more, others fewer."""
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

texts = st.lists(st.sampled_from(["fox", "sun", "moon", "sea", "é"]), max_size=8).map(" ".join)
numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308, 2.0**53]),
    st.floats(width=16),
)
moments = st.builds(
    lambda minutes, hours: (NOON + timedelta(minutes=minutes)).astimezone(timezone(timedelta(hours=hours))),
    st.integers(-3, 3),
    st.integers(-2, 2),
)
words = st.sampled_from(["", "a", "B", "é", "e\u0301", "\ud800", "2024-05-01", "1", "true", "z" * 70])
scalars = st.one_of(numbers, st.booleans(), words, moments.map(datetime.isoformat))
values = st.recursive(
    st.none() | scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=2)
    ),
    max_leaves=5,
)
periods = st.builds(lambda a, b: Period(min(a, b), max(a, b)), moments, moments)
rows = st.builds(
    make_chunk,
    st.integers(0, 9),
    texts,
    metadata=st.dictionaries(st.sampled_from(["a", "b", ""]), values, max_size=3),
    position=st.integers(0, 2),
    author=st.none() | words,
    title=words,
    key=st.lists(words, min_size=1, max_size=3).map("/".join),
    thread=st.none() | words,
    sequence=st.none() | st.integers(-2, 2),
    occurred=st.none() | periods,
    recorded=moments,
)

paths = st.lists(st.sampled_from(["a", "b", ""]), max_size=3).map(tuple)
fields = st.one_of(
    paths,
    st.sampled_from(
        ["author", "thread", "sequence", "position", "recorded", "kind", "occurred", *NAMES_IN_FACTS]
    ),
)
bounds = st.one_of(numbers, st.booleans(), words, moments)
leaves = st.one_of(
    build_leaves(Eq, fields, bounds),
    build_leaves(In, fields, st.lists(bounds, max_size=3).map(tuple)),
    build_leaves(Between, fields, st.none() | bounds, st.none() | bounds),
    build_leaves(Exists, fields),
    build_leaves(Contains, fields, words | st.sampled_from(["É", "FOX", "2024", "Z"])),
    build_leaves(Overlaps, st.none() | moments, st.none() | moments),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


def chunk_of(number: int, text: str, seed: int | None, group: int, source: str) -> IndexedChunk:
    vector = None
    if seed is not None:
        vector = unit(np.random.default_rng(seed).standard_normal(DIMENSIONS))
    fields = {"title": text[:3], "source": source}
    return make_chunk(number, text, vector=vector, metadata={"group": group}, **fields)


sources = st.sampled_from(["source", "another", "ß"])
chunks = st.builds(
    chunk_of, st.integers(0, 60), texts, st.none() | st.integers(0, 9), st.integers(0, 3), sources
)
probes = st.builds(
    Probe,
    st.sampled_from(
        [
            And(),
            Eq(("group",), 1),
            Not(Eq(("group",), 1)),
            In(("group",), (0, 3)),
            Or(),
            among_sources(["source", "ß"]),
            And((among_sources(["another"]), Not(Eq(("group",), 1)))),
        ]
    ),
    st.none() | texts,
    st.none()
    | st.integers(0, 9).map(lambda seed: unit(np.random.default_rng(seed).standard_normal(DIMENSIONS))),
    st.integers(0, 12),
    sources=st.just(()) | st.lists(sources, max_size=2, unique=True).map(tuple),
)


def operations(*others: str) -> st.SearchStrategy[tuple[str, object]]:
    """Steps of a history: what is written, how much of it is applied, and what else is done to the index."""
    return st.one_of(
        st.tuples(st.just("put"), st.lists(chunks, min_size=1, max_size=12)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 60), min_size=1, max_size=12)),
        st.tuples(st.just("apply"), st.integers(1, 30)),
        st.tuples(st.sampled_from(others), st.none()),
    )


async def perform(index: Index, journal: Journal, name: str, value: object) -> None:
    """Take a step; to open the index again is left to those who know how."""
    match name, value:
        case "put", list():
            journal.put(value)
        case "remove", list():
            journal.remove(value)
        case "apply", int():
            await index.apply(await journal.changes_since(index.applied_sequence(), limit=value))
        case "flush", _:
            await index.flush()
        case "merge", _:
            await index.flush(merge=True)
        case "rebuild", _:
            await index.rebuild()
        case "purge", _:
            await index.purge()


async def catch_up(index: Index, journal: Journal) -> None:
    """Apply all that is new, at once."""
    await index.apply(await journal.changes_since(index.applied_sequence(), limit=10**6))


async def assert_as_exact(index: Index, journal: Journal, probes: list[Probe]) -> None:
    """When it has caught up it finds, scores and counts as the exact index does."""
    reference = MemoryIndex(journal, str.split, bm25=BM25)
    await catch_up(index, journal)
    await catch_up(reference, journal)
    for probe in probes:
        assert_same(await index.search(probe), await reference.search(probe))
        ids = np.arange(0, 60, 3)
        assert_same(await index.score(ids, probe), await reference.score(ids, probe))
    assert await index.check() == []
    status, expected = await index.status(), await reference.status()
    assert (status.chunks, status.vectors) == (expected.chunks, expected.vectors)


def assert_same(first: Candidates, second: Candidates) -> None:
    assert first.ids.tolist() == second.ids.tolist()
    assert first.words.tolist() == second.words.tolist()
    assert np.array_equal(first.cosine, second.cosine, equal_nan=True)
    assert (first.terms, first.total) == (second.terms, second.total)
