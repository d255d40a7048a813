"""Awkward tables made by script in each format that has them, with the Markdown that they should become.

Merged cells are expected in each row and column that they span. Names in two rows are expected as two rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

from made_pages import MadePage, pep_row
from tables import OFFICE, OPC, OPEN, office_file, slide_file, zipped


@dataclass(frozen=True, slots=True)
class Merged:
    """A cell with the columns and rows that it spans."""

    text: str
    columns: int = 1
    rows: int = 1


Cell: TypeAlias = Merged | str
Rows: TypeAlias = Sequence[Sequence[Cell]]
Writer: TypeAlias = Callable[[Rows], bytes]

MERGED: Rows = (
    (Merged("Harbor", rows=2), Merged("Fee in euros", columns=2), Merged("Master", rows=2)),
    ("2025", "2026"),
    (Merged("Heron", rows=2), "150", "160", "Ann"),
    ("170", "180", "Ben"),
    ("Gull", Merged("closed for repairs", columns=2), "Cleo"),
)
BLANK_NAMES: Rows = (
    ("", "Length", "", "Fee"),
    ("Heron-1", "12 m", "north", "150"),
    ("Heron-2", "", "south", "180"),
    ("Gull", "9 m", "", "90"),
)
RIGHT_TO_LEFT: Rows = (
    ("المرفأ", "الرسوم", "Code"),
    ("طنجة", "\u0661\u0665\u0660", "TNG"),
    ("חיפה", "180 ₪", "HFA"),
)
CHINESE: Rows = (("港口", "费用", "长度"), ("横浜", "1,500円", "１２メートル"), ("부산", "₩90,000", "9미터"))
PUNCTUATION: Rows = (
    ("Sign", "Meaning"),
    ("a | b", "either of <two> & more"),
    ("* star *", "1. is no list"),
    ("# 5", 'it\'s "quoted", with; signs'),
    ("C:\\harbor\\new", "50 % of 1_000"),
)
FRAME = (
    '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="2" name="Table"/><p:cNvGraphicFramePr/><p:nvPr/>'
    '</p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm><a:graphic>'
    '<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table">{}</a:graphicData></a:graphic></p:graphicFrame>'
)
TABLES: Mapping[str, Rows] = {
    "merged cells": MERGED,
    "blank names": BLANK_NAMES,
    "right to left": RIGHT_TO_LEFT,
    "Chinese": CHINESE,
    "punctuation": PUNCTUATION,
}
PEP_NAMES = ["PEP", "Title", "Status", "Type", "Created"]
LISTED_PEPS = 40
MADE_LISTS = 4
NESTED: Rows = (("Volt", "230"), ("Watt", "5"))


def merged_cell(cell: Cell) -> Merged:
    """Return a cell with what it spans."""
    return cell if isinstance(cell, Merged) else Merged(cell)


def grid_of(rows: Rows) -> list[list[Merged | None]]:
    """Return the merged cell at each place of a table: the first place of a cell has it, the others None."""
    width = sum(merged_cell(cell).columns for cell in rows[0])
    covered = [[False] * width for _ in rows]
    grid: list[list[Merged | None]] = [[None] * width for _ in rows]
    for number, row in enumerate(rows):
        for cell in map(merged_cell, row):
            column = covered[number].index(False)
            grid[number][column] = cell
            for below in covered[number : number + cell.rows]:
                below[column : column + cell.columns] = [True] * cell.columns
    return grid


def filled(rows: Rows) -> list[list[str]]:
    """Return the texts of a table with those of merged cells in each row and column."""
    grid = grid_of(rows)
    texts = [[""] * len(row) for row in grid]
    for number, row in enumerate(grid):
        for column, cell in enumerate(row):
            merged = cell or Merged("", 0, 0)
            for below in texts[number : number + merged.rows]:
                below[column : column + merged.columns] = [merged.text] * merged.columns
    return texts


def expected(rows: Rows) -> str:
    """Return a table as Markdown; markup characters are escaped."""
    lines = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in filled(rows)]
    return "\n".join([lines[0], "|" + " --- |" * len(filled(rows)[0]), *lines[1:]])


def write_html(rows: Rows) -> bytes:
    """Return a table in HTML, its names as header cells."""
    return f"<!DOCTYPE html><html><meta charset=utf-8><body>{html_table(rows)}</body></html>".encode()


def html_table(rows: Rows) -> str:
    """Return a table in HTML: the rows that merged names reach are header cells."""
    names = max(merged_cell(cell).rows for cell in rows[0])
    parts = []
    for number, row in enumerate(rows):
        tag = "th" if number < names else "td"
        cells = (
            f"<{tag} colspan={cell.columns} rowspan={cell.rows}>{escape(cell.text)}</{tag}>"
            for cell in map(merged_cell, row)
        )
        parts.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(parts)}</table>"


def write_epub(rows: Rows) -> bytes:
    """Return a table as the chapter of a book."""
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="a.opf"/></container>',
            "a.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>A</dc:title>'
            '</metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
            "a.xhtml": write_html(rows).decode(),
        }
    )


def write_docx(rows: Rows) -> bytes:
    """Return a table in a DOCX, which stores a merged cell in each of its rows."""
    names = max(merged_cell(cell).rows for cell in rows[0])
    parts = []
    reaching: dict[int, tuple[Merged, int]] = {}
    for number, row in enumerate(grid_of(rows)):
        header = "<w:trPr><w:tblHeader/></w:trPr>" if number < names else ""
        cells, column = "", 0
        while column < len(row):
            cell = row[column]
            merge = '<w:vMerge w:val="restart"/>' if cell and cell.rows > 1 else ""
            if cell:
                reaching[column] = (cell, number + cell.rows - 1)
            else:
                cell, merge = reaching[column][0], "<w:vMerge/>"
            text = "" if merge == "<w:vMerge/>" else escape(cell.text)
            spans = f'<w:tcPr><w:gridSpan w:val="{cell.columns}"/>{merge}</w:tcPr>'
            cells += f'<w:tc>{spans}<w:p><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p></w:tc>'
            column += cell.columns
        parts.append(f"<w:tr>{header}{cells}</w:tr>")
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"<w:body><w:tbl>{''.join(parts)}</w:tbl></w:body>"
    return office_file("word/document.xml", f"<w:document {space}>{body}</w:document>")


def write_pptx(rows: Rows) -> bytes:
    """Return a table on a slide, where covered cells are stored without text."""
    parts = []
    above: dict[int, int] = {}
    for number, row in enumerate(grid_of(rows)):
        cells, covered = "", 0
        for column, cell in enumerate(row):
            if cell:
                covered = column + cell.columns
                above |= dict.fromkeys(range(column, covered), number + cell.rows - 1)
            is_below = not cell and column >= covered
            marks = f' gridSpan="{cell.columns}" rowSpan="{cell.rows}"' if cell else ""
            marks += ' hMerge="1"' if not cell and not is_below else ' vMerge="1"' if is_below else ""
            text = escape(cell.text) if cell else ""
            cells += f"<a:tc{marks}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"
        parts.append(f"<a:tr>{cells}</a:tr>")
    return slide_file(FRAME.format(f"<a:tbl>{''.join(parts)}</a:tbl>"))


def write_xlsx(rows: Rows) -> bytes:
    """Return a table in a workbook, with its merged ranges."""
    parts: list[str] = []
    ranges: list[str] = []
    for number, row in enumerate(grid_of(rows), 1):
        stored = {chr(65 + column): cell for column, cell in enumerate(row) if cell and cell.text}
        cells = (
            f'<c r="{column}{number}" t="inlineStr"><is><t>{escape(cell.text)}</t></is></c>'
            for column, cell in stored.items()
        )
        parts.append(f'<row r="{number}">{"".join(cells)}</row>')
        ranges += (
            f"{column}{number}:{chr(ord(column) + cell.columns - 1)}{number + cell.rows - 1}"
            for column, cell in stored.items()
            if cell.rows * cell.columns > 1
        )
    listed = "".join(f'<mergeCell ref="{merged}"/>' for merged in ranges)
    merged = f"<mergeCells>{listed}</mergeCells>" if ranges else ""
    return workbook({"Fees": f"<sheetData>{''.join(parts)}</sheetData>{merged}"})


def workbook(sheets: Mapping[str, str], *, hidden: str = "", styles: str = "") -> bytes:
    """Return a workbook of sheets by name; `styles` are the formats of cells."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    states = {name: 'state="hidden" ' if name == hidden else "" for name in sheets}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" {state}r:id="r{number}"/>'
        for number, (name, state) in enumerate(states.items(), 1)
    )
    links = "".join(
        f'<Relationship Id="r{number}" Type="{OFFICE}/worksheet" Target="worksheets/s{number}.xml"/>'
        for number in range(1, len(sheets) + 1)
    )
    links += f'<Relationship Id="st" Type="{OFFICE}/styles" Target="styles.xml"/>'
    return office_file(
        "xl/workbook.xml",
        f'<workbook {space} xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        {
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{OPC}">{links}</Relationships>',
            "xl/styles.xml": f"<styleSheet {space}>{styles}</styleSheet>",
            **{
                f"xl/worksheets/s{number}.xml": f"<worksheet {space}>{sheet}</worksheet>"
                for number, sheet in enumerate(sheets.values(), 1)
            },
        },
    )


