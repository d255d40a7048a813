"""Columns of a segment: strings, typed values and sets, and the rows that match a filter."""

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias, assert_never, get_args, overload

import numpy as np
from numpy.typing import NDArray

from conspectus.index.changes import merge_ranges
from conspectus.index.filter_terms import comparable, decode_text, encode_text, entries, path_name
from conspectus.index.segments.kernels import KERNELS
from conspectus.index.segments.recent_results import RecentResults
from conspectus.model.filter import (
    And,
    Between,
    Contains,
    Eq,
    Exists,
    Field,
    FieldName,
    Filter,
    In,
    Leaf,
    Not,
    Or,
    Overlaps,
    Scalar,
    holds,
    instant,
)
from conspectus.model.filter_operands import compose_accents
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Document
from conspectus.text.times import to_microseconds

Comparison: TypeAlias = Eq | In | Between
Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Half: TypeAlias = NDArray[np.float16]
RowNumbers: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = tuple[int, int]
"""A half-open range of codes of values, or of microseconds."""
Bytes: TypeAlias = NDArray[np.uint8]
Mask: TypeAlias = NDArray[np.bool_]

MAX_CACHED_MASKS = 64
"""Number of sets of sources of which the rows are cached for a segment."""
NO_INSTANT = np.iinfo(np.int64).min
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_TYPES = ("whole", "number", "text", "moment", "other")
"""Types of values in the order of their codes: integers, other numbers, texts, times, and the rest."""
_DOCUMENT_FIELDS = tuple(name for name in get_args(FieldName) if name != "position")


def classify(value: object) -> tuple[int, object]:
    """Return the sort order of the value's type, and its stored form."""
    match value:
        case bool():
            return 4, json.dumps(value)
        case int():
            return (0, value) if _LOWEST <= value <= _HIGHEST else (4, str(value))
        case float():
            return (1, value + 0.0) if value == value else (4, "NaN")
        case str():
            return 2, compose_accents(value)
        case datetime() if value.tzinfo is not None:
            return 3, to_microseconds(value)
        case list() | tuple():
            return 4, "[]"
        case _:
            return 4, "{}"


class ValueWriter:
    """Numbers distinct values as they come; `finish` assigns the final codes."""

    def __init__(self) -> None:
        self._numbers: list[dict[Any, int]] = [{} for _ in _TYPES]
        self._count = 0

    def number(self, value: object) -> int:
        """Return the provisional number of a value."""
        kind, stored = classify(value)
        numbers = self._numbers[kind]
        number = numbers.get(stored)
        if number is None:
            number = numbers[stored] = self._count
            self._count += 1
        return number

    def finish(self) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
        """Return the tables to store, and the code of each provisional number."""
        integers, number, text, moment, other = ordered = [sorted(numbers) for numbers in self._numbers]
        provisional = [
            map(numbers.__getitem__, values) for numbers, values in zip(self._numbers, ordered, strict=True)
        ]
        codes = ranks([*chain.from_iterable(provisional)])
        texts, text_offsets = pack_texts(text)
        others, other_offsets = pack_texts(other)
        tables: dict[str, NDArray[Any]] = {
            "values.whole": np.array(integers, np.int64),
            "values.number": np.array(number, np.float64),
            "values.text": texts,
            "values.text_offsets": text_offsets,
            "values.instant": _instants(text),
            "values.moment": np.array(moment, np.int64),
            "values.other": others,
            "values.other_offsets": other_offsets,
        }
        return tables, codes


