"""Sheets of an XLSX whose cells are far apart, without the blank rows and columns between.

A sheet is laid out in memory from its first to its last cell: one stray cell in the last row would cost a
million rows. What a blank row or column divides, one of them divides as well as many.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from conspectus.sources.files.extract import Refused
from conspectus.sources.files.zip_xml import Archive

MAX_LAID_OUT_CELLS = 30_000_000
MIN_SPARSE_CELLS = 50_000
MIN_BLANK_SHARE = 0.9
MIN_BLANK_ROWS = 1_000
_ROW_NUMBER = re.compile(rb"""row\s[^>]*?\br=["']([0-9]{1,7})["']""")
_DIMENSION = re.compile(rb"""dimension\s+ref=["'][A-Z]{1,3}[0-9]{1,7}:([A-Z]{1,3})([0-9]{1,7})["']""")
_FILLED_CELL = re.compile(rb"""<(?:\w+:)?c\s[^>]*?\br=["']([A-Z]{1,3})([0-9]{1,7})["'][^>]*(?<!/)>""")
_REFERENCE = re.compile(
    rb"""(<(?:\w+:)?(?:row|c)\s[^>]*?\br=["']|<(?:\w+:)?(?:mergeCell|dimension)\s[^>]*?\bref=["'])"""
    rb"""([A-Z]{0,3})([0-9]{1,7})(?:(:)([A-Z]{1,3})([0-9]{1,7}))?(?=["'])"""
)

Renumbering: TypeAlias = Callable[[int], int]


def compact_sheets(archive: Archive, parts: Mapping[str, str]) -> Mapping[str, bytes]:
    """Return the sheets with wide gaps, without these, by the names of their parts.

    `parts` has the part of each sheet by its name. Raises Refused for a sheet that is too large without its
    gaps, too.
    """
    compacted = {}
    for name, part in parts.items():
        data = archive.read(part)
        cells = _FILLED_CELL.findall(data) if _may_be_sparse(data) else []
        columns = sorted(map(column_number, {letters for letters, _ in cells}))
        rows = sorted(map(int, {row for _, row in cells}))
        area = columns[-1] * rows[-1] if cells else 0
        if area <= MIN_SPARSE_CELLS or len(cells) > (1 - MIN_BLANK_SHARE) * area:
            continue
        new_column, new_row = _close_gaps(columns), _close_gaps(rows)
        if new_column(columns[-1]) * new_row(rows[-1]) > MAX_LAID_OUT_CELLS:
            last_cell = f"{column_letters(columns[-1])}{rows[-1]}"
            reason = f"its sheet {name[:40]!r} reaches to {last_cell}, far beyond its tables"
            raise Refused(f"{reason}: delete the cells there, and save it")
        compacted[part] = _renumber(data, new_column, new_row)
    return compacted


def column_number(letters: bytes) -> int:
    """Return the number of a column from 1: column Z is 26, and 27 follows."""
    column = 0
    for letter in letters:
        column = 26 * column + letter - ord("A") + 1
    return column


def column_letters(column: int) -> str:
    """Return the letters of a column, by its number from 1."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _may_be_sparse(data: bytes) -> bool:
    """Return whether a sheet says that it reaches farther than its cells suffice for; it may say too much."""
    stated = _DIMENSION.search(data)
    last_row = _ROW_NUMBER.search(data, data.rfind(b"row "))
    if stated is None or last_row is None:
        return bool(data)
    area = column_number(stated[1]) * max(int(last_row[1]), int(stated[2]))
    blank_rows = int(last_row[1]) - data.count(b"row ")
    return area > MIN_SPARSE_CELLS and (blank_rows > MIN_BLANK_ROWS or area > len(data))


def _close_gaps(filled: Sequence[int]) -> Renumbering:
    """Return the function from old to new numbers of rows or columns, which leaves one number of each gap."""
    numbers, closed = [0], [0]
    for number in filled:
        closed.append(closed[-1] + min(number - numbers[-1], 2))
        numbers.append(number)

    def renumber(number: int) -> int:
        position = bisect_right(numbers, number) - 1
        return closed[position] + min(number - numbers[position], 1)

    return renumber


def _renumber(data: bytes, new_column: Renumbering, new_row: Renumbering) -> bytes:
    """Return a sheet whose rows, cells and merged ranges have other numbers."""

    def moved(letters: bytes | None, row: bytes | None) -> bytes:
        new_letters = column_letters(new_column(column_number(letters))) if letters else ""
        return f"{new_letters}{new_row(int(row))}".encode() if row else b""

    return _REFERENCE.sub(
        lambda match: match[1] + moved(match[2], match[3]) + (match[4] or b"") + moved(match[5], match[6]),
        data,
    )
