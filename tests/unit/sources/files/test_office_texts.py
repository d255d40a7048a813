"""What DOCX, PPTX and XLSX show: it is read, or a notice says how much is left out."""

import pytest
from tests.office_samples import DRAWING, WORD, docx, links, paragraph, pptx, row, shape, xlsx

from conspectus.ports import ParsedFile
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.office_texts import header_text

FILES = LocalFiles()
COMMENTS = (
    '<comments><comment ref="B2"><text><r><t>ask Ann</t></r></text></comment>'
    '<comment ref="C3"><text><t>[Threaded comment] update your program</t></text></comment></comments>'
)
DRAWINGS = (
    f'<wsDr xmlns:a="{DRAWING}"><sp><txBody><a:p><a:r><a:t>Valid from May</a:t></a:r></a:p></txBody></sp>'
    '<pic><cNvPr descr="map of the berths"/></pic></wsDr>'
)


def parse_word(body: str, **fields: object) -> ParsedFile:
    return FILES.parse_bytes(docx(body, **fields), "a.docx")


def picture(description: str) -> str:
    return f'<w:p><w:r><w:drawing><inline><docPr descr="{description}"/></inline></w:drawing></w:r></w:p>'


def test_alternative_texts_of_a_word_document_are_read() -> None:
    parsed = parse_word(picture("a crane") + paragraph("Figure 1: the crane"))
    assert parsed.documents[0].text == "[Image: a crane]\n\nFigure 1: the crane"
    assert parsed.notice is None


def test_a_web_page_that_stands_in_a_word_document_is_read() -> None:
    parts = {
        "word/_rels/document.xml.rels": links(("h", "aFChunk", "page.html"), ("t", "aFChunk", "a.txt")),
        "word/page.html": "<h1>Fees</h1><p>Due in May.</p>",
        "word/a.txt": "# no heading",
    }
    parsed = parse_word('<w:altChunk r:id="h"/><w:altChunk r:id="t"/><w:altChunk r:id="none"/>', parts=parts)
    assert parsed.documents[0].text == "# Fees\n\nDue in May.\n\n\\# no heading"


def test_hidden_text_of_a_word_document_is_counted() -> None:
    hidden = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>one two</w:t></w:r></w:p>"
    assert (
        parse_word(paragraph("three four") + hidden).notice == "50 % of its words are left out: hidden text"
    )


def test_deleted_and_repeated_text_is_not_counted() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    body = (
        "<w:p><w:r><AlternateContent><Choice>" + box + "</Choice><Fallback>" + box + "</Fallback>"
        "</AlternateContent></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom></w:p>"
    )
    parsed = parse_word(body)
    assert (parsed.documents[0].text, parsed.notice) == ("boxed", None)


def test_words_are_whole_though_their_letters_stand_in_several_runs() -> None:
    runs = "".join(f"<w:r><w:t>{letters}</w:t></w:r>" for letters in ("Har", "b", "or"))
    parsed = parse_word(f"<w:p>{runs}</w:p>")
    assert (parsed.documents[0].text, parsed.notice) == ("Harbor", None)


def test_a_header_of_many_sections_is_no_loss() -> None:
    names = ("h1", "h2", "h3")
    references = "".join(f'<w:headerReference r:id="{name}"/>' for name in names)
    header = f'<w:hdr xmlns:w="{WORD}">{paragraph("Handbook of the harbor")}</w:hdr>'
    parts = {
        "word/_rels/document.xml.rels": links(*((name, "header", f"header{name}.xml") for name in names)),
        **{f"word/header{name}.xml": header for name in names},
    }
    parsed = parse_word(paragraph("x") + f"<w:sectPr>{references}</w:sectPr>", parts=parts)
    assert (parsed.documents[0].text, parsed.notice) == ("x\n\nHeader: Handbook of the harbor", None)


def test_comments_and_alternative_texts_of_slides_are_read() -> None:
    parts = {
        "ppt/slides/_rels/slide9.xml.rels": links(
            ("c", "comments", "../comments/comment1.xml"),
            ("m", "comments", "../comments/modernComment_1.xml"),
        ),
        "ppt/comments/comment1.xml": "<cmLst><cm><text>too long</text></cm></cmLst>",
        "ppt/comments/modernComment_1.xml": f'<cmLst xmlns:a="{DRAWING}"><cm><txBody><a:p><a:r><a:t>agreed'
        "</a:t></a:r></a:p></txBody></cm></cmLst>",
    }
    frame = '<p:graphicFrame><p:cNvPr descr="table of fees"/></p:graphicFrame>'
    parsed = FILES.parse_bytes(pptx([shape("Fees") + frame], parts=parts), "a.pptx")
    assert parsed.documents[0].text == (
        "Fees\n\n[Image: table of fees]\n\nComment: too long\n\nComment: agreed"
    )
    assert parsed.notice is None


def test_text_that_stands_on_every_slide_is_counted() -> None:
    slide = shape("one two three") + shape("Harbor Inc", placeholder="ftr")
    parsed = FILES.parse_bytes(pptx([slide]), "a.pptx")
    assert parsed.documents[0].text == "one two three"
    assert parsed.notice == "40 % of its words are left out: dates, footers and slide numbers"


def test_what_a_sheet_has_beside_its_cells_is_read() -> None:
    code = '&amp;L&amp;"Arial,Bold"&amp;12Fees &amp;&amp; dues&amp;P'
    margins = f"<headerFooter><oddHeader>{code}</oddHeader></headerFooter>"
    parts = {
        "xl/worksheets/_rels/s1.xml.rels": links(
            ("d", "drawing", "../drawings/d.xml"), ("c", "comments", "../comments1.xml")
        ),
        "xl/drawings/d.xml": DRAWINGS,
        "xl/comments1.xml": COMMENTS,
    }
    workbook = xlsx({"S": row(1, "x") + "</sheetData>" + margins + "<sheetData>"}, parts=parts)
    parsed = FILES.parse_bytes(workbook, "a.xlsx")
    assert parsed.documents[0].text == (
        "## S\n\nx\n\nValid from May\n\n[Image: map of the berths]\n\nComment on B2: ask Ann\n\n"
        "Header: Fees & dues"
    )
    assert parsed.notice is None


def test_a_drawing_that_no_sheet_refers_to_is_counted() -> None:
    parsed = FILES.parse_bytes(xlsx({"S": row(1, "x")}, parts={"xl/drawings/d.xml": DRAWINGS}), "a.xlsx")
    assert parsed.notice == "87 % of its words are left out: alternative texts, text boxes"


@pytest.mark.parametrize(
    ("code", "text"),
    [("&LFees&RPage &P of &N", "Fees Page of"), ("&&", "&"), ('&"-,Bold"&KFF0000Red', "Red"), ("", "")],
)
def test_codes_of_margins_are_no_text(code: str, text: str) -> None:
    assert header_text(code) == text
