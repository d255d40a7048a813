"""Spreadsheets."""

import io
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, SheetVisibleEnum

from conspectus.sources.files.extract import Extract, Refused, Unsupported, join_blocks
from conspectus.sources.files.missing_words import join_notices, missing_words_notice
from conspectus.sources.files.sheet_blocks import hidden_sheets_notice, render_sheet
from conspectus.sources.files.tables import Cell, fill_merged
from conspectus.sources.files.xlsx_formats import ShownTexts
from conspectus.sources.files.zip_xml import Archive

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
COMPOUND = b"\xd0\xcf\x11\xe0"
LARGEST_WHOLE = 1e21


def read_sheets(data: bytes, archive: Archive | None = None) -> Extract:
    """Return the text of a workbook; `archive` has the parts of an XLSX. Raises Refused."""
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        shown_texts = None if archive is None else ShownTexts(archive)
        sheets = workbook.sheets_metadata
        names = [sheet.name for sheet in sheets if sheet.visible == SheetVisibleEnum.Visible]
        if shown_texts is not None and (compacted := shown_texts.without_gaps(names)):
            data, shown_texts = compacted
            workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        blocks = [block for name in names for block in _sheet(workbook.get_sheet_by_name(name), shown_texts)]
    except CalamineError as error:
        reason = str(error)
        kind = Unsupported if "Cannot detect" in reason else Refused
        raise kind(f"a workbook that cannot be read: {reason[:200]}") from None
    hidden = [sheet.name for sheet in sheets if sheet.visible != SheetVisibleEnum.Visible]
    media_type = XLS if data.startswith(COMPOUND) else XLSX
    text = join_blocks(blocks)
    seen = () if shown_texts is None else shown_texts.of_all_parts(names)
    notice = join_notices(
        hidden_sheets_notice(hidden),
        None if shown_texts is None else shown_texts.unsaved_formulas_notice(names),
        missing_words_notice(text, seen),
    )
    return Extract(text, media_type, notice=notice)


def _sheet(sheet: CalamineSheet, shown: ShownTexts | None) -> Iterator[str]:
    """Yield the name of a sheet, its tables, and what it has beside its cells."""
    left = sheet.start[1] if sheet.start else 0
    rows: list[list[str]] = [
        [_cell_text(value) for value in row] if any(value != "" for value in row) else []
        for row in sheet.iter_rows()
    ]
    for (row, column), text in (shown.of_sheet(sheet.name) if shown else {}).items():
        _set_text(rows, row, column - left, text)
    others = shown.beside_cells(sheet.name) if shown else ()
    drawings = shown.drawings(sheet.name) if shown else ()
    yield from render_sheet(sheet.name, _filled(rows, sheet, left), others, drawings)


def _set_text(rows: list[list[str]], row: int, column: int, text: str) -> None:
    if row < len(rows) and column >= 0:
        rows[row] += [""] * (column + 1 - len(rows[row]))
        rows[row][column] = text


def _filled(rows: list[list[str]], sheet: CalamineSheet, left: int) -> list[list[str]]:
    """Return the rows with the text of each merged range in all its cells."""
    ranges = sheet.merged_cell_ranges
    if not ranges:
        return rows
    cells: list[list[Cell | None]] = [[Cell(text) for text in row] for row in rows]
    for (top, first), (bottom, last) in ranges:
        bottom, first, last = min(bottom, len(rows) - 1), first - left, min(last - left, sheet.width - 1)
        if top > bottom or first < 0 or first >= len(cells[top]) or cells[top][first] is None:
            continue
        for row in cells[top : bottom + 1]:
            row[first : last + 1] = [None] * len(row[first : last + 1])
        cells[top][first] = Cell(rows[top][first], last - first + 1, bottom - top + 1)
    stored = ([cell for cell in row if cell is not None] for row in cells)
    return [[cell.text for cell in row] for row in fill_merged(stored)]


def _cell_text(value: str | float | bool | date | datetime | time | timedelta) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < LARGEST_WHOLE:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime():
            rounded = value + timedelta(microseconds=500_000) if value.year < 9999 else value
            midnight = rounded.time().replace(microsecond=0) == time()
            return rounded.date().isoformat() if midnight else rounded.isoformat(" ", "seconds")
        case timedelta():
            return _duration_text(value)
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)


def _duration_text(duration: timedelta) -> str:
    """Return hours and minutes, with seconds if there are any: `36:00`, `-0:30:05`."""
    minutes, seconds = divmod(abs(round(duration.total_seconds())), 60)
    sign = "-" if duration < timedelta() else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
