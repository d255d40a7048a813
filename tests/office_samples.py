"""Small real office documents, books and PDFs, written part by part, sound ones and traps."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

OPC = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STYLES = "".join(
    f'<w:style w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>' for level in range(1, 4)
)


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of parts by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def links(*targets: tuple[str, str, str]) -> str:
    """A part of relationships: id, kind and target of each."""
    outside = {True: 'TargetMode="External"', False: ""}
    inner = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{escape(target)}" '
        f"{outside['://' in target]}/>"
        for name, kind, target in targets
    )
    return f'<Relationships xmlns="{OPC}">{inner}</Relationships>'


def paragraph(text: str, properties: str = "") -> str:
    """A paragraph of a DOCX."""
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def heading(text: str, level: int = 1) -> str:
    """A heading of a DOCX."""
    return paragraph(text, f'<w:pStyle w:val="H{level}"/>')


def docx(
    body: str, *, parts: Mapping[str, str] | None = None, doctype: str = "", main: str = "word/document.xml"
) -> bytes:
    """A DOCX with three styles of headings."""
    return zipped(
        {
            "_rels/.rels": links(("r1", "officeDocument", main)),
            "word/document.xml": f'{doctype}<w:document xmlns:w="{WORD}" xmlns:r="{OFFICE}"><w:body>'
            f"{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": links(
                ("r1", "styles", "styles.xml"),
                ("r2", "numbering", "numbering.xml"),
                ("r3", "footnotes", "footnotes.xml"),
                ("r4", "hyperlink", "https://example.org/a"),
            ),
            "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{STYLES}</w:styles>',
            **(parts or {}),
        }
    )


def pptx(slides: Sequence[str], *, parts: Mapping[str, str] | None = None) -> bytes:
    """A PPTX whose slides have these shapes; each may refer to its notes as r1 and to a chart as r2."""
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(len(slides)))
    files = {
        "_rels/.rels": links(("r1", "officeDocument", "ppt/presentation.xml")),
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDES}" xmlns:r="{OFFICE}"><p:sldIdLst>{ids}'
        "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": links(
            *((f"s{n}", "slide", f"slides/slide{9 - n}.xml") for n in range(len(slides)))
        ),
    }
    for n, shapes in enumerate(slides):
        files[f"ppt/slides/slide{9 - n}.xml"] = (
            f'<p:sld xmlns:p="{SLIDES}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}"><p:cSld><p:spTree>{shapes}'
            "</p:spTree></p:cSld></p:sld>"
        )
    return zipped({**files, **(parts or {})})


def shape(*lines: str, placeholder: str | None = None) -> str:
    """A shape of a slide with lines of text."""
    reserved = "" if placeholder is None else f'<p:ph type="{placeholder}"/>'
    inner = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f"<p:sp><p:nvSpPr><p:nvPr>{reserved}</p:nvPr></p:nvSpPr><p:txBody>{inner}</p:txBody></p:sp>"


def xlsx(
    sheets: Mapping[str, str],
    *,
    merged: str = "",
    hidden: str = "",
    formats: Sequence[str] = (),
    parts: Mapping[str, str] | None = None,
) -> bytes:
    """A workbook with the rows of each sheet, and other parts.

    `merged` is a merged range of every sheet, `hidden` the name of a hidden sheet. Style 2 and those after it
    have the formats.
    """
    states = {name: 'state="hidden"' * (name == hidden) for name in sheets}
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" {states[name]} r:id="r{n}"/>' for n, name in enumerate(sheets, 1)
    )
    targets = [(f"r{n}", "worksheet", f"worksheets/s{n}.xml") for n in range(1, len(sheets) + 1)]
    codes = "".join(f'<numFmt numFmtId="{n}" formatCode="{code}"/>' for n, code in enumerate(formats, 170))
    cell_formats = "".join(f'<xf numFmtId="{n}"/>' for n in range(170, 170 + len(formats)))
    styles = (
        f'<numFmts>{codes}</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>{cell_formats}</cellXfs>'
    )
    ranges = f'<mergeCells><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return zipped(
        {
            "_rels/.rels": links(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{SHEETS}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": links(*targets, ("st", "styles", "styles.xml")),
            "xl/styles.xml": f'<styleSheet xmlns="{SHEETS}">{styles}</styleSheet>',
            **{
                f"xl/worksheets/s{n}.xml": f'<worksheet xmlns="{SHEETS}"><sheetData>{rows}</sheetData>'
                f"{ranges}</worksheet>"
                for n, rows in enumerate(sheets.values(), 1)
            },
            **(parts or {}),
        }
    )


def row(number: int, *cells: str) -> str:
    """A row of a sheet; numbers as they are, anything else as text."""
    xml = ""
    for column, value in zip("ABCDEFGH", cells, strict=False):
        reference = f'r="{column}{number}"'
        plain = value.replace(".", "", 1).isdecimal()
        xml += f"<c {reference}><v>{value}</v></c>" if plain else ""
        xml += "" if plain else f'<c {reference} t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<row r="{number}">{xml}</row>'


def epub(chapters: Mapping[str, str], *, parts: Mapping[str, str] | None = None) -> bytes:
    """A book whose spine names the chapters in this order."""
    manifest = "".join(
        f'<item id="{name}" href="{name}%20x.xhtml" media-type="application/xhtml+xml"/>' for name in chapters
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="OPS/a.opf"/></container>',
            "OPS/a.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            "<dc:title>The Book</dc:title><dc:creator>A. Writer</dc:creator><dc:creator>"
            "B. Writer</dc:creator><dc:language>de</dc:language></metadata>"
            f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>",
            **{
                f"OPS/{name} x.xhtml": f"<!DOCTYPE html><html><body>{text}</body></html>"
                for name, text in chapters.items()
            },
            **(parts or {}),
        }
    )


def pdf(*pages: bytes, bookmarks: Sequence[tuple[str, int]] = (), title: str = "", count: int = 0) -> bytes:
    """A PDF whose pages have these streams of drawing operators; `bookmarks` lead to pages, from 0."""
    first = 5 + 2 * len(pages)
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {f'/Outlines {first} 0 R' if bookmarks else ''} >>".encode(),
        f"<< /Type /Pages /Kids [{kids}] /Count {count or len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>".encode(),
    ]
    for n, page in enumerate(pages):
        packed = zlib.compress(page)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (6 + 2 * n)
        )
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed)
        )
    if bookmarks:
        last = first + len(bookmarks)
        objects.append(f"<< /First {first + 1} 0 R /Last {last} 0 R /Count {len(bookmarks)} >>".encode())
        for n, (name, page) in enumerate(bookmarks, first + 1):
            following = f"/Next {n + 1} 0 R" if n < last else ""
            dest = f"/Parent {first} 0 R /Dest [{5 + 2 * page} 0 R /Fit] {following}"
            objects.append(f"<< /Title ({name}) {dest} >>".encode())
    return numbered_objects(objects)


def lines(*texts: str) -> bytes:
    """Drawing operators that write lines of text."""
    moves = "".join(f"({text}) Tj 0 -30 Td " for text in texts)
    return f"BT /F1 18 Tf 72 720 Td {moves} ET".encode()


def numbered_objects(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects: the catalog is the first, what it says of itself the fourth."""
    data, starts = b"%PDF-1.4\n", []
    for number, part in enumerate(objects, 1):
        starts.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    trailer = b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\n" % (len(objects) + 1)
    return data + head + table + trailer + b"startxref\n%d\n%%%%EOF" % len(data)
