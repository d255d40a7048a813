"""Children that read files: Tesseract is loaded for pages that need it, and for no other file."""

import os
from pathlib import Path

import pytest
from tests.office_samples import docx, lines, paragraph, pdf
from tests.support.page_images import LINES, draw_page, encode

from conspectus.errors import UnreadableFile
from conspectus.settings import Settings
from conspectus.sources.files.local_files import LocalFiles

WRONG = Settings(ocr_languages="klingon")


def scanned_pdf() -> bytes:
    return encode(draw_page(), "PDF", resolution=200)


def argument_counts() -> dict[str, int]:
    """The number of arguments of each child that reads files, by its process."""
    counts = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            arguments = path.with_name("cmdline").read_bytes().removesuffix(b"\0").split(b"\0")
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"conspectus.sources.files.parser_process" in arguments:
            module = arguments.index(b"conspectus.sources.files.parser_process")
            counts[path.parent.name] = len(arguments) - 1 - module
    return counts


def counts_since(before: dict[str, int]) -> list[int]:
    """The numbers of the children that were started since then: older ones end when they were idle."""
    return sorted(count for process, count in argument_counts().items() if process not in before)


@pytest.fixture(autouse=True)
def _extra() -> None:
    pytest.importorskip("tesserocr")


def test_files_without_scans_are_read_with_languages_that_have_no_data() -> None:
    files = LocalFiles(WRONG)
    [document] = files.parse_bytes(docx(paragraph("Hello.")), "a.docx").documents
    assert document.text == "Hello."
    parsed = files.parse_bytes(pdf(lines("The dog sleeps.")), "a.pdf")
    assert (parsed.documents[0].text, parsed.notice) == ("The dog sleeps.", None)


@pytest.mark.parametrize("name", ["a.pdf", "a.png"])
def test_scans_and_pictures_say_which_setting_is_wrong(name: str) -> None:
    data = scanned_pdf() if name == "a.pdf" else encode(draw_page(), "PNG")
    with pytest.raises(UnreadableFile, match=r"no data for klingon.*CONSPECTUS_OCR_LANGUAGES"):
        LocalFiles(WRONG).parse_bytes(data, name)
    assert "klingon" in LocalFiles(WRONG).problems()[0]
    assert LocalFiles().problems() == []


def test_tesseract_is_loaded_for_pages_that_need_it() -> None:
    files = LocalFiles(Settings(ocr_languages="eng"))
    before = argument_counts()
    files.parse_bytes(pdf(lines("The dog sleeps.")), "a.pdf")
    assert counts_since(before) == [0]
    [document] = files.parse_bytes(scanned_pdf(), "b.pdf").documents
    assert document.text.split() == " ".join(LINES).split()
    assert counts_since(before) == [0, 2]
