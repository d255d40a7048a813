"""However the rows are cut, merged, replaced and reopened, the embedded index answers as the exact one."""

import asyncio
import tempfile
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.index_strategies import (
    BM25,
    DIMENSIONS,
    NOON,
    assert_as_exact,
    filters,
    operations,
    perform,
    probes,
    rows,
)
from tests.repetitions import tries
from tests.support.journal import Journal, make_chunk

from conspectus.index.bm25 import Bm25, Corpus, best
from conspectus.index.segments.build import Options
from conspectus.index.segments.columns import Columns, ColumnWriter
from conspectus.index.segments.merge import Merger
from conspectus.index.segments.segment import (
    NewestRows,
    SegmentView,
    Shape,
    build_in_memory,
    merge_in_memory,
)
from conspectus.index.segments.store import SegmentsIndex
from conspectus.model.filter import And, Between, Eq, Exists, Filter, Or, matches
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.ports import Probe


@given(st.lists(rows, min_size=1, max_size=8), st.lists(filters, min_size=1, max_size=8))
@settings(max_examples=tries(400))
@example([make_chunk(1, "", metadata={"a": 2**53 + 1})], [Eq(("a",), 2.0**53), Between(("a",), 2.0**53)])
@example([make_chunk(1, "", metadata={"a": [None]})], [Exists(("a",)), Between(("a",))])
@example(
    [make_chunk(1, "", metadata={"a": "2024-05-01T12:00Z"}), make_chunk(2, "", metadata={"a": "b"})],
    [Between(("a",), NOON, "a"), Between(("a",), NOON, "1"), Between(("a",), "3", NOON + timedelta(1))],
)
def test_columns_mean_what_matches_means(stored: list[IndexedChunk], conditions: list[Filter]) -> None:
    writer = ColumnWriter()
    for chunk in stored:
        writer.add(chunk)
    columns = Columns(writer.finish())
    for condition in conditions:
        expected = [matches(condition, chunk.row()) for chunk in stored]
        assert columns.mask(condition).tolist() == expected, condition


def spread_ids(cuts: list[list[IndexedChunk]]) -> list[list[IndexedChunk]]:
    """The chunks with ids of their own, those of each cut among those of the others."""
    flat = [(cut_number, chunk) for cut_number, cut in enumerate(cuts) for chunk in cut]
    order = np.random.default_rng(len(flat)).permutation(len(flat)).tolist()
    result: list[list[IndexedChunk]] = [[] for _ in cuts]
    for number, (cut_number, chunk) in zip(order, flat, strict=True):
        result[cut_number].append(replace(chunk, chunk=replace(chunk.chunk, id=ChunkId(number + 1))))
    return [sorted(cut, key=_id) for cut in result]


def _id(chunk: IndexedChunk) -> int:
    return chunk.chunk.id


@given(st.lists(st.lists(rows, max_size=6), min_size=1, max_size=4), st.sets(st.integers(1, 24)))
@settings(max_examples=tries(300))
def test_merged_segments_are_those_that_would_be_written(
    cuts: list[list[IndexedChunk]], dead: set[int]
) -> None:
    shape = Shape(DIMENSIONS, Bm25(), 10**6, 10**6)
    given_rows = spread_ids(cuts)
    views = [
        SegmentView(build_in_memory(cut, shape, str.split)).without((i, i) for i in dead)
        for cut in given_rows
    ]
    merged = merge_in_memory(views, shape)
    live = sorted((chunk for cut in given_rows for chunk in cut if _id(chunk) not in dead), key=_id)
    written = build_in_memory(live, shape, str.split)
    assert merged.arrays.keys() == written.arrays.keys()
    for name, expected in written.arrays.items():
        assert merged.arrays[name].dtype == expected.dtype, name
        assert merged.arrays[name].tobytes() == expected.tobytes(), name
    assert merged.vectors.tobytes() == written.vectors.tobytes()
    portions = Merger([(view.segment.arrays, view.dead) for view in views]).portions(
        [view.segment.vectors for view in views], maximum=3
    )
    assert b"".join(portion.tobytes() for portion in portions) == written.vectors.tobytes()


@given(st.lists(st.lists(rows, max_size=3), min_size=1, max_size=6))
@settings(max_examples=tries(100))
def test_rows_that_are_extended_are_those_that_would_be_written(cuts: list[list[IndexedChunk]]) -> None:
    shape = Shape(DIMENSIONS, Bm25(), 10**6, 10**6)
    newest = NewestRows(shape)
    segments = [newest.with_chunks(cut, str.split) for cut in ids_in_order(cuts)]
    for size, segment in enumerate(segments, start=1):
        every = [chunk for cut in ids_in_order(cuts)[:size] for chunk in cut]
        written = build_in_memory(every, shape, str.split)
        for name, expected in written.arrays.items():
            assert segment.arrays[name].tobytes() == expected.tobytes(), name
        assert segment.vectors.tobytes() == written.vectors.tobytes()


def ids_in_order(cuts: list[list[IndexedChunk]]) -> list[list[IndexedChunk]]:
    """The chunks with ids of their own, those of each cut after those of the cuts before."""
    number = count(1)
    return [
        [replace(chunk, chunk=replace(chunk.chunk, id=ChunkId(next(number)))) for chunk in cut]
        for cut in cuts
    ]


