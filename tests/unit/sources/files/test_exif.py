"""What the EXIF of photos inside documents says stands beside them, as that of a photo alone does."""

from base64 import b64encode

import pytest
from PIL import Image
from tests.office_samples import DRAWING, OFFICE, docx, epub, links, paragraph, pptx, row, xlsx, zipped
from tests.support.page_images import encode

from conspectus.sources.files.exif import photo_line
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
LINE = "[Photo: The heron at pier nine, taken 2026-05-17 06:30:00+02:00, by Ann Keeper, Canon EOS R5]"
BLIP = f'<a:blip xmlns:a="{DRAWING}" r:embed="photo"/>'
ODF = "urn:oasis:names:tc:opendocument:xmlns:"


def photo(**options: object) -> bytes:
    tags = Image.Exif()
    tags[0x010E], tags[0x013B], tags[0x0110] = "The heron at pier nine", "Ann Keeper", "Canon EOS R5"
    tags.get_ifd(0x8769)[0x9003], tags.get_ifd(0x8769)[0x9011] = "2026:05:17 06:30:00", "+02:00"
    tags.get_ifd(0x8825)[1], tags.get_ifd(0x8825)[2] = "N", (54.0, 29.0, 12.0)
    return encode(Image.new("RGB", (60, 40), "green"), "JPEG", exif=tags, **options)


def text_of(data: bytes, name: str) -> str:
    [document] = FILES.parse_bytes(data, name).documents
    return document.text


def test_a_photo_in_a_docx_stands_between_its_alternative_text_and_its_caption() -> None:
    drawing = (
        f'<w:p><w:r><w:drawing><wp:docPr xmlns:wp="x" descr="A grey bird"/>{BLIP}</w:drawing></w:r></w:p>'
    )
    rels = links(("photo", "image", "media/photo.jpg"))
    parts = {"word/_rels/document.xml.rels": rels, "word/media/photo.jpg": photo()}
    body = paragraph("Before.") + drawing + paragraph("Figure 1: a bird.")
    text = text_of(docx(body, parts=parts), "a.docx")
    assert text == f"Before.\n\n[Image: A grey bird]\n\n{LINE}\n\nFigure 1: a bird."


def test_a_photo_on_a_slide_has_its_line() -> None:
    picture = (
        f'<p:pic><p:nvPicPr><p:cNvPr descr="A grey bird"/></p:nvPicPr><p:blipFill>{BLIP}</p:blipFill></p:pic>'
    )
    rels = links(("photo", "image", "../media/photo.jpg"))
    parts = {"ppt/slides/_rels/slide9.xml.rels": rels, "ppt/media/photo.jpg": photo()}
    assert text_of(pptx([picture], parts=parts), "a.pptx") == f"[Image: A grey bird]\n\n{LINE}"


def test_a_photo_on_a_sheet_has_its_line() -> None:
    parts = {
        "xl/worksheets/_rels/s1.xml.rels": links(("d", "drawing", "../drawings/d.xml")),
        "xl/drawings/d.xml": f'<d xmlns:r="{OFFICE}">{BLIP}</d>',
        "xl/drawings/_rels/d.xml.rels": links(("photo", "image", "../media/photo.jpg")),
        "xl/media/photo.jpg": photo(),
    }
    assert text_of(
        xlsx({"S": row(1, "Name", "City") + row(2, "Ann", "Rome")}, parts=parts), "a.xlsx"
    ).endswith(LINE)


def test_a_photo_in_an_open_document_has_its_line() -> None:
    content = (
        f'<o:document-content xmlns:o="{ODF}office:1.0" xmlns:t="{ODF}text:1.0" xmlns:d="{ODF}drawing:1.0" '
        'xmlns:x="http://www.w3.org/1999/xlink"><o:body><o:text><t:p>Before.<d:frame>'
        '<d:image x:href="Pictures/photo.jpg"/></d:frame></t:p></o:text></o:body></o:document-content>'
    )
    media_type = "application/vnd.oasis.opendocument.text"
    book = zipped({"mimetype": media_type, "content.xml": content, "Pictures/photo.jpg": photo()})
    assert text_of(book, "a.odt") == f"Before.\n\n{LINE}"


def test_a_photo_in_a_book_has_its_line() -> None:
    chapter = '<p>Before.</p><img src="images/the%20photo.jpg" alt="A grey bird"/><p>After.</p>'
    book = epub({"one": chapter}, parts={"OPS/images/the photo.jpg": photo()})
    assert text_of(book, "a.epub") == f"Before.\n[Image: A grey bird] {LINE}\n\nAfter."


def test_a_photo_in_a_web_page_that_was_saved_as_one_file_has_its_line() -> None:
    address = f"data:image/jpeg;base64,{b64encode(photo()).decode()}"
    page = f'<title>Birds</title><nav>Menu</nav><p>Before.<p><img src="{address}" alt="A grey bird"><p>After.'
    [document] = FILES.parse_bytes(page.encode(), "a.html").documents
    assert (document.title, document.text) == ("Birds", f"Before.\n\n[Image: A grey bird] {LINE}\n\nAfter.")


def test_the_position_is_never_read() -> None:
    assert photo_line(photo()) == LINE
    assert "54" not in LINE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xd8\xff\xe1\x00\x10Exif\0\0MM\x00*",
        photo()[:200],
        photo()[:60] + b"\xff" * 500,
        encode(Image.new("RGB", (6, 4)), "JPEG"),
        encode(Image.new("RGB", (6, 4)), "PNG"),
    ],
)
def test_pictures_without_exif_and_damaged_ones_have_no_line(data: bytes) -> None:
    assert photo_line(data) in {"", LINE}