def write_open_document(kind: str) -> Writer:
    """Return a function that writes a table as a text, presentation or spreadsheet of OpenDocument."""
    frames = {"presentation": '<draw:page draw:name="1"><draw:frame>{}</draw:frame></draw:page>'}
    names = ("office", "text", "table", "draw")
    spaces = " ".join(f'xmlns:{name}="{OPEN}{name}:1.0"' for name in names)

    def write(rows: Rows) -> bytes:
        height = max(merged_cell(cell).rows for cell in rows[0])
        lines = [_open_row(row) for row in grid_of(rows)]
        header = f"<table:table-header-rows>{''.join(lines[:height])}</table:table-header-rows>"
        table = f'<table:table table:name="Fees">{header}{"".join(lines[height:])}</table:table>'
        inner = frames.get(kind, "{}").format(table)
        body = f"<office:body><office:{kind}>{inner}</office:{kind}></office:body>"
        content = f"<office:document-content {spaces}>{body}</office:document-content>"
        return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})

    return write


def _open_row(row: Sequence[Merged | None]) -> str:
    cells = "".join(
        f'<table:table-cell table:number-columns-spanned="{cell.columns}" '
        f'table:number-rows-spanned="{cell.rows}"><text:p>{escape(cell.text)}</text:p></table:table-cell>'
        if cell
        else "<table:covered-table-cell/>"
        for cell in row
    )
    return f"<table:table-row>{cells}</table:table-row>"


