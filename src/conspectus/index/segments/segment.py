"""A segment: an immutable part of the index, and its view without dead rows."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import IndexDamaged
from conspectus.index.bm25 import Analyse, Bm25, count_shared
from conspectus.index.changes import Range
from conspectus.index.filter_terms import content_checksum
from conspectus.index.segments.columns import Allowed, Arrays, Columns, ColumnWriter, Half, Mask, RowNumbers
from conspectus.index.segments.kernels import KERNELS, as_arrays
from conspectus.index.segments.manifest import convert_decoding_errors, map_file, open_folder, write_folder
from conspectus.index.segments.merge import Merger
from conspectus.index.segments.postings import Postings, PostingWriter, SegmentTerms
from conspectus.index.segments.recent_results import RecentResults
from conspectus.model.filter import EVERYTHING, Exists, Filter, In
from conspectus.model.index import IndexedChunk
from conspectus.ports import Floats, Ids, Vectors

if TYPE_CHECKING:
    from conspectus.index.segments.ivf import Codes

VECTORS = "vectors.bin"
CODES: Final = "conspectus.index.segments.ivf"
"""The module of codes; its library is loaded with the first of them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The configuration that all segments of an index share: the vector size (0: none) and BM25."""

    dimensions: int
    bm25: Bm25
    codes_from: int
    lists_from: int


class SegmentWriter:
    """Collects chunks in ascending order of ids. Vectors go to `sink` at once, the rest stays in memory."""

    def __init__(self, shape: Shape, sink: BinaryIO) -> None:
        self._shape = shape
        self._sink = sink
        self._ids = array("q")
        self._checksums = array("Q")
        self._present = bytearray()
        self._columns = ColumnWriter()
        self._postings = PostingWriter()
        self._absent = bytes(2 * shape.dimensions)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, chunks: Iterable[IndexedChunk], analyse: Analyse | None) -> None:
        """Append chunks, without their postings if `analyse` is None.

        Raises IndexDamaged for a vector of another size.
        """
        for chunk in chunks:
            vector = chunk.vector
            if vector is not None and len(vector) != len(self._absent):
                raise IndexDamaged(f"chunk {chunk.chunk.id}", f"its vector has {len(vector)} bytes")
            self._sink.write(self._absent if vector is None else vector)
            self._present.append(vector is not None)
            self._ids.append(chunk.chunk.id)
            self._checksums.append(content_checksum(chunk))
            self._columns.add(chunk)
            if analyse is not None:
                self._postings.add(chunk.term_text, analyse)

    def arrays(self, postings: Arrays | None = None) -> dict[str, NDArray[Any]]:
        """Return all arrays except the vectors, with these postings if they were made elsewhere.

        They are copies: further chunks may be added.
        """
        return {
            "ids": np.array(self._ids, np.int64),
            "checksums": np.array(self._checksums, np.uint64),
            "present": np.frombuffer(bytes(self._present), np.bool_),
            **self._columns.finish(),
            **(postings or self._postings.finish(self._shape.bm25)),
        }


def write_segment(folder: Path, arrays: Arrays, shape: Shape) -> None:
    """Finish a segment whose vectors are already in the folder."""
    rows, size = np.flatnonzero(arrays["present"]), len(arrays["ids"])
    if shape.dimensions and len(rows) >= shape.codes_from:
        vectors = _half(map_file(folder / VECTORS), size, shape.dimensions)
        build = import_module(CODES).build_codes
        arrays = {**arrays, **build(folder, vectors, rows, lists=len(rows) >= shape.lists_from)}
    write_folder(folder, arrays, {"rows": size})


def build_in_memory(
    chunks: Iterable[IndexedChunk], shape: Shape, analyse: Analyse, postings: Arrays | None = None
) -> "Segment":
    """Return a segment without files, with these postings if they were made elsewhere."""
    return NewestRows(shape).with_chunks(chunks, analyse, postings)


class NewestRows:
    """The rows of consecutive small writes, as one segment in memory that each of them replaces.

    Writing a few rows again costs less than merging segments of single rows, and less than searching these.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape, self._sink = shape, BytesIO()
        self._writer = SegmentWriter(shape, self._sink)
        self.segment: Segment | None = None
        """The last segment."""

    def __len__(self) -> int:
        return len(self._writer)

    def with_chunks(
        self, chunks: Iterable[IndexedChunk], analyse: Analyse, postings: Arrays | None = None
    ) -> "Segment":
        """Return a segment that has these chunks, too. Their ids must be greater."""
        self._writer.add(chunks, None if postings else analyse)
        vectors = _half(self._sink.getvalue(), len(self), self._shape.dimensions)
        self.segment = Segment(self._writer.arrays(postings), vectors)
        return self.segment

    def precede(self, last: Sequence["SegmentView"], id: int) -> bool:
        """Return whether the last view shows exactly these rows, and the id is greater than theirs."""
        return any(
            view.segment is self.segment and view.dead is None and view.segment.ids[-1] < id for view in last
        )


