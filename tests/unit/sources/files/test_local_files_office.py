"""Office documents, books and PDFs: their text as Markdown, with pages, headings, lists and tables."""

import pytest
from tests.office_samples import (
    DRAWING,
    OPC,
    WORD,
    docx,
    epub,
    heading,
    lines,
    paragraph,
    pdf,
    pptx,
    row,
    shape,
    xlsx,
    zipped,
)

from conspectus.errors import ConspectusError, TooLarge, UnreadableFile
from conspectus.model.records import NewDocument, TextPosition
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
BREAK = '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
RENDERED = "<w:r><w:lastRenderedPageBreak/></w:r>"
NUMBERS = f"""<w:numbering xmlns:w="{WORD}"><w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="2"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="7"><w:abstractNumId w:val="1"/></w:num><w:num w:numId="8"><w:abstractNumId w:val="2"/></w:num>
</w:numbering>"""


def read_file(data: bytes, name: str) -> NewDocument:
    [document] = FILES.parse_bytes(data, name).documents
    return document


def word(body: str, **fields) -> str:
    return read_file(docx(body, **fields), "a.docx").text


def list_paragraph(text: str, number: int, level: int = 0) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def grid(*rows: str) -> str:
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def test_a_word_document_keeps_its_headings_and_what_it_is() -> None:
    document = read_file(docx(heading("Guide") + paragraph("Some text.") + heading("Part", 2)), "x/a.docx")
    assert document.text == "# Guide\n\nSome text.\n\n## Part"
    assert (document.title, document.key, document.syntax) == ("Guide", "x/a.docx", "markdown")
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    assert document.metadata == {"path": "x/a.docx", "media_type": kind}
    assert document.places == ()


def test_text_that_looks_like_a_heading_stays_text() -> None:
    assert word(paragraph("# not") + paragraph("a<w:br/>") + paragraph("#tag &lt;b&gt;")) == (
        "\\# not\n\na\n\n#tag <b>"
    )


def test_lists_have_their_numbers_and_levels() -> None:
    body = (
        list_paragraph("one", 7)
        + list_paragraph("deep", 7, 1)
        + list_paragraph("deeper", 7, 1)
        + list_paragraph("two", 7)
    )
    body += (
        paragraph("between")
        + list_paragraph("three", 7)
        + list_paragraph("dot", 8)
        + list_paragraph("none", 0)
    )
    assert word(body, parts={"word/numbering.xml": NUMBERS}) == (
        "3. one\n    - 3.a) deep\n    - 3.b) deeper\n4. two\n\nbetween\n\n5. three\n- dot\n\nnone"
    )


def test_tables_are_readable_and_merged_cells_say_their_text_everywhere() -> None:
    wide, top, more = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    text = word(
        grid(cell("A|B") + cell("wide", wide), cell("x", top) + cell("1") + cell("2"), cell("", more))
    )
    assert text == "| A\\|B | wide | wide |\n| --- | --- | --- |\n| x | 1 | 2 |\n| x |  |  |"
    assert word(grid(cell("alone"))) == "alone"
    assert word(grid(cell("") + cell("")) + paragraph("after")) == "after"


def test_rows_that_repeat_on_each_page_are_the_names_of_the_columns() -> None:
    mark = "<w:trPr><w:tblHeader/></w:trPr>"
    title = mark + cell("Fees", '<w:gridSpan w:val="3"/>')
    names = mark + cell("Berth", "<w:vMerge w:val='restart'/>") + cell("Fee", '<w:gridSpan w:val="2"/>')
    years = mark + cell("", "<w:vMerge/>") + cell("2024") + cell("2025")
    assert word(grid(title, names, years, cell("H1") + cell("5") + cell("6"))) == (
        "Fees\n\n| Berth | Fee / 2024 | Fee / 2025 |\n| --- | --- | --- |\n| H1 | 5 | 6 |"
    )


def test_a_table_in_a_cell_stays_readable() -> None:
    inner = grid(cell("Volt") + cell("230"), cell("Watt") + cell("5"))
    outer = grid(cell("Part") + cell("Facts"), cell("Pump") + f"<w:tc>{inner}</w:tc>")
    assert word(outer) == "| Part | Facts |\n| --- | --- |\n| Pump | Volt, 230; Watt, 5 |"