def write_markdown(rows: Rows) -> bytes:
    """Return a table in Markdown, as HTML if it has merged cells."""
    has_merged = any(merged_cell(cell) != Merged(merged_cell(cell).text) for row in rows for cell in row)
    return (html_table(rows) if has_merged else expected(rows)).encode()


def write_csv(rows: Rows) -> bytes:
    """Return a table as CSV, with merged cells repeated."""
    quoted = ([f'"{text.replace(chr(34), chr(34) * 2)}"' for text in row] for row in filled(rows))
    return "".join(f"{','.join(row)}\r\n" for row in quoted).encode()


WRITERS: Mapping[str, Writer] = {
    "html": write_html,
    "epub": write_epub,
    "docx": write_docx,
    "pptx": write_pptx,
    "xlsx": write_xlsx,
    "odt": write_open_document("text"),
    "odp": write_open_document("presentation"),
    "ods": write_open_document("spreadsheet"),
    "md": write_markdown,
    "csv": write_csv,
}


def made_tables() -> Iterator[MadePage]:
    """Yield each table in each format that can express it."""
    for name, rows in TABLES.items():
        for kind, write in WRITERS.items():
            yield MadePage(f"{kind}, tables", f"table, {name}.{kind}", write(rows), expected(rows))
    nested = "<table><tr><th>Part<th>Facts</tr><tr><td>Pump<td>{}</tr><tr><td>Fan<td>none</tr></table>"
    inner = nested.format(html_table(NESTED))
    text = "| Part | Facts |\n| --- | --- |\n| Pump | Volt 230 Watt 5 |\n| Fan | none |"
    yield MadePage("html, tables", "table, nested.html", inner.encode(), text)
    yield MadePage("md, tables", "table, nested.md", inner.encode(), text)


def made_pep_tables(peps: Path) -> Iterator[MadePage]:
    """Yield lists of PEPs with their titles and dates in each format that has tables."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(peps.glob("*.rst")))
    rows = list(filter(None, map(pep_row, texts)))
    for first in range(0, LISTED_PEPS * MADE_LISTS, LISTED_PEPS):
        table = [PEP_NAMES, *rows[first : first + LISTED_PEPS]]
        for kind, write in WRITERS.items():
            yield MadePage(f"{kind}, PEPs", f"PEPs {first}.{kind}", write(table), expected(table))
