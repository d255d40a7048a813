"""Find a row of a table with its header in a small window, by format: python benchmarks/tables.py.

A table of 150 rows is written in each format, and twelve of its rows are asked for by their name. A question
counts if the window has the row below the names of its columns.
"""

import asyncio
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from conspectus import Budget, Settings
from conspectus.engine import Engine
from conspectus.evals.stores import fresh_engine

NAMES = ("Berth", "Fee in euros", "Depth in meters", "Harbor master")
ROWS = tuple(
    (f"Heron-{number}", str(1_000 + 7 * number), f"{2 + number % 9}.5", f"Master {number % 13}")
    for number in range(1, 151)
)
ASKED = (3, 14, 27, 40, 53, 66, 79, 92, 105, 118, 131, 140)
TITLE, BEFORE, AFTER = "Harbor fees", "The fees below hold from May.", "All fees include water."
TOKENS = 200
ROWS_OF_PAGE = 45
OPC = "http://schemas.openxmlformats.org/package/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPEN = "urn:oasis:names:tc:opendocument:xmlns:"

PART_KINDS = {
    "word/document.xml": "wordprocessingml.document.main",
    "ppt/presentation.xml": "presentationml.presentation.main",
    "ppt/slides/slide": "presentationml.slide",
    "xl/workbook.xml": "spreadsheetml.sheet.main",
    "xl/worksheets/": "spreadsheetml.worksheet",
    "xl/styles.xml": "spreadsheetml.styles",
}
"""What the parts of office documents are, by the beginning of their names."""

Table: TypeAlias = Sequence[Sequence[str]]


def zipped(parts: Mapping[str, str]) -> bytes:
    """Return a ZIP archive of parts by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def write_markdown(table: Table) -> bytes:
    """Return the table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in table]
    text = "\n".join([lines[0], "|" + " --- |" * len(NAMES), *lines[1:]])
    return f"# {TITLE}\n\n{BEFORE}\n\n{text}\n\n{AFTER}\n".encode()


def write_delimited(delimiter: str) -> Callable[[Table], bytes]:
    """Return a function that writes a table with this delimiter."""
    return lambda table: "".join(f"{delimiter.join(row)}\r\n" for row in table).encode()


def write_html(table: Table) -> bytes:
    """Return the table in HTML, its names as header cells."""
    head = f"<head><title>{TITLE}</title></head>"
    return f"<!DOCTYPE html><html>{head}<body>{_html_body(table)}</body></html>".encode()


def write_epub(table: Table) -> bytes:
    """Return the table as the chapter of a book."""
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="a.opf"/></container>',
            "a.opf": f'<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>{TITLE}</dc:title>'
            '</metadata><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
            '<spine><itemref idref="a"/></spine></package>',
            "a.xhtml": f"<!DOCTYPE html><html><body>{_html_body(table)}</body></html>",
        }
    )


def write_docx(table: Table) -> bytes:
    """Return the table in a DOCX."""
    rows = _rows(table, "<w:tr>{}</w:tr>", "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>")
    lines = [f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in (BEFORE, AFTER)]
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"{lines[0]}<w:tbl>{rows}</w:tbl>{lines[1]}"
    return office_file("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")


def write_pptx(table: Table) -> bytes:
    """Return the table on a slide."""
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    return slide_file(
        f"<p:graphicFrame><a:tbl>{_rows(table, '<a:tr>{}</a:tr>', cell)}</a:tbl></p:graphicFrame>"
    )


def slide_file(frame: str) -> bytes:
    """Return a presentation with one slide that shows a frame."""
    spaces = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    spaces += f'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{OFFICE}"'
    return office_file(
        "ppt/presentation.xml",
        f'<p:presentation {spaces}><p:sldIdLst><p:sldId id="256" r:id="s"/></p:sldIdLst></p:presentation>',
        {
            "ppt/_rels/presentation.xml.rels": relation("s", "slide", "slides/slide1.xml"),
            "ppt/slides/slide1.xml": f"<p:sld {spaces}><p:cSld><p:spTree>{frame}</p:spTree></p:cSld></p:sld>",
        },
    )