def test_a_merged_cell_counts_its_page_break_once() -> None:
    content = f"<w:p>{RENDERED}<w:r><w:t>x</w:t></w:r></w:p>"
    top = f'<w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{content}</w:tc>'
    document = read_file(docx(grid(top + cell("1"), cell("", "<w:vMerge/>") + cell("2"))), "a.docx")
    assert document.text == "| x | 1 |\n| --- | --- |\n| x | 2 |"
    assert [position.page for position in document.places] == [1, 2]


def test_merged_cells_of_a_slide_say_their_text_everywhere() -> None:
    def slide_cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = (
        slide_cell("Year") + slide_cell("Sales", 'gridSpan="2"') + slide_cell("", 'hMerge="1"'),
        slide_cell("2025", 'rowSpan="2"') + slide_cell("Q1") + slide_cell("100"),
        slide_cell("", 'vMerge="1"') + slide_cell("Q2") + slide_cell("150"),
        slide_cell("") * 3,
    )
    table = f"<a:tbl>{''.join(f'<a:tr>{cells}</a:tr>' for cells in rows)}</a:tbl>"
    assert read_file(pptx([f"<p:graphicFrame>{table}</p:graphicFrame>"]), "a.pptx").text == (
        "| Year | Sales | Sales |\n| --- | --- | --- |\n| 2025 | Q1 | 100 |\n| 2025 | Q2 | 150 |"
    )


