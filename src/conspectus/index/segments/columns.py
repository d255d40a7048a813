"""What filters read: for each field and metadata path its values, and for each value its rows.

A field of few values costs a few numbers beside its rows, a path that one row has costs that row, and
every comparison becomes a few slices of row numbers.
"""

from array import array
from typing import Any, assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from conspectus.index.filter_values import entries, path_name
from conspectus.index.segments.string_table import Strings, encoded, pack
from conspectus.index.segments.value_table import Arrays, Comparison, Values, ValueWriter, microseconds
from conspectus.model.filter import And, Between, Eq, Exists, Field, FieldName, Filter, In, Not, Or, Overlaps
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Document

Mask = NDArray[np.bool_]

_DOCUMENT_FIELDS = tuple(name for name in get_args(FieldName) if name != "position")
_NEVER = np.iinfo(np.int64).min


class ColumnWriter:
    """Takes the rows one after the other; the fields of a document are worked out once."""

    def __init__(self) -> None:
        self._values = ValueWriter()
        self._paths: dict[Field, int] = {}
        self._keys = array("Q")
        self._rows = array("I")
        self._start = array("q")
        self._end = array("q")
        self._document: Document | None = None
        self._shared: list[int] = []

    def add(self, chunk: IndexedChunk) -> None:
        """Append a row."""
        if chunk.document is not self._document:
            self._document = chunk.document
            row = chunk.row()
            fields = [entry for name in _DOCUMENT_FIELDS for entry in entries(name, row[name])]
            fields += entries((), row["metadata"])
            self._shared = [self._key(*entry) for entry in fields]
        period = chunk.document.occurred
        self._start.append(_NEVER if period is None else microseconds(period.start))
        self._end.append(_NEVER if period is None else microseconds(period.end))
        self._keys.extend(self._shared)
        self._keys.append(self._key("position", chunk.chunk.position))
        self._rows.append(len(self._shared) + 1)

    def _key(self, field: Field, value: object) -> int:
        return self._paths.setdefault(field, len(self._paths)) << 32 | self._values.number(value)

    def finish(self) -> dict[str, NDArray[Any]]:
        """The arrays to store."""
        tables, codes = self._values.finish()
        names = {field: encoded(path_name(field)) for field in self._paths}
        ordered = sorted(self._paths, key=names.__getitem__)
        ranks = np.empty(len(ordered), np.uint64)
        ranks[[self._paths[field] for field in ordered]] = np.arange(len(ordered), dtype=np.uint64)
        provisional = np.frombuffer(self._keys, np.uint64)
        keys = ranks[provisional >> 32] << 32 | codes.astype(np.uint64)[provisional & 0xFFFFFFFF]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        sizes = np.frombuffer(self._rows, np.uint32)
        first = np.flatnonzero(np.diff(keys, prepend=keys[:1] + 1))
        paths, offsets = pack([names[field] for field in ordered])
        return tables | {
            "paths": paths,
            "paths.offsets": offsets,
            "paths.runs": np.searchsorted(keys[first] >> 32, np.arange(len(ordered) + 1)).astype(np.int64),
            "runs.code": (keys[first] & 0xFFFFFFFF).astype(np.uint32),
            "runs.start": np.append(first, len(keys)).astype(np.int64),
            "runs.rows": np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)[order],
            "occurred.start": np.frombuffer(self._start, np.int64),
            "occurred.end": np.frombuffer(self._end, np.int64),
        }


class Columns:
    """Evaluates filters over the rows of a segment."""

    def __init__(self, arrays: Arrays) -> None:
        self._values = Values(arrays)
        self._paths = Strings(arrays["paths"], arrays["paths.offsets"])
        self._path_runs = arrays["paths.runs"]
        self._codes = arrays["runs.code"]
        self._starts = arrays["runs.start"]
        self._rows = arrays["runs.rows"]
        self._occurred = arrays["occurred.start"], arrays["occurred.end"]

    def mask(self, condition: Filter) -> Mask:
        """For each row whether it satisfies the filter."""
        match condition:
            case Not():
                return ~self.mask(condition.inner)
            case And():
                return self._all(condition)
            case Or():
                return ~self._all(And(tuple(Not(part) for part in condition.inner)))
            case Overlaps():
                return self._overlaps(condition)
            case Exists():
                first, end = self._runs(condition.field)
                return self._marked([(first, end)])
            case Eq() | In() | Between():
                return self._compare(condition)
            case _:
                assert_never(condition)

    def _all(self, condition: And) -> Mask:
        mask = np.ones(len(self._occurred[0]), np.bool_)
        for part in condition.inner:
            mask &= self.mask(part)
        return mask

    def _overlaps(self, leaf: Overlaps) -> Mask:
        start, end = self._occurred
        mask: Mask = start != _NEVER
        if leaf.end is not None:
            mask &= start < microseconds(leaf.end)
        if leaf.start is not None:
            low = microseconds(leaf.start)
            mask &= (end > low) | (start >= low)
        return mask

    def _compare(self, leaf: Comparison) -> Mask:
        first, end = self._runs(leaf.field)
        codes = self._codes[first:end]
        ranges = self._values.ranges(leaf)
        edges = first + np.searchsorted(codes, np.array(ranges, np.uint32).reshape(-1, 2))
        mask = self._marked(edges.tolist())
        spelled = self._values.instants(leaf, codes)
        if spelled.any():
            sizes = np.diff(self._starts[first : end + 1])
            rows = self._rows[self._starts[first] : self._starts[end]]
            mask[rows[np.repeat(spelled, sizes)]] = True
        return mask

    def _marked(self, runs: list[tuple[int, int]]) -> Mask:
        mask = np.zeros(len(self._occurred[0]), np.bool_)
        for first, end in runs:
            mask[self._rows[self._starts[first] : self._starts[end]]] = True
        return mask

    def _runs(self, field: Field) -> tuple[int, int]:
        path = self._paths.find(path_name(field))
        return (0, 0) if path is None else (int(self._path_runs[path]), int(self._path_runs[path + 1]))
