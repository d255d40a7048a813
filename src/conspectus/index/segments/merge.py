"""Merge the live rows of several segments into one from their arrays, without analyzing any text.

The result equals a segment written from the same rows, byte for byte.
"""

from collections.abc import Iterator, Sequence, Sized
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Bm25
from conspectus.index.segments.columns import NO_INSTANT, Arrays, Mask, Strings, pack
from conspectus.index.segments.postings import MAX_ROWS, stored_postings

Numbers: TypeAlias = NDArray[np.int64]

_ROW_BITS = MAX_ROWS.bit_length() - 1
_BY_ROW = ("ids", "checksums", "present", "lengths", "occurred.start", "occurred.end")
_TEXTS = ("values.text", "values.other")


@dataclass(frozen=True, slots=True)
class Part:
    """The arrays of a segment, and its live rows with their positions in the merged one; -1 for dead rows."""

    arrays: Arrays
    live: Numbers
    positions: Numbers


class Merger:
    """Merges segments without their dead rows; at most `MAX_ROWS` may be alive together."""

    def __init__(self, segments: Sequence[tuple[Arrays, Mask | None]]) -> None:
        lives = [
            np.arange(len(arrays["ids"])) if dead is None else np.flatnonzero(~dead)
            for arrays, dead in segments
        ]
        ids = np.concatenate([arrays["ids"][live] for (arrays, _), live in zip(segments, lives, strict=True)])
        ranks = np.empty(len(ids), np.int64)
        ranks[np.argsort(ids, kind="stable")] = np.arange(len(ids))
        self._parts: list[Part] = []
        for (arrays, _), live, live_positions in zip(
            segments, lives, _split_by_lengths(ranks, lives), strict=True
        ):
            positions = np.full(len(arrays["ids"]), -1, np.int64)
            positions[live] = live_positions
            self._parts.append(Part(arrays, live, positions))
        self._order = None if (ranks[1:] > ranks[:-1]).all() else np.argsort(ranks)

    def arrays(self, bm25: Bm25) -> dict[str, NDArray[Any]]:
        """Return the arrays of the merged segment, in ascending order of ids."""
        by_row = {name: self.rows([part.arrays[name] for part in self._parts]) for name in _BY_ROW}
        return by_row | _postings(self._parts, by_row["lengths"], bm25) | _columns(self._parts)

    def rows(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return per-row data of the segments in the order of the merged rows."""
        joined = np.concatenate([column[part.live] for column, part in zip(values, self._parts, strict=True)])
        return joined if self._order is None else joined[self._order]

    def portions(self, values: Sequence[NDArray[Any]], *, maximum: int = 1 << 16) -> Iterator[NDArray[Any]]:
        """Yield what `rows` returns, a limited number of rows at once: vectors may be large."""
        ends = np.cumsum([len(part.live) for part in self._parts])
        order = np.arange(ends[-1]) if self._order is None else self._order
        for first in range(0, len(order), maximum):
            selection = order[first : first + maximum]
            portion = np.empty((len(selection), *values[0].shape[1:]), values[0].dtype)
            owner = np.searchsorted(ends, selection, side="right")
            for number, (column, part) in enumerate(zip(values, self._parts, strict=True)):
                from_part = owner == number
                portion[from_part] = column[part.live[selection[from_part] - ends[number] + len(part.live)]]
            yield portion


def _split_by_lengths(values: Numbers, like: Sequence[Sized]) -> list[Numbers]:
    """Split the values at the lengths of the parts."""
    return np.split(values, np.cumsum([len(part) for part in like])[:-1])


def _postings(parts: Sequence[Part], lengths: NDArray[np.uint32], bm25: Bm25) -> dict[str, NDArray[Any]]:
    postings = [_postings_of(part) for part in parts]
    ordered, ranks = _union([terms for terms, _, _, _ in postings])
    return stored_postings(
        pack(ordered),
        np.concatenate([rank[term] for rank, (_, term, _, _) in zip(ranks, postings, strict=True)]),
        np.concatenate([rows for _, _, rows, _ in postings]),
        np.concatenate([counts.astype(np.uint16) for _, _, _, counts in postings]),
        lengths=lengths,
        bm25=bm25,
    )


def _postings_of(part: Part) -> tuple[list[bytes], Numbers, Numbers, NDArray[Any]]:
    """Return the terms of live rows, and the term, merged row and count of each posting."""
    names = list(Strings(part.arrays["terms"], part.arrays["terms.offsets"]))
    terms = _run_numbers(part.arrays["terms.start"])
    rows, counts = part.positions[part.arrays["postings.row"]], part.arrays["postings.count"]
    if len(part.live) < len(part.positions):
        alive = rows >= 0
        terms, rows, counts = terms[alive], rows[alive], counts[alive]
        used, terms = np.unique(terms, return_inverse=True)
        names = [names[term] for term in used.tolist()]
    return names, terms, rows, counts


def _run_numbers(starts: NDArray[Any]) -> Numbers:
    """Return the run number of each entry, for runs that begin at `starts`."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _union(tables: Sequence[Sequence[bytes]]) -> tuple[list[bytes], list[Numbers]]:
    """Return the sorted union of the string tables, and the position of each table's strings in it."""
    ordered = sorted(set(chain.from_iterable(tables)))
    positions_in_union = {name: position for position, name in enumerate(ordered)}
    return ordered, [
        np.fromiter(map(positions_in_union.__getitem__, table), np.int64, len(table)) for table in tables
    ]


def _columns(parts: Sequence[Part]) -> dict[str, NDArray[Any]]:
    entries = [_entries_of(part) for part in parts]
    paths, path_ranks = _union(
        [
            _strings_at(part.arrays, "paths", part_entries.paths)
            for part, part_entries in zip(parts, entries, strict=True)
        ]
    )
    tables, codes = _values(parts, [part_entries.codes for part_entries in entries])
    keys = [
        rank[part_entries.path_of_run] << 32 | code[part_entries.code_of_run]
        for rank, code, part_entries in zip(path_ranks, codes, entries, strict=True)
    ]
    runs, positions_in_union = np.unique(np.concatenate(keys), return_inverse=True)
    packed = np.concatenate(
        [
            run_positions[part_entries.run] << _ROW_BITS | part_entries.rows
            for run_positions, part_entries in zip(
                _split_by_lengths(positions_in_union, keys), entries, strict=True
            )
        ]
    )
    packed.sort()
    blob, offsets = pack(paths)
    return tables | {
        "paths": blob,
        "paths.offsets": offsets,
        "paths.runs": np.searchsorted(runs >> 32, np.arange(len(paths) + 1)).astype(np.int64),
        "runs.code": (runs & 0xFFFFFFFF).astype(np.uint32),
        "runs.start": np.searchsorted(packed, np.arange(len(runs) + 1) << _ROW_BITS).astype(np.int64),
        "runs.rows": (packed & (MAX_ROWS - 1)).astype(np.uint32),
    }


@dataclass(frozen=True, slots=True)
class _Entries:
    """Live rows by path and value: `run` and `rows` per entry, the other arrays per run.

    `paths` and `codes` are the used ones, sorted; runs refer to them by position.
    """

    run: Numbers
    rows: Numbers
    paths: Numbers
    codes: Numbers
    path_of_run: Numbers
    code_of_run: Numbers


def _entries_of(part: Part) -> _Entries:
    run = _run_numbers(part.arrays["runs.start"])
    rows = part.positions[part.arrays["runs.rows"]]
    path, code = _run_numbers(part.arrays["paths.runs"]), part.arrays["runs.code"].astype(np.int64)
    if len(part.live) < len(part.positions):
        alive = rows >= 0
        runs, run = np.unique(run[alive], return_inverse=True)
        rows, path, code = rows[alive], path[runs], code[runs]
    paths, path_of_run = np.unique(path, return_inverse=True)
    codes, code_of_run = np.unique(code, return_inverse=True)
    return _Entries(run, rows, paths, codes, path_of_run, code_of_run)


def _strings_at(arrays: Arrays, name: str, positions: Numbers) -> list[bytes]:
    strings = list(Strings(arrays[name], arrays[_offsets(name)]))
    return (
        strings if len(strings) == len(positions) else [strings[position] for position in positions.tolist()]
    )


def _offsets(name: str) -> str:
    return f"{name}.offsets" if name == "paths" else f"{name}_offsets"


def _values(parts: Sequence[Part], codes: Sequence[Numbers]) -> tuple[dict[str, NDArray[Any]], list[Numbers]]:
    """Return the value tables, and for each part the new code of each of its used codes."""
    tables: dict[str, NDArray[Any]] = {}
    new: list[list[Numbers]] = [[] for _ in parts]
    first = [0] * len(parts)
    count = 0
    for name in ("values.whole", "values.number", "values.text", "values.moment", "values.other"):
        used = []
        for number, part in enumerate(parts):
            size = len(part.arrays[_offsets(name)]) - 1 if name in _TEXTS else len(part.arrays[name])
            inside = (codes[number] >= first[number]) & (codes[number] < first[number] + size)
            used.append(codes[number][inside] - first[number])
            first[number] += size
        arrays, positions_in_union, size = _table(name, parts, used)
        tables |= arrays
        for number, positions in enumerate(positions_in_union):
            new[number].append(positions + count)
        count += size
    return tables, [np.concatenate(part_codes) for part_codes in new]


def _table(
    name: str, parts: Sequence[Part], used: Sequence[Numbers]
) -> tuple[dict[str, NDArray[Any]], list[Numbers], int]:
    """Return one table of the used values, the positions of each part's values in it, and its size."""
    if name not in _TEXTS:
        used_values = [part.arrays[name][codes] for part, codes in zip(parts, used, strict=True)]
        values, positions = np.unique(np.concatenate(used_values), return_inverse=True)
        return {name: values}, _split_by_lengths(positions, used_values), len(values)
    texts, positions_in_union = _union(
        [_strings_at(part.arrays, name, codes) for part, codes in zip(parts, used, strict=True)]
    )
    blob, offsets = pack(texts)
    arrays: dict[str, NDArray[Any]] = {name: blob, _offsets(name): offsets}
    if name == "values.text":
        arrays["values.instant"] = _instants(parts, used, positions_in_union, len(texts))
    return arrays, positions_in_union, len(texts)


def _instants(
    parts: Sequence[Part], used: Sequence[Numbers], positions_in_union: Sequence[Numbers], size: int
) -> Numbers:
    """Return the instants that the texts of a table spell; empty if none does."""
    instants = np.full(size, NO_INSTANT, np.int64)
    for part, codes, positions in zip(parts, used, positions_in_union, strict=True):
        if len(part.arrays["values.instant"]):
            instants[positions] = part.arrays["values.instant"][codes]
    return instants if (instants != NO_INSTANT).any() else np.zeros(0, np.int64)
