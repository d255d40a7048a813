"""The compiled kernels and NumPy's give the same answers, and damaged arrays give no crash."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from conspectus.index.segments.columns import pack
from conspectus.index.segments.kernels import Kernels, NumpyKernels, PostingArrays, TermArrays

COMPILED: Kernels = pytest.importorskip("conspectus.index.segments._kernels")
NUMPY: Kernels = NumpyKernels()
NORM = (0.3, 0.02)
seeds = st.integers(0, 2**32 - 1)


def random_postings(random: np.random.Generator, size: int, terms: int) -> PostingArrays:
    """Rows of `size` chunks; the first terms are in nearly all of them, the last in few."""
    shares = random.random(terms) ** 4 * (random.random() < 0.9)
    rows_of_terms = [np.flatnonzero(random.random(size) < share).astype(np.uint32) for share in shares]
    starts = np.cumsum([0, *map(len, rows_of_terms)])
    maximum = 3 if random.random() < 0.5 else 70_000
    counts = random.integers(1, maximum, starts[-1])
    counts = counts.astype(np.uint8 if maximum < 256 else np.uint16)
    lengths = random.integers(0, 2 if random.random() < 0.3 else 90, size).astype(np.uint32)
    return PostingArrays(np.concatenate([np.zeros(0, np.uint32), *rows_of_terms]), counts, lengths, starts)


def random_terms(random: np.random.Generator, postings: PostingArrays) -> TermArrays:
    """Some of the terms, and one that is unknown."""
    term_count = len(postings.starts) - 1
    positions = np.append(random.permutation(term_count)[: random.integers(0, term_count + 1)], -1)
    bounds = np.full(len(positions), 1.0)
    for number, position in enumerate(positions[:-1]):
        span = slice(postings.starts[position], postings.starts[position + 1])
        counts = postings.counts[span].astype(np.float64)
        norms = NORM[0] + NORM[1] * postings.lengths[postings.rows[span]]
        bounds[number] = (counts / (counts + norms)).max(initial=0.0) * 1.0001
    return TermArrays(positions, random.random(len(positions)) * 9.0, bounds)


@given(seeds, st.sampled_from([0, 1, 40, 4_095, 4_096, 4_097, 20_000]), st.integers(0, 300))
def test_words_are_the_same(seed: int, size: int, limit: int) -> None:
    random = np.random.default_rng(seed)
    postings = random_postings(random, size, int(random.integers(1, 12)))
    terms = random_terms(random, postings)
    allowed = random.random(size) < 0.4
    for chosen_rows, mask in ((None, None), (None, allowed), (np.flatnonzero(allowed), None)):
        arguments = (postings, terms, NORM, chosen_rows, mask, limit)
        assert COMPILED.words(*arguments) == NUMPY.words(*arguments)
    rest = (postings, terms, NORM, np.flatnonzero(allowed), None, -1)
    assert COMPILED.words(*rest) == NUMPY.words(*rest)


@given(seeds, st.integers(1, 1_100), st.integers(0, 40), st.integers(-1, 20))
def test_cosines_are_the_same(seed: int, dimensions: int, count: int, limit: int) -> None:
    random = np.random.default_rng(seed)
    vectors = (random.standard_normal((60, dimensions)) * 10.0 ** random.integers(-7, 1)).astype(np.float16)
    vectors[30:] = vectors[:30]
    query = random.standard_normal(dimensions).astype(np.float32)
    rows = np.sort(random.permutation(60)[:count])
    assert COMPILED.cosines(vectors, query, rows, limit) == NUMPY.cosines(vectors, query, rows, limit)


@given(st.sets(st.binary(max_size=4), max_size=40), st.lists(st.binary(max_size=4)))
def test_positions_are_the_same(stored: set[bytes], names: list[bytes]) -> None:
    ordered = sorted(stored)
    blob, offsets = pack(ordered)
    expected = [ordered.index(name) if name in stored else -1 for name in names]
    for kernels in (COMPILED, NUMPY):
        positions = np.frombuffer(kernels.positions(blob, offsets, tuple(names)), np.int64)
        assert positions.tolist() == expected


@given(seeds, st.sampled_from([0, 1, 40, 20_000]))
def test_documents_are_the_same(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    postings = random_postings(random, size, int(random.integers(1, 12)))
    positions = np.append(random.permutation(len(postings.starts) - 1), -1)
    chosen_rows = np.flatnonzero(random.random(size) < random.random() ** 3).astype(np.uint32)
    arguments = (postings.rows, postings.starts, positions, chosen_rows)
    assert COMPILED.documents(*arguments) == NUMPY.documents(*arguments)


@given(seeds)
def test_documents_of_damaged_postings_are_counted_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    postings = random_postings(random, 9_000, 8)
    rows, starts = damage_bytes(random, postings.rows), damage_bytes(random, postings.starts)
    chosen_rows = np.arange(0, 9_000, 7, dtype=np.uint32)
    try:
        counts = np.frombuffer(COMPILED.documents(rows, starts, np.arange(-1, 8), chosen_rows), np.int64)
    except IndexError:
        return
    assert counts[0] == 0 <= counts.min() <= counts.max() <= len(chosen_rows)


def damage_bytes(random: np.random.Generator, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array with some bytes that are not what was written."""
    content = bytearray(array.tobytes())
    for position in random.integers(0, max(len(content), 1), random.integers(0, 9)):
        if content:
            content[position] = random.integers(0, 256)
    return np.frombuffer(bytes(content), array.dtype)


