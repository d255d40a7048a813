"""The author and the language of a file are those that its properties name."""

import json
from collections.abc import Mapping

import pytest
from tests.office_samples import (
    OPC,
    docx,
    epub,
    lines,
    numbered_objects,
    paragraph,
    pptx,
    row,
    shape,
    xlsx,
    zipped,
)

from conspectus.model.records import NewDocument
from conspectus.sources.files.file_properties import (
    MAX_AUTHOR_CHARACTERS,
    declared_authors,
    join_authors,
)
from conspectus.sources.files.local_files import LocalFiles

CORE = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
MAIN_PARTS = {"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml"}
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPEN_NAMES = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("office", "text", "table", "meta", "dc"))


def core_parts(kind: str, properties: str) -> Mapping[str, str]:
    return {
        "_rels/.rels": f'<Relationships xmlns="{OPC}">'
        f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="{MAIN_PARTS[kind]}"/>'
        f'<Relationship Id="r2" Type="{CORE}" Target="docProps/core.xml"/></Relationships>',
        "docProps/core.xml": f'<c:coreProperties xmlns:c="urn:core" xmlns:dc="urn:dc">{properties}'
        "</c:coreProperties>",
    }


def office_document(kind: str, properties: str) -> bytes:
    parts = core_parts(kind, properties)
    if kind == "docx":
        return docx(paragraph("Text"), parts=parts)
    if kind == "pptx":
        return pptx([shape("Text")], parts=parts)
    return xlsx({"Sheet": row(1, "Text")}, parts=parts)


def open_document(kind: str) -> bytes:
    cell = "<table:table-cell><text:p>Text</text:p></table:table-cell>"
    bodies = {
        "text": "<text:p>Text</text:p>",
        "spreadsheet": f"<table:table><table:table-row>{cell}</table:table-row></table:table>",
    }
    return zipped(
        {
            "content.xml": f"<office:document-content {OPEN_NAMES}><office:body><office:{kind}>{bodies[kind]}"
            f"</office:{kind}></office:body></office:document-content>",
            "meta.xml": f"<office:document-meta {OPEN_NAMES}><office:meta><dc:creator>Ben</dc:creator>"
            "<meta:initial-creator>Ann Keeper</meta:initial-creator><dc:language>de-AT</dc:language>"
            "</office:meta></office:document-meta>",
        }
    )


def pdf_with_properties() -> bytes:
    content = lines("Text")
    return numbered_objects(
        [
            b"<< /Type /Catalog /Pages 2 0 R /Lang (de-AT) >>",
            b"<< /Type /Pages /Kids [5 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Author (Ann Keeper) >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 6 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        ]
    )


def read_file(data: bytes, name: str) -> NewDocument:
    [document] = LocalFiles().parse_bytes(data, name).documents
    return document


@pytest.mark.parametrize("kind", MAIN_PARTS)
def test_core_properties_name_author_and_language(kind: str) -> None:
    properties = "<dc:creator>Ann Keeper; Ben</dc:creator><dc:language>de-AT</dc:language>"
    document = read_file(office_document(kind, properties), f"a.{kind}")
    assert (document.author, document.metadata["language"]) == ("Ann Keeper, Ben", "de-AT")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (open_document("text"), "a.odt"),
        (open_document("spreadsheet"), "a.ods"),
        (pdf_with_properties(), "a.pdf"),
        (b'<html lang=de-AT><meta name=Author content="Ann Keeper"><p>Text</p>', "a.html"),
        (b'<html lang=de-AT><meta name=Author content="Ann Keeper"><p>Text</p>'
         b'<img src="data:image/jpeg;base64,aaaa">', "photo.html"),
        (b"---\nauthor: Ann Keeper\nlang: de-AT\n---\nText", "a.md"),
        (b"---\nauthors:\n  - name: Ann Keeper\nlanguage: de-AT\n---\nText", "a.md"),
    ],
)  # fmt: skip
def test_every_format_names_author_and_language(data: bytes, name: str) -> None:
    document = read_file(data, name)
    assert (document.author, document.metadata["language"]) == ("Ann Keeper", "de-AT")


@pytest.mark.parametrize("program", ["python-docx", "openpyxl", "Microsoft Office User", " ", "(anonymous)"])
def test_a_program_is_no_author(program: str) -> None:
    assert read_file(office_document("docx", f"<dc:creator>{program}</dc:creator>"), "a.docx").author is None


@pytest.mark.parametrize("properties", ["<dc:language>English, or so</dc:language>", "<dc:language/>", ""])
def test_what_is_no_language_tag_is_left_out(properties: str) -> None:
    document = read_file(office_document("docx", properties), "a.docx")
    assert document.author is None and "language" not in document.metadata


def test_damaged_properties_leave_the_text() -> None:
    assert read_file(office_document("xlsx", "<dc:creator>"), "a.xlsx").text == "## Sheet\n\nText"


def test_a_book_by_nobody_has_no_author() -> None:
    assert join_authors(["Unknown"]) is None
    assert read_file(epub({"a": "text"}), "a.epub").author == "A. Writer, B. Writer"


def test_an_author_has_a_limit_and_stands_once() -> None:
    assert join_authors(["Ann", "Ann;  Ben "]) == "Ann, Ben"
    assert len(join_authors(["x" * 10_000]) or "") == MAX_AUTHOR_CHARACTERS


def test_a_notebook_names_its_authors() -> None:
    cells = [{"cell_type": "markdown", "source": "Text"}]
    metadata = {"authors": [{"name": "Ann Keeper"}, {"name": "Ben"}], "language": "sql"}
    document = read_file(json.dumps({"cells": cells, "metadata": metadata}).encode(), "a.ipynb")
    assert document.author == "Ann Keeper, Ben"
    assert "language" not in document.metadata


@pytest.mark.parametrize(
    ("value", "author"),
    [
        (["Ann", {"name": "Ben"}], "Ann, Ben"),
        ({"name": "Ann", "email": "ann@example.org"}, "Ann"),
        ("Ann\x00\x1b[31m \u202eKeeper\u202c\ud800", "Ann[31m Keeper"),
        (["x" * 10_000], "x" * MAX_AUTHOR_CHARACTERS),
        ("42", None),
        (42, None),
        (None, None),
        ({"name": ["Ann"]}, None),
        ([["Ann"]], None),
        ("\u202e", None),
    ],
)
def test_an_author_of_any_form_is_a_name_or_none(value: object, author: str | None) -> None:
    assert declared_authors({"author": value}) == author


def test_authors_stand_in_either_field() -> None:
    assert declared_authors({"author": "Ann", "authors": ["Ann", "Ben"]}) == "Ann, Ben"


@pytest.mark.parametrize(
    "front_matter",
    [
        b"author: [",
        b"author: &a [*a, *a]",
        b"author: " + b"[" * 50,
        b"author: !!python/object:x {}",
        b"authors:",
    ],
)
def test_front_matter_that_is_no_yaml_leaves_the_text(front_matter: bytes) -> None:
    document = read_file(b"---\n%s\n---\nText" % front_matter, "a.md")
    assert document.author is None
    assert document.text.endswith("Text")