def test_numbered_lists_of_a_slide_have_their_numbers() -> None:
    numbered = '<a:buAutoNum type="arabicPeriod"{}/>'
    items = [(numbered, 0, "a"), (numbered, 1, "b"), (numbered, 1, "c"), (numbered, 0, "d"), ("", 0, "e"),
             (numbered.replace("{}", ' startAt="4"'), 0, "f"), (numbered, 0, "")]  # fmt: skip
    paragraphs = "".join(
        f'<a:p><a:pPr lvl="{level}">{mark.format("")}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'
        for mark, level, text in items
    )
    text = read_file(pptx([f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>"]), "a.pptx").text
    assert text == "1. a\n    1. b\n    2. c\n2. d\n\ne\n\n4. f"


def test_notes_links_boxes_and_changes_are_told_apart() -> None:
    note = f'<w:footnote w:id="2">{paragraph("A note.")}</w:footnote>'
    notes = f'<w:footnotes xmlns:w="{WORD}">{note}</w:footnotes>'
    body = (
        '<w:p><w:r><w:t>See </w:t></w:r><w:hyperlink r:id="r4"><w:r><w:t>there</w:t></w:r></w:hyperlink>'
        '<w:r><w:footnoteReference w:id="2"/></w:r><w:ins><w:r><w:t> new</w:t></w:r></w:ins>'
        "<w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
        f"<w:p><w:r><w:pict><w:txbxContent>{paragraph('In a box')}</w:txbxContent></w:pict></w:r></w:p>"
    )
    assert word(body, parts={"word/footnotes.xml": notes}) == (
        "See [there](https://example.org/a)[^footnote-2] new\n\nIn a box\n\n[^footnote-2]: A note."
    )


def test_hidden_text_is_not_read() -> None:
    run = "<w:r><w:rPr><w:vanish{}/></w:rPr><w:t>{}</w:t></w:r>"
    visible_run = run.format(' w:val="0"', "shown")
    assert word(f"<w:p>{run.format('', 'hidden')}{visible_run}</w:p>") == "shown"


def test_headers_and_footers_stand_once_at_the_end() -> None:
    links_of_document = (
        f'<Relationships xmlns="{OPC}"><Relationship Id="h" Type="x/header" Target="h.xml"/>'
        '<Relationship Id="f" Type="x/footer" Target="f.xml"/><Relationship Id="n" Type="x/footer" '
        'Target="n.xml"/></Relationships>'
    )
    references = "".join(
        f'<w:{kind}Reference r:id="{name}"/>'
        for kind, name in (("header", "h"), ("header", "h"), ("footer", "f"), ("footer", "n"))
    )
    parts = {
        "word/_rels/document.xml.rels": links_of_document,
        "word/h.xml": f'<w:hdr xmlns:w="{WORD}">{grid(cell("Heron Line") + cell("Tariff 2026"))}</w:hdr>',
        "word/f.xml": f'<w:ftr xmlns:w="{WORD}">{paragraph("Confidential")}</w:ftr>',
        "word/n.xml": f'<w:ftr xmlns:w="{WORD}">{paragraph("Page 1 of 3")}</w:ftr>',
    }
    text = word(paragraph("body") + f"<w:sectPr>{references}</w:sectPr>", parts=parts)
    assert text == "body\n\nHeader: Heron Line, Tariff 2026\n\nFooter: Confidential"


def test_formulas_become_latex() -> None:
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    run = "<m:r><m:t>{}</m:t></m:r>"
    half = f"<m:f><m:num>{run.format('1')}</m:num><m:den>{run.format('2')}</m:den></m:f>"
    power = f"<m:sSup><m:e>{run.format('x')}</m:e><m:sup>{run.format('2')}</m:sup></m:sSup>"
    body = f'<w:p><m:oMath xmlns:m="{math}">{half}{run.format("=_")}{power}</m:oMath></w:p>'
    assert word(body) == "$\\frac{1}{2}=\\_x^{2}$"


def test_pages_of_a_word_document_are_those_laid_out_or_begun_by_hand() -> None:
    by_hand = read_file(docx(paragraph("one") + BREAK + paragraph("two")), "a.docx")
    assert by_hand.text == "one\n\ntwo"
    assert by_hand.places == (TextPosition(0, 1), TextPosition(by_hand.text.index("two"), 2))
    laid_out = read_file(
        docx(f"<w:p><w:r><w:t>one </w:t></w:r>{RENDERED}<w:r><w:t>two</w:t></w:r></w:p>{BREAK}"), "a"
    )
    assert laid_out.text == "one two"
    assert laid_out.places == (TextPosition(0, 1), TextPosition(4, 2))


def test_every_slide_is_a_page_under_its_title() -> None:
    chart = (
        f'<c xmlns:a="{DRAWING}"><title><a:p><a:r><a:t>Sales</a:t></a:r></a:p></title><ser><tx><v>Net</v>'
        "</tx><cat><v>2024</v><v>2025</v></cat><val><v>1</v><v>2</v></val></ser></c>"
    )
    table = "<a:tbl><a:tr><a:tc><a:p><a:r><a:t>T</a:t></a:r></a:p></a:tc></a:tr></a:tbl>"
    frame = f'<p:graphicFrame>{table}</p:graphicFrame><p:graphicFrame><a:chart r:id="r2"/></p:graphicFrame>'
    picture = '<p:pic><p:nvPicPr><p:cNvPr descr="A dog"/></p:nvPicPr></p:pic>'
    first = shape("point", "other", placeholder="body") + shape("Title", placeholder="title")
    rels = {"ppt/slides/_rels/slide8.xml.rels": RELS, "ppt/c.xml": chart, "ppt/n.xml": NOTES}
    document = read_file(
        pptx([first + shape("7", placeholder="sldNum"), f"<p:grpSp>{frame}</p:grpSp>{picture}"], parts=rels),
        "a",
    )
    assert document.text == (
        "# Title\n\n- point\n- other\n\n| T |\n| --- |\n\nSales\n\n|  | Net |\n| --- | --- |\n| 2024 | 1 |\n"
        "| 2025 | 2 |\n\n[Image: A dog]\n\nNotes: Say it."
    )
    assert document.places == (TextPosition(0, 1), TextPosition(document.text.index("| T |"), 2))
    assert document.title == "Title"


def test_sheets_are_tables_under_their_names() -> None:
    dated = '<row r="3"><c r="A3" s="1"><v>45292</v></c><c r="B3" t="b"><v>1</v></c></row>'
    rows = row(1, "Name", "Number") + row(2, "a|b", "1.50") + dated + row(9, "", "7")
    document = read_file(xlsx({"One": rows, "Empty": "", "Two": row(1, "x")}), "a.xlsx")
    assert document.text == (
        "## One\n\n| Name | Number |\n| --- | --- |\n| a\\|b | 1.5 |\n| 2024-01-01 | TRUE |\n|  | 7 |\n\n"
        "## Two\n\nx"
    )


def test_a_book_is_read_in_its_order() -> None:
    table = "<table><tr><td><p>a</p></td><td>b</td></tr><tr><td>c</td></tr></table>"
    items = "<ul><li>x</li><li></li><li><p>y</p><ul><li>z</li></ul></li></ul>"
    chapters = {"b": f"<h1>One</h1>{items}", "a": f"<h2>Zwei</h2><p>ü &amp; é</p>{table}"}
    document = read_file(epub(chapters), "a.epub")
    assert (
        document.text
        == "# One\n\n- x\n\n- y\n\n- z\n\n## Zwei\n\nü & é\n\n| a | b |\n| --- | --- |\n| c |  |"
    )
    assert (document.title, document.author) == ("The Book", "A. Writer, B. Writer")
    assert document.metadata["language"] == "de"


def test_a_protected_book_is_refused() -> None:
    locked = '<e><CipherReference URI="OPS/a%20x.xhtml"/></e>'
    with pytest.raises(UnreadableFile, match="encrypted"):
        read_file(epub({"a": "text"}, parts={"META-INF/encryption.xml": locked}), "a.epub")


def test_pages_that_are_drawn_without_words_are_counted_and_blank_ones_are_not() -> None:
    drawn = b"0 0 100 100 re f"
    with pytest.raises(UnreadableFile, match=r"has no text; (OCR found no words|they may be scanned)"):
        read_file(pdf(drawn), "a.pdf")
    notice = FILES.parse_bytes(pdf(lines("words"), drawn), "a.pdf").notice or ""
    assert notice.startswith("1 of 2 pages have no ")
    assert FILES.parse_bytes(pdf(lines("words"), b""), "a.pdf").notice is None
    broken = pdf(lines("words"), b"x").replace(b"/Kids [5 0 R 7 0 R]", b"/Kids [5 0 R 3 0 R]")
    assert FILES.parse_bytes(broken, "a.pdf").notice == "1 of 2 pages are damaged"


def test_a_document_without_text_is_a_notice() -> None:
    parsed = FILES.parse_bytes(docx(paragraph(" ")), "a.docx")
    assert (parsed.documents, parsed.notice) == ((), "the document has no text")
    assert FILES.parse_bytes(b"", "a.docx").notice == "the file is empty"


@pytest.mark.parametrize(
    ("data", "name", "error", "reason"),
    [
        (b"PK\x03\x04 and no more", "a.docx", UnreadableFile, "damaged ZIP"),
        (b"%PDF-1.7 and no more", "a.pdf", UnreadableFile, "damaged PDF"),
        (zipped({"a.txt": "text"}), "a.docx", UnreadableFile, "no office document"),
        (zipped({"word/x.xml": "<a/>"}), "a.docx", UnreadableFile, "main part is missing"),
        (zipped({"META-INF/container.xml": "<a/>"}), "a.epub", UnreadableFile, "package is missing"),
        (docx("x" * 300_000), "a.docx", TooLarge, "the limit is 200000"),
        (xlsx({"One": "x" * 300_000}), "a.xlsx", TooLarge, "the limit is 200000"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why(
    data: bytes, name: str, error: type[ConspectusError], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        LocalFiles(Settings(max_unpacked_bytes=200_000)).parse_bytes(data, name)


RELS = (
    '<Relationships><Relationship Id="r1" Type="x/notesSlide" Target="../n.xml"/>'
    '<Relationship Id="r2" Type="x/chart" Target="/ppt/c.xml"/></Relationships>'
)
NOTES = (
    f'<p:notes xmlns:p="x" xmlns:a="{DRAWING}"><p:cSld><p:spTree>{shape("Say it.", placeholder="body")}'
    f"{shape('3', placeholder='sldNum')}</p:spTree></p:cSld></p:notes>"
)