def open_segment(path: Path, shape: Shape) -> "Segment":
    """Map a segment's files. Raises IndexDamaged, also if they are deleted meanwhile."""
    try:
        folder = open_folder(path)
        with convert_decoding_errors([path]):
            vectors = _half(map_file(path / VECTORS), folder.facts["rows"], shape.dimensions)
            codes = (
                import_module(CODES).Codes(path, folder.arrays) if "lists.probes" in folder.arrays else None
            )
            return Segment(folder.arrays, vectors, codes=codes, gathered=shape.codes_from // 3, path=path)
    except FileNotFoundError as error:
        raise IndexDamaged(str(path), "the file is missing") from error


class Segment:
    """Immutable rows. Which of them are dead is known to `SegmentView`."""

    def __init__(
        self,
        arrays: Arrays,
        vectors: Half,
        *,
        codes: "Codes | None" = None,
        gathered: int = 0,
        path: Path | None = None,
    ) -> None:
        self.path = path
        self.arrays = arrays
        self.ids: Ids = arrays["ids"]
        self.checksums: NDArray[np.uint64] = arrays["checksums"]
        present: Mask = arrays["present"]
        self.present: Mask | None = None if present.all() else present
        self.vector_count = int(np.count_nonzero(present))
        self.columns = Columns(arrays)
        self.postings = Postings(arrays)
        self.vectors = vectors
        self._codes = codes
        self._gathered = gathered

    def __len__(self) -> int:
        return len(self.ids)

    def rows_in(self, ranges: Iterable[Range]) -> RowNumbers:
        """Return the rows whose ids are in one of the disjoint ranges."""
        bounds = np.array(list(ranges), np.int64).reshape(-1, 2)
        first = np.searchsorted(self.ids, bounds[:, 0])
        sizes = np.searchsorted(self.ids, bounds[:, 1], side="right") - first
        offsets = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        return offsets + np.arange(len(offsets))

    def rows_of(self, ids: Ids) -> tuple[RowNumbers, NDArray[np.intp]]:
        """Return the rows of those sorted ids that the segment contains, and the positions of these ids."""
        positions = np.searchsorted(self.ids, ids)
        contained = np.flatnonzero(self.ids[np.minimum(positions, len(self.ids) - 1)] == ids)
        return positions[contained], contained

    def find_nearest(self, query: Vectors, limit: int, allowed: Allowed) -> tuple[RowNumbers, Floats]:
        """Return the `limit` best allowed rows by cosine, sorted, preselected by codes if there are any."""
        if self._codes is None or allowed.count <= max(self._gathered, self._codes.exact_rows):
            rows = allowed.rows
        else:
            rows = np.sort(self._codes.find_near_rows(query, limit, allowed))
        return as_arrays(KERNELS.cosines(self.vectors, query, rows, limit))


def _half(content: Any, rows: int, dimensions: int) -> Half:
    return np.frombuffer(content, "<f2", rows * dimensions).reshape(rows, dimensions)


_MAX_PERMISSIONS, _MAX_SOURCES = 16, 64
"""Number of filters, and of sets of sources, whose rows are cached for a segment."""
_MAX_COUNTS = 10_000
"""Number of document frequencies that are cached for a set of sources."""


class SourceRows:
    """The live rows of some sources, with cached document frequencies."""

    def __init__(self, postings: Postings, allowed: Allowed, maximum: int) -> None:
        self.count = allowed.count
        self._postings = postings
        rows = allowed.rows if allowed.count <= maximum else ()
        self._rows = np.asarray(rows, np.uint32)
        self._counts: dict[int, int] = {}

    def documents(self, position: int) -> int:
        """Return how many rows have the term at the position, which is -1 for a missing one."""
        if position < 0 or not self.count:
            return 0
        if position not in self._counts:
            if len(self._counts) >= _MAX_COUNTS:
                self._counts.clear()
            self._counts[position] = count_shared(self._postings.rows(position), self._rows)
        return self._counts[position]


@dataclass(frozen=True, slots=True)
class Permission:
    """The rows of a segment that match a filter, for keyword and vector search."""

    words: Allowed
    vectors: Allowed


class SegmentView:
    """A segment with its dead rows. Immutable, safe for many threads."""

    def __init__(self, segment: Segment, dead: Mask | None = None) -> None:
        self.segment = segment
        self.dead = dead if dead is not None and dead.any() else None
        dead_rows = () if self.dead is None else np.flatnonzero(self.dead)
        self._dead_rows = np.asarray(dead_rows, np.uint32)
        self._alive = None if self.dead is None else ~self.dead
        lost = segment.postings.lengths[self._dead_rows].sum(dtype=np.int64)
        self.live = len(segment) - len(self._dead_rows)
        self.length = segment.postings.length - int(lost)
        self._permissions = RecentResults[str, Permission](_MAX_PERMISSIONS)
        self._sources = RecentResults[tuple[str, ...], SourceRows](_MAX_SOURCES)

    @property
    def vector_count(self) -> int:
        """The number of live rows with a vector."""
        present = self.segment.present
        if present is None:
            return self.live
        return self.segment.vector_count - int(np.count_nonzero(present[self._dead_rows]))

    def without(self, ranges: Iterable[Range]) -> "SegmentView":
        """Return the segment with all rows of those ids dead."""
        spans = list(ranges)
        if not self.live or all(first > self.segment.ids[-1] for first, _ in spans):
            return self
        rows = self.segment.rows_in(spans)
        if self.dead is not None:
            rows = rows[~self.dead[rows]]
        if not len(rows):
            return self
        dead = np.zeros(len(self.segment), np.bool_) if self.dead is None else self.dead.copy()
        dead[rows] = True
        return SegmentView(self.segment, dead)

    def only(self, ranges: Iterable[Range]) -> "SegmentView":
        """Return the segment with only the live rows of those ids."""
        dead = np.ones(len(self.segment), np.bool_)
        dead[self.segment.rows_in(ranges)] = False
        return SegmentView(self.segment, dead if self.dead is None else dead | self.dead)

    @cached_property
    def has_threads(self) -> bool:
        """Whether a live row belongs to a thread."""
        return self.permission(Exists("thread")).words.count > 0

    def live_ids(self) -> RowNumbers:
        """Return the ids of live rows."""
        return self.segment.ids if self._alive is None else self.segment.ids[self._alive]

    def live_checksums(self) -> NDArray[np.uint64]:
        """Return the checksums of live rows, in the order of `live_ids`."""
        checksums = self.segment.checksums
        return checksums if self._alive is None else checksums[self._alive]

    def terms(self, names: tuple[bytes, ...], average: float) -> SegmentTerms:
        """Return the terms of those names in the segment, and how many live rows have each."""
        terms = self.segment.postings.find(names, average)
        if self.dead is None:
            return terms
        dead = self.segment.postings.documents(terms.positions, self._dead_rows)
        return replace(terms, documents=terms.documents - dead)

    def permission(self, where: Filter) -> Permission:
        """Return the rows that match the filter. Results are cached, because permission filters repeat."""
        # The key is a text: values that differ in type only, as 1 and True, compare equal in Python.
        return self._permissions.get(repr(where), lambda: self._permission(where))

    def sources(self, names: tuple[str, ...], maximum: int) -> "SourceRows":
        """Return the rows of sources, if they are at most `maximum`. The last results are cached."""
        return self._sources.get(names, lambda: self._source_rows(In("source", names), maximum))

    def _source_rows(self, where: Filter, maximum: int) -> "SourceRows":
        return SourceRows(self.segment.postings, self._match_filter(where), maximum)

    def _permission(self, where: Filter) -> Permission:
        words = self._match_filter(where)
        return Permission(words, words.only(self.segment.present))

    def _match_filter(self, where: Filter) -> Allowed:
        mask = None if where == EVERYTHING else self.segment.columns.mask(where)
        return Allowed(len(self.segment), mask).only(self._alive)

    def cosines(self, rows: RowNumbers, query: Vectors | None) -> Floats:
        """Return the exact cosines of rows; NaN for those without a vector."""
        scores = np.full(len(rows), np.nan)
        if query is not None:
            present = self.segment.present
            with_vector = slice(None) if present is None else present[rows]
            _, scores[with_vector] = as_arrays(
                KERNELS.cosines(self.segment.vectors, query, rows[with_vector], -1)
            )
        return scores


def merge_in_memory(views: Sequence[SegmentView], shape: Shape) -> Segment:
    """Return one segment in memory of the live rows of several, which are at most `MAX_ROWS`."""
    merger = Merger([(view.segment.arrays, view.dead) for view in views])
    return Segment(merger.arrays(shape.bm25), merger.rows([view.segment.vectors for view in views]))