class Values:
    """The value tables of a segment, as ranges of codes."""

    def __init__(self, arrays: Arrays) -> None:
        self._instant = arrays["values.instant"]
        self._packed_texts = arrays["values.text"], arrays["values.text_offsets"]
        text = Strings(*self._packed_texts)
        others = Strings(arrays["values.other"], arrays["values.other_offsets"])
        self._others = [json.loads(other) for other in others]
        numbers = len(arrays["values.whole"])
        texts = numbers + len(arrays["values.number"])
        moments = texts + len(text)
        self._whole = _Table(0, arrays["values.whole"], int)
        self._number = _Table(numbers, arrays["values.number"], float)
        self._text = _Table(texts, text, bytes)
        self._moment = _Table(moments, arrays["values.moment"], int)
        self._first_other = moments + len(arrays["values.moment"])

    def ranges(self, leaf: Comparison) -> list[Codes]:
        """Return the codes of all values that satisfy the leaf, except those that `instants` returns.

        They are sorted and disjoint: neighboring values are one range.
        """
        ranges = [
            (self._first_other + position, self._first_other + position + 1)
            for position, value in enumerate(self._others)
            if holds(leaf, value)
        ]
        if isinstance(leaf, Between):
            ranges += self._find_between(leaf.low, leaf.high)
        else:
            scalars = leaf.values if isinstance(leaf, In) else (leaf.value,)
            texts = [scalar for scalar in scalars if isinstance(scalar, str)]
            ranges += self._find_texts(texts) if texts else []
            for scalar in scalars:
                if not isinstance(scalar, str):
                    ranges += [table.equal(bound) for table, bound in self._tables(scalar)]
        joined = merge_ranges((first, end - 1) for first, end in ranges if first < end)
        return [(first, last + 1) for first, last in joined]

    def instants(self, leaf: Comparison, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which of the sorted codes are texts that spell an instant which satisfies the leaf."""
        mask = np.zeros(len(codes), np.bool_)
        spans = _spans(leaf) if len(self._instant) else []
        if spans:
            first, end = np.searchsorted(codes, [self._text.first, self._moment.first])
            moments = self._instant[codes[first:end].astype(np.int64) - self._text.first]
            for low, high in spans:
                mask[first:end] |= (moments >= low) & (moments < high) & (moments != NO_INSTANT)
            if isinstance(leaf, Between):
                before, after = np.searchsorted(codes, self._texts_between(leaf))
                mask[:before] = mask[after:] = False
        return mask

    def containing(self, leaf: Contains, codes: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the positions, among sorted codes, of the texts that contain the part of the leaf."""
        first, end = np.searchsorted(codes, [self._text.first, self._moment.first]).tolist()
        texts = Strings(*self._packed_texts)
        positions = [
            position
            for position in range(first, end)
            if holds(leaf, decode_text(texts[int(codes[position]) - self._text.first]))
        ]
        return np.array(positions, np.int64)

    def _texts_between(self, leaf: Between) -> Codes:
        """Return the codes of the texts within the bounds."""
        low, high = (bound if isinstance(bound, str) else None for bound in (leaf.low, leaf.high))
        return (
            self._text.first if low is None else self._text.equal(comparable(low))[0],
            self._text.end if high is None else self._text.equal(comparable(high))[0],
        )

    def _tables(self, bound: Scalar) -> "list[tuple[_Table, Any]]":
        match bound:
            case bool():
                return []
            case int() | float():
                return [(self._whole, bound), (self._number, bound)] if bound == bound else []
            case str():
                return [(self._text, comparable(bound))]
            case _:
                return [] if bound.tzinfo is None else [(self._moment, to_microseconds(bound))]

    def _find_texts(self, texts: Sequence[str]) -> list[Codes]:
        """Return the codes of the texts that the segment has."""
        names = tuple(map(comparable, texts))
        positions = np.frombuffer(KERNELS.positions(*self._packed_texts, names), np.int64)
        codes = (positions[positions >= 0] + self._text.first).tolist()
        return [(code, code + 1) for code in codes]

    def _find_between(self, low: Scalar | None, high: Scalar | None) -> list[Codes]:
        starts = None if low is None else {table: table.equal(bound)[0] for table, bound in self._tables(low)}
        ends = None if high is None else {table: table.equal(bound)[0] for table, bound in self._tables(high)}
        if starts is None and ends is None:
            return [(0, self._first_other)]
        tables = (starts if starts is not None else ends) or {}
        return [
            (
                table.first if starts is None else starts.get(table, table.end),
                table.end if ends is None else ends.get(table, table.first),
            )
            for table in tables
        ]


class _Table:
    """The sorted values of one type. `key` converts to a plain Python value, for exact comparison."""

    def __init__(self, first: int, values: Any, key: Callable[[Any], Any]) -> None:
        self.first = first
        self.end = first + len(values)
        self._values = values
        self._key = key

    def equal(self, bound: Any) -> Codes:
        """Return the codes of values equal to the bound; an empty range at its position if there are none."""
        position = bisect_left(self._values, bound, key=self._key)
        after = bisect_right(self._values, bound, lo=position, key=self._key)
        return self.first + position, self.first + after


def _spans(leaf: Comparison) -> list[Codes]:
    """Return the half-open ranges of microseconds in which an instant satisfies the leaf."""
    match leaf:
        case Eq(value=datetime() as moment):
            return [_span(moment, moment, after=1)]
        case In():
            return [_span(value, value, after=1) for value in leaf.values if isinstance(value, datetime)]
        case Between(low=datetime() | str() | None, high=datetime() | str() | None):
            low, high = (bound if isinstance(bound, datetime) else None for bound in (leaf.low, leaf.high))
            return [_span(low, high)] if low or high else []
        case _:
            return []


def _span(low: datetime | None, high: datetime | None, after: int = 0) -> Codes:
    """Return the range between two instants; an empty one if a bound has no time zone."""
    if (low is not None and low.tzinfo is None) or (high is not None and high.tzinfo is None):
        return 0, 0
    first = NO_INSTANT if low is None else to_microseconds(low)
    end = _HIGHEST if high is None else to_microseconds(high)
    return first, end + after


def _instants(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the instant that each text spells; empty if none does."""
    moments = [_instant_of(text) if text[:1].isdigit() else None for text in texts]
    if not any(moments):
        return np.zeros(0, np.int64)
    return np.array(
        [NO_INSTANT if moment is None else to_microseconds(moment) for moment in moments], np.int64
    )


def _instant_of(text: str) -> datetime | None:
    """Return the instant of a text; None also if it is outside of the years 1 to 9999 in UTC."""
    try:
        return instant(text)
    except OverflowError:
        return None


def pack(strings: Sequence[bytes]) -> tuple[Bytes, NDArray[np.int64]]:
    """Concatenate strings. Returns the bytes, and the start of each with the end of the last."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.frombuffer(b"".join(strings), np.uint8), offsets


def pack_texts(texts: Sequence[str]) -> tuple[Bytes, NDArray[np.int64]]:
    """Return what `pack` returns of the encoded texts."""
    joined = "".join(texts)
    if not joined.isascii():
        return pack(list(map(encode_text, texts)))
    offsets = np.fromiter(accumulate(map(len, texts), initial=0), np.int64, len(texts) + 1)
    return np.frombuffer(joined.encode(), np.uint8), offsets


def ranks(permutation: Sequence[int]) -> NDArray[np.int64]:
    """Return the position of each number in a permutation."""
    inverse = np.empty(len(permutation), np.int64)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


class Strings(Sequence[bytes]):
    """The strings stored by `pack`, as a sequence."""

    __slots__ = ("_blob", "_offsets")

    def __init__(self, blob: Bytes, offsets: NDArray[np.int64]) -> None:
        self._blob = blob.data
        self._offsets = offsets.data

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._blob[self._offsets[index] : self._offsets[index + 1]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        blob = self._blob.tobytes()
        return (blob[start:end] for start, end in pairwise(self._offsets.tolist()))

    def rank(self, text: str) -> int:
        """Return how many strings sort before the text. The table must be sorted."""
        return bisect_left(self, encode_text(text))

    def find(self, text: str) -> int | None:
        """Return the position of the text in the sorted table; None if it is missing."""
        encoded_text = encode_text(text)
        position = bisect_left(self, encoded_text)
        return position if position < len(self) and self[position] == encoded_text else None


class ColumnWriter:
    """Collects rows one by one. Fields of a document are computed once for all its chunks."""

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
        self._start.append(NO_INSTANT if period is None else to_microseconds(period.start))
        self._end.append(NO_INSTANT if period is None else to_microseconds(period.end))
        self._keys.extend(self._shared)
        self._keys.append(self._key("position", chunk.chunk.position))
        self._rows.append(len(self._shared) + 1)

    def _key(self, field: Field, value: object) -> int:
        return self._paths.setdefault(field, len(self._paths)) << 32 | self._values.number(value)

    def finish(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        tables, codes = self._values.finish()
        numbers = {path_name(field): number for field, number in self._paths.items()}
        ordered = sorted(numbers)
        fields = ranks([*map(numbers.__getitem__, ordered)])
        provisional = np.frombuffer(self._keys, np.int64)
        keys = fields[provisional >> 32] << 32 | codes[provisional & 0xFFFFFFFF]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        sizes = np.frombuffer(self._rows, np.uint32)
        first = np.flatnonzero(np.diff(keys, prepend=keys[:1] + 1))
        paths, offsets = pack_texts(ordered)
        return tables | {
            "paths": paths,
            "paths.offsets": offsets,
            "paths.runs": np.searchsorted(keys[first] >> 32, np.arange(len(ordered) + 1)).astype(np.int64),
            "runs.code": (keys[first] & 0xFFFFFFFF).astype(np.uint32),
            "runs.start": np.append(first, len(keys)).astype(np.int64),
            "runs.rows": np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)[order],
            "occurred.start": np.array(self._start, np.int64),
            "occurred.end": np.array(self._end, np.int64),
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
        self._masks_of_sources = RecentResults[str, Mask](MAX_CACHED_MASKS)

    def mask(self, condition: Filter) -> Mask:
        """Return a mask of the rows that match the filter."""
        match condition:
            case Not():
                return ~self.mask(condition.inner)
            case And():
                return self._match_all(condition)
            case Or():
                return ~self._match_all(And(tuple(Not(part) for part in condition.inner)))
            case _:
                return self._mask_of_leaf(condition)

    def _mask_of_leaf(self, leaf: Leaf) -> Mask:
        match leaf:
            case Overlaps():
                return self._overlaps(leaf)
            case Exists():
                first, end = self._runs(leaf.field)
                return self._rows_of_runs([(first, end)])
            case Contains():
                return self._contains(leaf)
            case In() if leaf.digest:
                return self._masks_of_sources.get(leaf.digest, lambda: self._compare(leaf))
            case Eq() | In() | Between():
                return self._compare(leaf)
            case _:
                assert_never(leaf)

    def _match_all(self, condition: And) -> Mask:
        mask = np.ones(len(self._occurred[0]), np.bool_)
        for part in condition.inner:
            mask &= self.mask(part)
        return mask

    def _overlaps(self, leaf: Overlaps) -> Mask:
        start, end = self._occurred
        mask: Mask = start != NO_INSTANT
        if leaf.end is not None:
            mask &= start < to_microseconds(leaf.end)
        if leaf.start is not None:
            low = to_microseconds(leaf.start)
            mask &= (end > low) | (start >= low)
        return mask

    def _compare(self, leaf: Comparison) -> Mask:
        first, end = self._runs(leaf.field)
        codes = self._codes[first:end]
        ranges = self._values.ranges(leaf)
        edges = first + np.searchsorted(codes, np.array(ranges, np.uint32).reshape(-1, 2))
        mask = self._rows_of_runs(edges.tolist())
        spelled = self._values.instants(leaf, codes)
        if spelled.any():
            sizes = np.diff(self._starts[first : end + 1])
            rows = self._rows[self._starts[first] : self._starts[end]]
            mask[rows[np.repeat(spelled, sizes)]] = True
        return mask

    def _contains(self, leaf: Contains) -> Mask:
        first, end = self._runs(leaf.field)
        matching = first + self._values.containing(leaf, self._codes[first:end])
        return self._rows_of_runs([(run, run + 1) for run in matching.tolist()])

    def _rows_of_runs(self, runs: list[tuple[int, int]]) -> Mask:
        mask = np.zeros(len(self._occurred[0]), np.bool_)
        rows = [self._rows[self._starts[first] : self._starts[end]] for first, end in runs if first < end]
        if rows:
            mask[np.concatenate(rows) if len(rows) > 1 else rows[0]] = True
        return mask

    def _runs(self, field: Field) -> tuple[int, int]:
        path = self._paths.find(path_name(field))
        return (0, 0) if path is None else (int(self._path_runs[path]), int(self._path_runs[path + 1]))


class Allowed:
    """The rows that match a filter. Immutable and shared by searches; `mask` None allows every row."""

    def __init__(self, size: int, mask: Mask | None = None) -> None:
        self.size = size
        self.mask = mask
        self._occupied: NDArray[np.bool_] | None = None
        self.count = size if mask is None else int(np.count_nonzero(mask))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The allowed rows, ascending."""
        return np.arange(self.size) if self.mask is None else np.flatnonzero(self.mask)

    @cached_property
    def bits(self) -> NDArray[np.uint8] | None:
        """The mask as a bit set, lowest bit first; None if every row is allowed."""
        return None if self.mask is None else np.packbits(self.mask, bitorder="little")

    def find_occupied_parts(self, part_of_row: NDArray[np.uint16], parts: int) -> NDArray[np.bool_]:
        """Return which parts of the segment contain an allowed row, given the part of each row."""
        if self._occupied is None:
            self._occupied = np.bincount(part_of_row[self.rows], minlength=parts) > 0
        return self._occupied

    def only(self, mask: Mask | None) -> "Allowed":
        """Return the intersection with `mask`."""
        if mask is None:
            return self
        return Allowed(self.size, mask if self.mask is None else self.mask & mask)

    def among(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return those of the rows that are allowed."""
        return rows if self.mask is None else rows[self.mask[rows]]
