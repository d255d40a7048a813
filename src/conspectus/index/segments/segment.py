"""One segment: rows sorted by chunk id, written once, in memory or in a folder."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from conspectus.errors import IndexDamaged
from conspectus.index.bm25 import Analyse, Bm25, occurrences
from conspectus.index.changes import Range
from conspectus.index.filter_values import content_checksum
from conspectus.index.segments.arrays import decoding, map_file, open_folder, write_folder
from conspectus.index.segments.columns import Columns, ColumnWriter, Mask
from conspectus.index.segments.ivf import Lists, build_lists
from conspectus.index.segments.postings import Postings, PostingWriter
from conspectus.index.segments.row_filter import Allowed
from conspectus.index.segments.value_table import Arrays
from conspectus.index.segments.vectors import Half, RowNumbers, nearest
from conspectus.model.index import IndexedChunk
from conspectus.ports import Ids, Vectors

VECTORS = "vectors.bin"


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk after analysis: what a segment needs of it, without looking at the text again."""

    chunk: IndexedChunk
    counts: Counter[str]
    length: int

    @property
    def id(self) -> int:
        """The chunk's id."""
        return self.chunk.chunk.id


def analysed(chunks: Iterable[IndexedChunk], analyse: Analyse) -> list[Row]:
    """The rows of chunks."""
    return [Row(chunk, *occurrences(chunk, analyse)) for chunk in chunks]


@dataclass(frozen=True, slots=True)
class Shape:
    """What must be the same in all segments of an index: the vectors' size (0: none) and BM25's numbers."""

    dimensions: int
    bm25: Bm25
    lists_from: int


class SegmentWriter:
    """Takes rows in the order of their ids; vectors go to `sink` at once, so memory holds only the rest."""

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

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows. Raises IndexDamaged for a vector of another size than the space has."""
        for row in rows:
            vector = row.chunk.vector
            if vector is not None and len(vector) != len(self._absent):
                raise IndexDamaged(f"chunk {row.id}", f"its vector has {len(vector)} bytes")
            self._sink.write(self._absent if vector is None else vector)
            self._present.append(vector is not None)
            self._ids.append(row.id)
            self._checksums.append(content_checksum(row.chunk))
            self._columns.add(row.chunk)
            self._postings.add(row.counts, row.length)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the vectors."""
        return {
            "ids": np.frombuffer(self._ids, np.int64),
            "checksums": np.frombuffer(self._checksums, np.uint64),
            "present": np.frombuffer(bytes(self._present), np.bool_),
            **self._columns.finish(),
            **self._postings.finish(self._shape.bm25),
        }


def write_segment(folder: Path, writer: SegmentWriter, shape: Shape) -> None:
    """Finish a segment whose vectors are in the folder already."""
    arrays = writer.arrays()
    rows = np.flatnonzero(arrays["present"])
    if shape.dimensions and len(rows) >= shape.lists_from:
        vectors = _half(map_file(folder / VECTORS), len(writer), shape.dimensions)
        arrays |= build_lists(folder, vectors, rows)
    write_folder(folder, arrays, {"rows": len(writer)})


def segment_in_memory(rows: Iterable[Row], shape: Shape) -> "Segment":
    """A segment without files."""
    sink = BytesIO()
    writer = SegmentWriter(shape, sink)
    writer.add(rows)
    return Segment(writer.arrays(), _half(sink.getvalue(), len(writer), shape.dimensions))


def open_segment(path: Path, shape: Shape) -> "Segment":
    """Map a segment's files. Raises IndexDamaged, also where they are deleted meanwhile."""
    try:
        folder = open_folder(path)
        with decoding([path]):
            vectors = _half(map_file(path / VECTORS), folder.facts["rows"], shape.dimensions)
            lists = Lists(path, folder.arrays) if "lists.probes" in folder.arrays else None
            return Segment(folder.arrays, vectors, lists=lists, gathered=shape.lists_from // 6, path=path)
    except FileNotFoundError as error:
        raise IndexDamaged(str(path), "the file is missing") from error


class Segment:
    """Rows that never change. Which of them are dead is not known here."""

    def __init__(
        self,
        arrays: Arrays,
        vectors: Half,
        *,
        lists: Lists | None = None,
        gathered: int = 0,
        path: Path | None = None,
    ) -> None:
        self.path = path
        self.ids: Ids = arrays["ids"]
        self.checksums: NDArray[np.uint64] = arrays["checksums"]
        present: Mask = arrays["present"]
        self.present: Mask | None = None if present.all() else present
        self.vector_count = int(np.count_nonzero(present))
        self.columns = Columns(arrays)
        self.postings = Postings(arrays)
        self.vectors = vectors
        self._lists = lists
        self._gathered = gathered

    def __len__(self) -> int:
        return len(self.ids)

    def rows_in(self, ranges: Iterable[Range]) -> RowNumbers:
        """The rows whose ids are in one of the separate ranges."""
        bounds = np.array(list(ranges), np.int64).reshape(-1, 2)
        first = np.searchsorted(self.ids, bounds[:, 0])
        sizes = np.searchsorted(self.ids, bounds[:, 1], side="right") - first
        offsets = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        return offsets + np.arange(len(offsets))

    def rows_of(self, ids: Ids) -> tuple[RowNumbers, NDArray[np.intp]]:
        """The rows of those of the sorted ids that are here, and the positions of these ids."""
        place = np.searchsorted(self.ids, ids)
        here = np.flatnonzero(self.ids[np.minimum(place, len(self.ids) - 1)] == ids)
        return place[here], here

    def nearest(self, query: Vectors, limit: int, allowed: Allowed) -> RowNumbers:
        """Candidates for the `limit` best allowed rows with a vector."""
        if not allowed.count or not limit:
            return np.zeros(0, np.int64)
        if self._lists is None or allowed.count <= self._gathered:
            return nearest(self.vectors, query, limit, allowed)
        return self._lists.nearest(query, limit, allowed)


def _half(content: Any, rows: int, dimensions: int) -> Half:
    return np.frombuffer(content, "<f2", rows * dimensions).reshape(rows, dimensions)