def write_xlsx(table: Table) -> bytes:
    """Return the table in a workbook, figures as numbers."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rows = "".join(_sheet_row(number, row) for number, row in enumerate(table, 1))
    sheets = '<sheets><sheet name="Fees" sheetId="1" r:id="r1"/></sheets>'
    return office_file(
        "xl/workbook.xml",
        f'<workbook {space} xmlns:r="{OFFICE}">{sheets}</workbook>',
        {
            "xl/_rels/workbook.xml.rels": relation("r1", "worksheet", "worksheets/s1.xml"),
            "xl/worksheets/s1.xml": f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>",
        },
    )


def write_open_document(kind: str) -> Callable[[Table], bytes]:
    """Return a function that writes a table as a text, presentation or spreadsheet of OpenDocument."""
    frames = {"presentation": '<draw:page draw:name="1"><draw:frame>{}</draw:frame></draw:page>'}
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    names = ("office", "text", "table", "draw")
    spaces = " ".join(f'xmlns:{name}="{OPEN}{name}:1.0"' for name in names)

    def write(table: Table) -> bytes:
        rows = _rows(table, "<table:table-row>{}</table:table-row>", cell)
        inner = frames.get(kind, "{}").format(f'<table:table table:name="Fees">{rows}</table:table>')
        body = f"<office:body><office:{kind}>{inner}</office:{kind}></office:body>"
        content = f"<office:document-content {spaces}>{body}</office:document-content>"
        return zipped({"mimetype": f"application/vnd.oasis.opendocument.{kind}", "content.xml": content})

    return write


def write_pdf(table: Table) -> bytes:
    """Return the table on pages of a PDF, its names on the first page alone."""
    pages = [table[first : first + ROWS_OF_PAGE] for first in range(0, len(table), ROWS_OF_PAGE)]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, rows in enumerate(pages):
        resources = f"/Resources << /Font << /F 3 0 R >> >> /Contents {5 + 2 * number} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} >>")
        stream = "\n".join(
            f"BT /F 10 Tf {72 + 130 * column} {740 - 14 * line} Td ({text}) Tj ET"
            for line, row in enumerate(rows)
            for column, text in enumerate(row)
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, starts = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        starts.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    entries = "".join(f"{start:010} 00000 n \n" for start in starts)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{entries}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    return f"{body}{end}startxref\n{len(body)}\n%%EOF".encode()


WRITERS: Mapping[str, Callable[[Table], bytes]] = {
    "md": write_markdown,
    "csv": write_delimited(";"),
    "tsv": write_delimited("\t"),
    "xlsx": write_xlsx,
    "ods": write_open_document("spreadsheet"),
    "docx": write_docx,
    "odt": write_open_document("text"),
    "pptx": write_pptx,
    "odp": write_open_document("presentation"),
    "html": write_html,
    "epub": write_epub,
    "pdf": write_pdf,
}


def write_files(folder: Path) -> Mapping[str, Path]:
    """Write the table in each format, and return the paths of the files."""
    paths = {kind: folder / f"fees.{kind}" for kind in WRITERS}
    for kind, path in paths.items():
        path.write_bytes(WRITERS[kind]((NAMES, *ROWS)))
    return paths


async def count_answers(
    paths: Mapping[str, Path], tokens: int = TOKENS, settings: Settings | None = None
) -> dict[str, int]:
    """Return by format how many of the questions a window of so many tokens answers."""
    async with fresh_engine(settings or Settings.from_environment()) as engine:
        answers = {}
        for kind, path in paths.items():
            await engine.collections.create(kind)
            await engine.documents.add_files([path], collection=kind)
            answered = [await is_answered(engine, kind, ROWS[number - 1], tokens) for number in ASKED]
            answers[kind] = sum(answered)
    return answers


async def is_answered(engine: Engine, collection: str, row: Sequence[str], tokens: int) -> bool:
    """Return whether the window for the fee of a berth has its row below the names of the columns."""
    question = f"What is the fee of berth {row[0]}?"
    window = await engine.search.window(question, Budget(tokens), collection=collection)
    if window.tokens > tokens:
        return False
    lines = window.text.splitlines()
    at = next((number for number, line in enumerate(lines) if row[0] in line.split() and row[1] in line), 0)
    return any(NAMES[0] in line and NAMES[1] in line for line in lines[:at])


def main() -> None:
    """Print the answered questions by format."""
    with TemporaryDirectory() as folder:
        answers = asyncio.run(count_answers(write_files(Path(folder))))
    for kind, count in answers.items():
        print(f"{kind:5} {count:2} of {len(ASKED)} in {TOKENS} tokens")


def _html_body(table: Table) -> str:
    names, rows = table[:1], table[1:]
    head = _rows(names, "<tr>{}</tr>", "<th>{}</th>")
    body = _rows(rows, "<tr>{}</tr>", "<td>{}</td>")
    return f"<h1>{TITLE}</h1><p>{BEFORE}</p><table>{head}{body}</table><p>{AFTER}</p>"


def _rows(table: Table, row: str, cell: str) -> str:
    return "".join(row.format("".join(cell.format(escape(text)) for text in texts)) for texts in table)


def _sheet_row(number: int, row: Sequence[str]) -> str:
    cells = "".join(_sheet_cell(text, f"{column}{number}") for column, text in zip("ABCD", row, strict=True))
    return f'<row r="{number}">{cells}</row>'


def _sheet_cell(text: str, reference: str) -> str:
    if text.replace(".", "", 1).isdecimal():
        return f'<c r="{reference}"><v>{text}</v></c>'
    return f'<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>'


def office_file(main: str, content: str, parts: Mapping[str, str] | None = None) -> bytes:
    """Return an office document with its main part and others."""
    named = {"_rels/.rels": relation("r", "officeDocument", main), main: content, **(parts or {})}
    kinds = {name: kind for name in named for part, kind in PART_KINDS.items() if name.startswith(part)}
    media = "application/vnd.openxmlformats-officedocument"
    listed = "".join(
        f'<Override PartName="/{name}" ContentType="{media}.{kind}+xml"/>' for name, kind in kinds.items()
    )
    defaults = '<Default Extension="xml" ContentType="application/xml"/>'
    defaults += (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    )
    return zipped({"[Content_Types].xml": f'<Types xmlns="{TYPES}">{defaults}{listed}</Types>', **named})


def relation(name: str, kind: str, target: str) -> str:
    """Return a part that names one relation."""
    link = f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{OPC}">{link}</Relationships>'


if __name__ == "__main__":
    main()