@given(seeds)
def test_damaged_postings_are_answered_or_refused(seed: int) -> None:
    random = np.random.default_rng(seed)
    postings = random_postings(random, 9_000, 8)
    terms = random_terms(random, postings)
    broken = PostingArrays(*(damage_bytes(random, array) for array in postings))
    for chosen_rows in (None, np.arange(0, 9_000, 7)):
        try:
            rows, scores = COMPILED.words(broken, terms, NORM, chosen_rows, None, 50)
        except IndexError:
            continue
        assert len(rows) == len(scores) <= 50 * 8
        assert set(np.frombuffer(rows, np.int64).tolist()) <= set(range(9_000))


@pytest.mark.parametrize("row", [-1, 10, 2**40, -(2**63)])
def test_rows_out_of_bounds_are_refused(row: int) -> None:
    vectors, query, rows = np.zeros((10, 8), np.float16), np.zeros(8, np.float32), np.array([row])
    postings = random_postings(np.random.default_rng(1), 10, 3)
    terms = TermArrays(np.array([0]), np.ones(1), np.ones(1))
    with pytest.raises(IndexError):
        COMPILED.cosines(vectors, query, rows, -1)
    with pytest.raises(IndexError):
        COMPILED.words(postings, terms, NORM, rows, None, -1)


@pytest.mark.parametrize("offsets", [[0, 2**40], [-5, 3], [3, 0]])
def test_offsets_out_of_bounds_are_refused(offsets: list[int]) -> None:
    blob = np.frombuffer(b"abc", np.uint8)
    with pytest.raises(IndexError):
        COMPILED.positions(blob, np.array(offsets), (b"b",))
    with pytest.raises(IndexError):
        COMPILED.documents(np.zeros(3, np.uint32), np.array(offsets), np.array([0]), np.zeros(1, np.uint32))
    postings = PostingArrays(
        np.zeros(3, np.uint32), np.ones(3, np.uint8), np.ones(9, np.uint32), np.array(offsets)
    )
    with pytest.raises(IndexError):
        COMPILED.words(postings, TermArrays(np.array([0]), np.ones(1), np.ones(1)), NORM, None, None, 5)


WITHOUT = """
import sys
sys.modules["conspectus.index.segments._kernels"] = None
import conspectus
from conspectus.index.segments.kernels import KERNELS, NumpyKernels
assert isinstance(KERNELS, NumpyKernels)
with conspectus.open(sys.argv[1]) as engine:
    engine.add("Gulls follow the tide.", wait=True)
    print(engine.retrieve("tides and gulls").hits[0].chunk.text)
"""


def test_a_store_works_without_the_compiled_kernels(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "Gulls follow the tide.\n", done.stderr
