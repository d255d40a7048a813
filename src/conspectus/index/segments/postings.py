"""Postings: for each term its rows and counts, and an upper bound of its contribution to a score.

Those of many texts are made in a child process, while this one writes the next texts.
"""

import json
import select
import sys
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import count
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse, Bm25, occurrences
from conspectus.index.segments.columns import Allowed, Arrays, pack_texts, ranks
from conspectus.index.segments.kernels import KERNELS, PostingArrays, TermArrays, as_arrays

Rows = NDArray[np.uint32]
Counts = NDArray[np.unsignedinteger[Any]]
RowNumbers = NDArray[np.int64]

_ROW_BITS, _COUNT_BITS = 20, 16
_ROUNDING = 1.0001
"""Factor that covers the rounding errors of bounds in single precision."""
_POSTINGS_PER_ROW = 16
"""Allowed rows are scored one by one if there are at least this many postings for each."""
_MIN_TEXTS_PER_REQUEST = 100
_START_TEXTS = 2_000
"""Number of texts within `_IDLE_SECONDS` after which the process is started."""
_IDLE_SECONDS = 10
_ANSWER_SECONDS = 30
_READY = b" "
"""What the process writes when it can answer."""
MAX_ROWS = 1 << _ROW_BITS

MakePostings: TypeAlias = Callable[[Sequence[str], Bm25], Arrays | None]
"""Makes the postings of many texts elsewhere; None if the caller is to make them."""


class PostingWriter:
    """Collects the terms of rows one by one, at most `MAX_ROWS` rows."""

    def __init__(self) -> None:
        self._terms: defaultdict[str, int] = defaultdict(count().__next__)
        self._numbers = array("I")
        self._counts = array("H")
        self._distinct = array("I")
        self._lengths = array("I")

    def add(self, text: str, analyse: Analyse) -> None:
        """Append a row."""
        counts, length = occurrences(text, analyse)
        self._numbers.extend(map(self._terms.__getitem__, counts))
        self._counts.extend(counts.values())
        self._distinct.append(len(counts))
        self._lengths.append(length)

    def finish(self, bm25: Bm25) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        ordered = sorted(self._terms)
        return stored_postings(
            pack_texts(ordered),
            ranks([*map(self._terms.__getitem__, ordered)])[np.frombuffer(self._numbers, np.uint32)],
            np.repeat(np.arange(len(self._distinct)), np.frombuffer(self._distinct, "I")),
            np.frombuffer(self._counts, np.uint16),
            lengths=np.array(self._lengths, np.uint32),
            bm25=bm25,
        )


def stored_postings(
    terms: tuple[NDArray[np.uint8], NDArray[np.int64]],
    numbers: NDArray[Any],
    rows: NDArray[Any],
    counts: NDArray[np.uint16],
    *,
    lengths: NDArray[np.uint32],
    bm25: Bm25,
) -> dict[str, NDArray[Any]]:
    """Return the arrays of postings given in any order. `numbers` are positions in the packed `terms`."""
    packed = numbers.astype(np.uint64)
    packed <<= _ROW_BITS + _COUNT_BITS
    packed |= rows.astype(np.uint64) << _COUNT_BITS
    packed |= counts
    packed.sort()
    blob, offsets = terms
    starts = np.searchsorted(packed, np.arange(len(offsets), dtype=np.uint64) << (_ROW_BITS + _COUNT_BITS))
    posting_rows = (packed >> _COUNT_BITS & (MAX_ROWS - 1)).astype(np.uint32)
    counts = (packed & ((1 << _COUNT_BITS) - 1)).astype(np.uint16)
    return {
        "terms": blob,
        "terms.offsets": offsets,
        "terms.start": starts.astype(np.int64),
        "terms.bound": _bounds(bm25, counts, lengths, posting_rows, starts),
        "postings.row": posting_rows,
        "postings.count": counts.astype(np.uint8) if counts.max(initial=0) < 256 else counts,
        "lengths": lengths,
    }


