"""What an XLSX shows beside the values of its cells: percentages, long numbers, errors, drawings."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeAlias

from lxml import etree

from conspectus.sources.files.missing_words import ShownText
from conspectus.sources.files.office_texts import has_margins, texts_of_cells, texts_of_parts
from conspectus.sources.files.sheet_blocks import Drawing
from conspectus.sources.files.xlsx_gaps import column_number, compact_sheets
from conspectus.sources.files.xlsx_objects import comments_of_sheet, drawings_of_sheet, margins_of_sheet
from conspectus.sources.files.zip_xml import (
    Archive,
    attribute_of,
    find_child,
    find_main_part,
    local_name,
    parse_number,
    parse_xml,
    read_relations,
)

Position: TypeAlias = tuple[int, int]

BUILT_IN_FORMATS = {9: "0%", 10: "0.00%"}
MAX_EXACT_DIGITS = 15
"""Digits that a double keeps exactly."""

_LITERALS = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_DECIMALS = re.compile(r"\.([0#?]+)")
_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,6})")
_NEEDS_TEXT = re.compile(rb"""t=["']e["']|>-?[0-9]{16,40}<""")
_UNSAVED_FORMULA = re.compile(
    rb"""<(?:\w+:)?c\b(?![^>]*\bt=["']str["'])[^>]*>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"""
    rb"""(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"""
)
"""A cell with a formula and no result, which is not that of an empty text."""


class ShownTexts:
    """The texts of cells as a workbook shows them, by sheet."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        workbook = find_main_part(archive)
        targets = read_relations(archive, workbook)
        sheets = find_child(archive.xml(workbook), "sheets")
        self._parts = {
            attribute_of(sheet, "name"): targets[identifier].target
            for sheet in ([] if sheets is None else sheets)
            if (identifier := _relation_id(sheet)) in targets
        }
        styles = next((link.target for link in targets.values() if link.kind == "styles"), "")
        self._percent_decimals = _percent_styles(archive.xml(styles))

    def without_gaps(self, names: Sequence[str]) -> "tuple[bytes, ShownTexts] | None":
        """Return the workbook and its texts without the wide gaps of these sheets; None if there are none.

        Raises Refused for a sheet that is too large without its gaps, too.
        """
        visible = {name: self._parts[name] for name in names if name in self._parts}
        sheets = compact_sheets(self._archive, visible)
        if not sheets:
            return None
        workbook = self._archive.unread().repack(sheets)
        return workbook, ShownTexts(Archive(workbook, self._archive.limit))

    def of_sheet(self, name: str) -> Mapping[Position, str]:
        """Return the texts of a sheet by row and column, both from 0, where they differ from the values."""
        data = self._archive.read(self._parts.get(name, ""))
        if not data or not (self._percent_decimals or _NEEDS_TEXT.search(data)):
            return {}
        return dict(self._read_cells(data))

    def drawings(self, name: str) -> Iterator[Drawing]:
        """Yield the charts, pictures and text boxes of a sheet."""
        yield from drawings_of_sheet(self._archive, self._parts.get(name, ""))

    def beside_cells(self, name: str) -> Iterator[str]:
        """Yield the comments on a sheet and the margins of its pages, as blocks of Markdown."""
        part = self._parts.get(name, "")
        yield from comments_of_sheet(self._archive, part)
        data = self._archive.read(part)
        if has_margins(data):
            yield from margins_of_sheet(parse_xml(data, part))

    def unsaved_formulas_notice(self, names: Sequence[str]) -> str | None:
        """Return a notice of formulas in these sheets that were never calculated, if there are any."""
        parts = [self._archive.read(self._parts.get(name, "")) for name in names]
        count = sum(1 for part in parts for _ in _UNSAVED_FORMULA.finditer(part))
        if not count:
            return None
        return f"{count} formulas have no results: open the workbook in a spreadsheet program, and save it"

    def of_all_parts(self, names: Sequence[str]) -> Iterator[ShownText]:
        """Yield all texts of the sheets of these names, and of all that is beside their cells."""
        archive = self._archive.unread()
        yield from texts_of_cells(archive, [self._parts[name] for name in names if name in self._parts])
        yield from texts_of_parts(archive)

    def _read_cells(self, data: bytes) -> Iterator[tuple[Position, str]]:
        rows = etree.iterparse(
            io.BytesIO(data),
            tag="{*}row",
            no_network=True,
            resolve_entities=False,
            recover=True,
            huge_tree=True,
        )
        for _, row in rows:
            for cell in row:
                reference = _REFERENCE.fullmatch(cell.get("r", "")) if local_name(cell) == "c" else None
                stored = find_child(cell, "v") if reference else None
                text = "" if stored is None else self._shown_text(cell, (stored.text or "").strip())
                if reference and text:
                    yield (int(reference[2]) - 1, column_number(reference[1].encode()) - 1), text
            row.clear()
            while row.getprevious() is not None:
                del row.getparent()[0]

    def _shown_text(self, cell: Any, stored: str) -> str:
        """Return the text that a cell shows; empty if it is that of its value."""
        kind = cell.get("t", "n")
        if kind == "e":
            return stored
        decimals = self._percent_decimals.get(parse_number(cell.get("s")))
        if kind != "n" or len(stored) > 40:
            return ""
        if decimals is not None:
            return _percentage(stored, decimals)
        return stored if len(stored) > MAX_EXACT_DIGITS and stored.removeprefix("-").isdecimal() else ""


def _percentage(stored: str, decimals: int) -> str:
    try:
        share = float(stored)
    except ValueError:
        return ""
    if not abs(share) < 10**MAX_EXACT_DIGITS:
        return ""
    step = Decimal(1).scaleb(-decimals)
    return f"{(Decimal(repr(share)) * 100).quantize(step, ROUND_HALF_UP):f}%"


def _percent_styles(styles: Any) -> Mapping[int, int]:
    """Return the decimals of each cell style that shows a percentage, by the number of the style."""
    formats = dict(BUILT_IN_FORMATS)
    for element in styles.iter():
        if local_name(element) == "numFmt":
            formats[parse_number(attribute_of(element, "numFmtId"), -1)] = attribute_of(element, "formatCode")
    cell_styles = find_child(styles, "cellXfs")
    codes = [
        formats.get(parse_number(attribute_of(style, "numFmtId")), "")
        for style in ([] if cell_styles is None else cell_styles)
    ]
    percent: dict[int, int] = {}
    for position, code in enumerate(codes):
        positive = _LITERALS.sub("", code.split(";")[0][:200])
        if "%" in positive:
            decimals = _DECIMALS.search(positive)
            percent[position] = min(len(decimals[1]), MAX_EXACT_DIGITS) if decimals else 0
    return percent


def _relation_id(sheet: Any) -> str:
    return next((str(value) for name, value in sheet.attrib.items() if name.endswith("}id")), "")
