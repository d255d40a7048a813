"""Spreadsheets."""

import io
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta

from python_calamine import CalamineError, CalamineWorkbook

from conspectus.sources.files.extract import Extract, Refused, Unsupported, heading, joined
from conspectus.sources.files.tables import render_table

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
COMPOUND = b"\xd0\xcf\x11\xe0"


def read_sheets(data: bytes) -> Extract:
    """Return the text of a workbook. Raises Refused."""
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        blocks = [block for name in workbook.sheet_names for block in _sheet(workbook, name)]
    except CalamineError as error:
        reason = str(error)
        kind = Unsupported if "Cannot detect" in reason else Refused
        raise kind(f"a workbook that cannot be read: {reason[:200]}") from None
    return Extract(joined(blocks), XLS if data.startswith(COMPOUND) else XLSX)


def _sheet(workbook: CalamineWorkbook, name: str) -> Iterator[str]:
    rows = workbook.get_sheet_by_name(name).iter_rows()
    text = render_table([
        [_cell_text(value) for value in row] for row in rows if any(value != "" for value in row)
    ])  # fmt: skip
    if text:
        yield heading(name, 2)
        yield text


def _cell_text(value: str | float | bool | date | datetime | time | timedelta) -> str:
    match value:
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.15g}"
        case datetime():
            midnight = value.time() == time()
            return value.date().isoformat() if midnight else value.isoformat(" ", "seconds")
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)
