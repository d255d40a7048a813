"""Workbooks made by script: formats of numbers, errors, several tables on a sheet, and hidden sheets."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from made_pages import MadePage, pep_paragraphs, pep_row
from made_tables import PEP_NAMES, expected, workbook

PEPS_OF_WORKBOOK = 40
MADE_WORKBOOKS = 4
FORMATS = ("0.0%", "yyyy-mm-dd", "[h]:mm", "0", "General")
FORMATTED = (
    ("Kind", "t", None, "Kind"),
    ("Share", 2, "0.125", "12.5%"),
    ("Day", 3, "46000", "2025-12-09"),
    ("Length", 4, "1.5", "36:00"),
    ("Number", 5, "12345678901234567", "12345678901234567"),
    ("Plain", 6, "4.4000000000000004", "4.4"),
    ("Truth", "b", "1", "TRUE"),
    ("Fault", "e", "#DIV/0!", "#DIV/0!"),
    ("Minus", 6, "-0.5", "-0.5"),
)


def formatted_sheet() -> MadePage:
    """Return a workbook of percentages, dates, durations, long numbers, errors, and a hidden sheet."""
    codes = "".join(f'<numFmt numFmtId="{n}" formatCode="{code}"/>' for n, code in enumerate(FORMATS, 170))
    formats = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 0, *range(170, 175)))
    rows = ""
    for number, (name, kind, stored, _) in enumerate(FORMATTED, 1):
        cell = f'<c r="A{number}" t="inlineStr"><is><t>{name}</t></is></c>'
        if stored is None:
            cell += f'<c r="B{number}" t="inlineStr"><is><t>Shown</t></is></c>'
        else:
            mark = f's="{kind}"' if isinstance(kind, int) else f't="{kind}"'
            cell += f'<c r="B{number}" {mark}><v>{stored}</v></c>'
        rows += f'<row r="{number}">{cell}</row>'
    sheets = {
        "Shown": f"<sheetData>{rows}</sheetData>",
        "Secret": f"<sheetData>{rows.replace('Kind', 'Hidden')}</sheetData>",
    }
    content = workbook(
        sheets, hidden="Secret", styles=f"<numFmts>{codes}</numFmts><cellXfs>{formats}</cellXfs>"
    )
    texts = [("Kind", "Shown"), *((name, display) for name, _, _, display in FORMATTED[1:])]
    return MadePage("xlsx, tables", "table, formats.xlsx", content, expected(texts))


BLOCKS = (
    (("Berth", "Fee"), ("Heron", "150"), ("Gull", "90")),
    (("Month", "Ships", "Tons"), ("May", "12", "3400"), ("June", "15", "4100")),
)


def blocks_of_a_sheet() -> MadePage:
    """Return a workbook with two tables on one sheet, divided by a blank row."""
    upper, lower = BLOCKS
    rows = sheet_rows(upper) + sheet_rows(lower, len(upper) + 2)
    content = workbook({"Both": f"<sheetData>{rows}</sheetData>"})
    return MadePage("xlsx, tables", "table, blocks.xlsx", content, "\n\n".join(map(expected, BLOCKS)))


def sheet_rows(rows: Sequence[Sequence[str]], first: int = 1) -> str:
    """Return rows of texts of a sheet, from this number on."""
    parts = []
    for number, texts in enumerate(rows, first):
        cells = "".join(
            f'<c r="{chr(65 + column)}{number}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'
            for column, text in enumerate(texts)
        )
        parts.append(f'<row r="{number}">{cells}</row>')
    return "".join(parts)


def made_workbooks(peps: Path) -> Iterator[MadePage]:
    """Yield workbooks of PEPs: for each type a sheet with a title above its table, and one of paragraphs."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(peps.glob("*.rst"))]
    for first in range(0, MADE_WORKBOOKS * PEPS_OF_WORKBOOK, PEPS_OF_WORKBOOK):
        rows_by_type: dict[str, list[list[str]]] = defaultdict(list)
        paragraphs: list[list[str]] = []
        for text in texts[first : first + PEPS_OF_WORKBOOK]:
            if row := pep_row(text):
                rows_by_type[row[3]].append(row)
                paragraphs += [[row[0], paragraph] for paragraph in pep_paragraphs(text)[:3]]
        sheets: dict[str, str] = {}
        markdown = ""
        for kind, rows in rows_by_type.items():
            title, table = f"{len(rows)} PEPs that are {kind}", [PEP_NAMES, *rows]
            sheets[kind] = f"<sheetData>{sheet_rows([[title], *table])}</sheetData>"
            markdown += f"## {kind}\n\n{title}\n\n{expected(table)}\n\n"
        table = [["PEP", "Paragraph"], *paragraphs]
        sheets["Paragraphs"] = f"<sheetData>{sheet_rows(table)}</sheetData>"
        markdown += f"## Paragraphs\n\n{expected(table)}"
        yield MadePage("xlsx, PEPs", f"workbook {first}.xlsx", workbook(sheets), markdown)


def made_sheets() -> Iterator[MadePage]:
    """Yield the workbooks."""
    yield formatted_sheet()
    yield blocks_of_a_sheet()
