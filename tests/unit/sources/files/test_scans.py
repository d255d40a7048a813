"""Pages of a PDF are recognized only if their text layer is missing or unreadable."""

import io

import pypdfium2
import pytest
from tests.office_samples import lines, pdf
from tests.support.page_images import LINES, draw_page, encode

from conspectus.sources.files.extract import Refused
from conspectus.sources.files.ocr import INSTALL, Recognizer, load_recognizer
from conspectus.sources.files.pdf import read_pdf

WORDS = " ".join(LINES).split()


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    pytest.importorskip("tesserocr")
    return load_recognizer("eng")


PRIVATE_CHARACTERS = b"""/CIDInit /ProcSet findresource begin begincmap
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfrange <21> <7E> <E021> endbfrange endcmap"""
"""A table of characters that maps each letter to one that no font knows."""


def scanned_pdf(pages: int = 1) -> bytes:
    page = draw_page()
    return encode(page, "PDF", resolution=200, save_all=True, append_images=[page] * (pages - 1))


def _join(*files: bytes) -> bytes:
    """Return a PDF with the pages of all."""
    joined = pypdfium2.PdfDocument.new()
    for file in files:
        joined.import_pages(pypdfium2.PdfDocument(file))
    buffer = io.BytesIO()
    joined.save(buffer)
    return buffer.getvalue()


def test_a_scanned_page_has_text_and_boxes(recognizer: Recognizer) -> None:
    recognizer.begin_file(1_000)
    extract = read_pdf(scanned_pdf(2), recognizer)
    assert extract.text.split() == 2 * WORDS
    assert (extract.read_by, extract.notice) == ("ocr", None)
    assert {place.page for place in extract.places} == {1, 2}
    assert all(place.box is not None for place in extract.places)
    [second_page, *_] = [place.start for place in extract.places if place.page == 2]
    assert extract.text[second_page:].split() == WORDS
    assert extract.metadata["ocr"]["words"] == 2 * len(WORDS)


def test_the_text_layer_is_taken_where_there_is_one(recognizer: Recognizer) -> None:
    recognizer.begin_file(0)
    extract = read_pdf(pdf(lines("The dog sleeps.")), recognizer)
    assert (extract.text, extract.read_by, extract.metadata) == ("The dog sleeps.", "text", {})


def test_pages_that_the_time_did_not_suffice_for_are_counted(recognizer: Recognizer) -> None:
    mixed = _join(pdf(lines("The dog sleeps.")), scanned_pdf(2))
    recognizer.begin_file(0)
    late = read_pdf(mixed, recognizer)
    assert late.text.strip() == "The dog sleeps."
    assert late.notice == "2 of 3 pages were not read in time; raise CONSPECTUS_PARSE_TIMEOUT_SECONDS"
    recognizer.begin_file(1_000)
    whole = read_pdf(mixed, recognizer)
    assert whole.text.split() == ["The", "dog", "sleeps.", *WORDS, *WORDS]
    assert {(place.page, place.box is None) for place in whole.places} == {(1, True), (2, False), (3, False)}


def test_a_layer_of_unknown_characters_is_replaced(recognizer: Recognizer) -> None:
    recognizer.begin_file(1_000)
    layer = pdf(lines(*LINES)).replace(b"/BaseFont /Helvetica", b"/BaseFont /Helvetica /ToUnicode 99 0 R")
    unmapped = layer.replace(
        b"trailer",
        b"99 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\ntrailer"
        % (len(PRIVATE_CHARACTERS), PRIVATE_CHARACTERS),
    )
    assert "lighthouse" not in read_pdf(unmapped).text
    extract = read_pdf(unmapped, recognizer)
    assert (extract.text.split(), extract.read_by) == (WORDS, "ocr")


def test_without_the_extra_the_line_that_installs_it_is_told() -> None:
    pytest.importorskip("PIL")
    with pytest.raises(Refused) as error:
        read_pdf(scanned_pdf())
    assert INSTALL in str(error.value)
    extract = read_pdf(_join(pdf(lines("The dog sleeps.")), scanned_pdf()))
    assert extract.notice is not None
    assert extract.notice.startswith("1 of 2 pages have no text") and INSTALL in extract.notice
