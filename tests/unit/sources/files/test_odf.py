"""OpenDocument: what a person sees in a text, a presentation and a workbook."""

import pytest
from tests.office_samples import zipped

from conspectus.sources.files.extract import Refused, Unsupported
from conspectus.sources.files.odf import read_open_document
from conspectus.sources.files.zip_xml import Archive

NAMES = ("office", "text", "table", "draw", "style", "presentation", "svg")
SPACES = " ".join(f'xmlns:{name}="urn:{name}"' for name in NAMES)
LINK = 'xmlns:xlink="urn:xlink" xlink:href="https://example.org/a"'


def read(kind, body, styles="", **parts):
    content = (
        f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return read_open_document(Archive(zipped({"content.xml": content, **parts}), 1_000_000))


def cell(text, attributes=""):
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def row(*cells, attributes=""):
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def sheet(*rows, attributes='table:name="Fees"'):
    return f"<table:table {attributes}>{''.join(rows)}</table:table>"


def draw(inside, attributes=""):
    return f"<draw:frame {attributes}>{inside}</draw:frame>"


COVERED = "<table:covered-table-cell/>"


def test_a_text_has_headings_lists_links_notes_and_pages():
    body = (
        '<text:h text:outline-level="2">Fees</text:h><text:p>One<text:s text:c="2"/>two<text:tab/>three'
        f"<text:line-break/>four <text:a {LINK}>link</text:a></text:p><text:soft-page-break/>"
        '<text:list text:style-name="L1"><text:list-item><text:p>first</text:p><text:list><text:list-item>'
        "<text:p>inner</text:p></text:list-item></text:list></text:list-item><text:list-item><text:p>second"
        '</text:p></text:list-item></text:list><text:p>Noted<text:note text:note-class="footnote">'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>the note</text:p></text:note-body>"
        "</text:note></text:p>"
    )
    style = '<text:list-style style:name="L1"><text:list-level-style-number/></text:list-style>'
    extract = read("text", body, style)
    assert extract.text == (
        "## Fees\n\nOne  two\tthree\nfour [link](https://example.org/a)\n\n"
        "1. first\n    1. inner\n2. second\n\n"
        "Noted[^footnote-1]\n\n[^footnote-1]: the note"
    )
    assert extract.title == "Fees"
    assert [place.page for place in extract.places] == [1, 2]


def test_hidden_and_deleted_text_is_not_read():
    style = '<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>'
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:p>seen<text:span "
        'text:style-name="T1">hidden</text:span></text:p><text:p text:style-name="T1">hidden</text:p>'
    )
    assert read("text", body, style).text == "seen"


def test_merged_cells_are_filled_and_header_rows_are_one():
    head = row(
        cell("Berth", 'table:number-rows-spanned="2"'),
        cell("Fee", 'table:number-columns-spanned="2"'),
        COVERED,
    )
    years = row(COVERED, cell("2024"), cell("2025"))
    body = sheet(
        f"<table:table-header-rows>{head}{years}</table:table-header-rows>",
        row(cell("H1"), cell("5"), cell("6")),
    )
    assert (
        read("text", body).text == "| Berth | Fee / 2024 | Fee / 2025 |\n| --- | --- | --- |\n| H1 | 5 | 6 |"
    )


def test_a_sheet_has_the_texts_as_shown_and_hidden_sheets_are_named():
    styles = '<style:style style:name="H"><style:table-properties table:display="false"/></style:style>'
    rows = (
        row(cell("Harbor fees", 'table:number-columns-spanned="2"'), COVERED),
        row(cell("Name"), cell("Share"), '<table:table-cell table:number-columns-repeated="16000"/>'),
        row("<table:table-cell/>", attributes='table:number-rows-repeated="1000000"'),
        row(cell("Ann"), cell("12.5%", 'office:value="0.125"')),
        row(cell("Bo"), '<table:table-cell office:value="7"/>'),
    )
    hidden = sheet(row(cell("x")), attributes='table:name="Secret" table:style-name="H"')
    extract = read("spreadsheet", sheet(*rows) + hidden, styles)
    assert (
        extract.text
        == "## Fees\n\nHarbor fees\n\n| Name | Share |\n| --- | --- |\n| Ann | 12.5% |\n| Bo | 7 |"
    )
    assert extract.notice == "hidden sheets were left out: Secret"


def test_slides_have_titles_tables_and_notes():
    title = draw("<draw:text-box><text:p>First</text:p></draw:text-box>", 'presentation:class="title"')
    picture = draw("<draw:image/><svg:desc>a boat</svg:desc>")
    table = draw(sheet(row(cell("Name"), cell("Fee")), row(cell("Ann"), cell("2"))))
    notes = draw("<draw:text-box><text:p>Say it.</text:p></draw:text-box>")
    second = draw("<draw:text-box><text:p>Second</text:p></draw:text-box>")
    body = (
        f"<draw:page>{title}{picture}{table}<presentation:notes>{notes}</presentation:notes></draw:page>"
        f"<draw:page>{second}</draw:page>"
    )
    extract = read("presentation", body)
    assert extract.text == (
        "# First\n\n[Image: a boat]\n\n| Name | Fee |\n| --- | --- |\n| Ann | 2 |\n\nNotes: Say it.\n\nSecond"
    )
    assert [place.page for place in extract.places] == [1, 2]
    assert extract.title == "First"


def test_author_and_title_come_from_the_properties():
    meta = (
        '<o:document-meta xmlns:o="urn:office" xmlns:dc="urn:dc" xmlns:m="urn:meta"><o:meta>'
        "<dc:title>Fees</dc:title><m:initial-creator>Ann</m:initial-creator></o:meta></o:document-meta>"
    )
    extract = read("text", "<text:p>x</text:p>", **{"meta.xml": meta})
    assert (extract.title, extract.author) == ("Fees", "Ann")


def test_repeated_cells_and_rows_fill_no_memory():
    repeated = 'table:number-columns-repeated="999999999"'
    rows = row(cell("x" * 900, repeated), attributes='table:number-rows-repeated="999999999"')
    assert len(read("spreadsheet", sheet(rows * 20)).text) < 40_000_000


def test_other_documents_are_refused():
    with pytest.raises(Unsupported, match="OpenDocument"):
        read("chart", "")
    with pytest.raises(Refused):
        read_open_document(Archive(zipped({"content.xml": "<a>"}), 1_000))