@given(
    st.lists(st.tuples(st.lists(rows, max_size=6), st.sets(st.integers(1, 60), max_size=2)), max_size=20),
    st.lists(probes, min_size=1, max_size=3),
)
@settings(max_examples=tries(100))
def test_small_writes_are_found(
    writes: list[tuple[list[IndexedChunk], set[int]]], probes: list[Probe]
) -> None:
    asyncio.run(write_in_turn(writes, probes))


async def write_in_turn(writes: list[tuple[list[IndexedChunk], set[int]]], probes: list[Probe]) -> None:
    journal = Journal()
    with tempfile.TemporaryDirectory() as name:
        index = await open_segments(Path(name), journal, 10**6)
        given_rows = ids_in_order([new for new, _ in writes])
        for fresh, (_, gone) in zip(given_rows, writes, strict=True):
            journal.replace(gone - {_id(chunk) for chunk in fresh}, fresh)
            changes = await journal.changes_since(index.applied_sequence(), limit=10**6)
            await index.apply(changes, partial(list, fresh))
            assert (await index.status()).chunks == len(journal.live())
        await assert_as_exact(index, journal, probes)
        await index.close()


async def test_small_writes_make_few_segments(tmp_path: Path) -> None:
    journal = Journal()
    index = await open_segments(tmp_path, journal, 10**6)
    sizes = []
    for number in range(1, 201):
        chunk = make_chunk(number, f"word{number}")
        journal.put([chunk])
        await index.apply(
            await journal.changes_since(index.applied_sequence(), limit=9), partial(list, [chunk])
        )
        sizes.append((await index.status()).segments)
    assert sizes[:8] == [1] * 8
    assert max(sizes) <= 6
    await index.close()


async def open_segments(directory: Path, journal: Journal, tail_chunks: int) -> SegmentsIndex:
    options = Options(BM25, tail_chunks=tail_chunks, rest_seconds=0.0)
    return await SegmentsIndex.open(directory, journal, str.split, dimensions=DIMENSIONS, options=options)


async def compare(steps: list[tuple[str, object]], probes: list[Probe], tail_chunks: int) -> None:
    journal = Journal(batch=7)
    with tempfile.TemporaryDirectory() as name:
        index = await open_segments(Path(name), journal, tail_chunks)
        for step, value in steps:
            if step == "reopen":
                await index.close()
                index = await open_segments(Path(name), journal, tail_chunks)
            await perform(index, journal, step, value)
        await assert_as_exact(index, journal, probes)
        await index.close()


@given(
    st.lists(operations("flush", "merge", "rebuild", "purge", "reopen"), max_size=25),
    st.lists(probes, min_size=1, max_size=4),
    st.sampled_from([1, 5, 10**6]),
)
@settings(max_examples=tries(150))
def test_cuts_do_not_matter(steps: list[tuple[str, object]], probes: list[Probe], tail_chunks: int) -> None:
    asyncio.run(compare(steps, probes, tail_chunks))


def long_tailed(size: int, seed: int) -> list[IndexedChunk]:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 40, size)
    ranks = np.minimum(random.zipf(1.3, lengths.sum()), 5_000)
    texts = np.split(ranks, np.cumsum(lengths)[:-1])
    return [make_chunk(i, " ".join(map(str, text)), metadata={"n": i % 10}) for i, text in enumerate(texts)]


VIEW = SegmentView(build_in_memory(long_tailed(3_000, 1), Shape(0, Bm25(), 10**6, 10**6), str.split))


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True),
    st.integers(1, 150),
    st.sampled_from([And(), Between(("n",), 0, 5), Eq(("n",), 3), Or()]),
    st.sampled_from([1.0, 0.3, 3.0]),
)
def test_no_row_among_the_best_is_passed_over(
    ranks: list[int], limit: int, where: Filter, stretch: float
) -> None:
    corpus = Corpus(VIEW.live, int(VIEW.length * stretch))
    postings, allowed = VIEW.segment.postings, VIEW.permission(where).words
    terms = postings.find(tuple(sorted(str(rank).encode() for rank in ranks)), corpus.average)
    idf = [corpus.statistic("", count).idf for count in terms.documents.tolist()]
    norm, weights = Bm25().norm(corpus.average), 2.2 * np.array(idf)
    _, every = postings.scores(terms, weights, norm, rows=allowed.rows)
    expected = np.sort(best(allowed.rows, every, limit))
    expected = expected[every[expected] > 0.0]
    rows, scores = postings.scores(terms, weights, norm, allowed=allowed, limit=limit)
    assert rows.tolist() == allowed.rows[expected].tolist()
    assert scores.tolist() == every[expected].tolist()


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5)), unique_by=lambda pair: pair[0]),
    st.integers(0, 20),
)
def test_best_is_sorting(pairs: list[tuple[int, int]], limit: int) -> None:
    ids = np.array([number for number, _ in pairs], np.int64)
    scores = np.array([score for _, score in pairs], np.float64)
    expected = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:limit]
    assert ids[best(ids, scores, limit)].tolist() == [number for number, _ in expected]


@given(st.integers(1, 50), st.integers(1, 300), st.floats(1, 500))
def test_contributions_grow_with_counts_and_fall_with_length(count: int, length: int, average: float) -> None:
    def share(occurrences: int, terms: int) -> float:
        arrays = np.array([float(occurrences)]), np.array([float(terms)])
        return float(Bm25().contributions(1.0, *arrays, average)[0])

    assert 0.0 < share(count, length) < share(count + 1, length) < 2.2
    assert share(count, length + 1) < share(count, length)