class PostingProcess:
    """A child process that makes the postings of many texts: it calls `make_postings`.

    It is started when 2,000 texts came within a short time, and ends when it is idle. `postings` returns
    None while it starts, when it is busy, if it fails, and without a command.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._child: Popen[bytes] | None = None
        self._is_ready = self._is_closed = False
        self._recent, self._last = 0, 0.0
        self._lock = Lock()

    def postings(self, language: str | None, texts: Sequence[str], bm25: Bm25) -> Arrays | None:
        """See `MakePostings`. Safe for many threads."""
        if len(texts) < _MIN_TEXTS_PER_REQUEST or not self._lock.acquire(blocking=False):
            return None
        try:
            child = self._awake(len(texts))
            request = {"language": language, "bm25": asdict(bm25), "texts": texts}
            return None if child is None else _request_postings(child, json.dumps(request).encode() + b"\n")
        except (OSError, ValueError, EOFError):
            self._stop()
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Stop the process for good, after the texts that it has."""
        with self._lock:
            self._is_closed = True
            self._stop()

    def _awake(self, texts: int) -> Popen[bytes] | None:
        """Return the process if it is ready; start it when it is time."""
        now = time.monotonic()
        self._recent = texts + (self._recent if now - self._last < _IDLE_SECONDS else 0)
        self._last = now
        if self._child is not None and self._child.poll() is not None:
            self._stop()
        if self._child is None and self._command and self._recent >= _START_TEXTS and not self._is_closed:
            self._child = Popen(self._command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        if self._child is not None and not self._is_ready:
            self._is_ready = _has_written(self._child, 0) and _pipes(self._child)[1].read(1) == _READY
        return self._child if self._is_ready else None

    def _stop(self) -> None:
        child, self._child, self._is_ready, self._recent = self._child, None, False, 0
        if child is not None:
            child.kill()
            with suppress(OSError), child:
                pass


def _pipes(child: Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Return the input and the output of the process."""
    if child.stdin is None or child.stdout is None:
        raise OSError("the process has no pipes")
    return child.stdin, child.stdout


def _has_written(child: Popen[bytes], seconds: float) -> bool:
    """Return whether the process has written something, or has ended."""
    return bool(select.select([_pipes(child)[1]], [], [], seconds)[0])


def _request_postings(child: Popen[bytes], request: bytes) -> Arrays:
    """Return the answer of the process. Raises OSError, ValueError or EOFError if it fails."""
    target, source = _pipes(child)
    target.write(request)
    target.flush()
    if not _has_written(child, _ANSWER_SECONDS):
        raise TimeoutError
    header = json.loads(source.readline())
    arrays = {name: np.frombuffer(source.read(size), kind) for name, kind, size in header}
    if any(arrays[name].nbytes != size for name, _, size in header):
        raise EOFError
    return arrays


def make_postings(analyser: Callable[[str | None], Analyse]) -> None:
    """Answer the requests of a `PostingProcess` until the input ends, or none came for a while."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    target.write(_READY)
    target.flush()
    while select.select([source], [], [], _IDLE_SECONDS)[0] and (line := source.readline()):
        request = json.loads(line)
        analyse, writer = analyser(request["language"]), PostingWriter()
        for text in request["texts"]:
            writer.add(text, analyse)
        arrays = writer.finish(Bm25(**request["bm25"]))
        header = [(name, values.dtype.str, values.nbytes) for name, values in arrays.items()]
        target.write(json.dumps(header).encode() + b"\n")
        for values in arrays.values():
            target.write(values.tobytes())
        target.flush()


@dataclass(frozen=True, slots=True)
class SegmentTerms:
    """The terms of a query in one segment, sorted by name; `positions` are -1 for missing ones."""

    positions: NDArray[np.int64]
    documents: NDArray[np.int64]
    bounds: NDArray[np.float64]


class Postings:
    """The keyword index of a segment."""

    def __init__(self, arrays: Arrays) -> None:
        self._terms = arrays["terms"]
        self._offsets = arrays["terms.offsets"]
        self._bounds = arrays["terms.bound"]
        self.lengths: NDArray[np.uint32] = arrays["lengths"]
        self._arrays = PostingArrays(
            arrays["postings.row"], arrays["postings.count"], self.lengths, arrays["terms.start"]
        )
        self.length = int(self.lengths.sum(dtype=np.int64))
        self._mean = mean(self.lengths)

    def find(self, names: tuple[bytes, ...], average: float) -> SegmentTerms:
        """Return how many rows have each term, dead ones included. `average` is the mean length of the
        corpus.

        A contribution grows with the mean length at most proportionally, so the stored bound can be scaled.
        """
        positions = np.frombuffer(KERNELS.positions(self._terms, self._offsets, names), np.int64)
        is_present = positions >= 0
        documents, bounds = np.zeros(len(names), np.int64), np.zeros(len(names))
        present = positions[is_present]
        documents[is_present] = self._arrays.starts[present + 1] - self._arrays.starts[present]
        bounds[is_present] = self._bounds[present] * (max(1.0, average / self._mean) * _ROUNDING)
        return SegmentTerms(positions, documents, bounds)

    def documents(self, positions: NDArray[np.int64], rows: Rows) -> NDArray[np.int64]:
        """Return how many of these sorted rows have each term; 0 for a missing one."""
        arrays = self._arrays
        return np.frombuffer(KERNELS.documents(arrays.rows, arrays.starts, positions, rows), np.int64)

    def rows(self, position: int) -> Rows:
        """Return the rows with the term at a position, sorted."""
        return self._arrays.rows[self._arrays.starts[position] : self._arrays.starts[position + 1]]

    def scores(
        self,
        terms: SegmentTerms,
        weights: NDArray[np.float64],
        norm: tuple[float, float],
        *,
        rows: RowNumbers | None = None,
        allowed: Allowed | None = None,
        limit: int = -1,
    ) -> tuple[RowNumbers, NDArray[np.float64]]:
        """Return the exact BM25 of these rows, or of the best `limit` allowed rows."""
        mask = None
        if allowed is not None:
            rows = allowed.rows if _POSTINGS_PER_ROW * allowed.count < int(terms.documents.sum()) else None
            mask = allowed.mask if rows is None else None
        term_arrays = TermArrays(terms.positions, weights, terms.bounds)
        return as_arrays(KERNELS.words(self._arrays, term_arrays, norm, rows, mask, limit))


def saturation(
    bm25: Bm25, counts: NDArray[Any], lengths: NDArray[Any], average: float
) -> NDArray[np.float32]:
    """Return contributions as fractions of the term's weight in single precision, to select rows."""
    norms = lengths.astype(np.float32)
    norms *= np.float32(bm25.k1 * bm25.b / average)
    norms += np.float32(bm25.k1 * (1.0 - bm25.b))
    shares = counts.astype(np.float32)
    norms += shares
    shares /= norms
    return shares


def mean(lengths: NDArray[np.uint32]) -> float:
    """Return the mean length of a segment's rows, at least 1."""
    return max(float(lengths.mean(dtype=np.float64)), 1.0) if len(lengths) else 1.0


def _bounds(
    bm25: Bm25, counts: Counts, lengths: NDArray[np.uint32], rows: Rows, starts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the largest fraction of each term at the segment's own mean length."""
    if not len(counts):
        return np.zeros(0, np.float32)
    shares = saturation(bm25, counts, lengths[rows], mean(lengths))
    return np.maximum.reduceat(shares, starts[:-1])
