"""Files whose name promises another format than they have: read by their content, or refused."""

import pytest
from tests.office_samples import docx, lines, paragraph, pdf, zipped

from conspectus.errors import UnreadableFile
from conspectus.sources.files.local_files import LocalFiles

FILES = LocalFiles()
PAGE = b"<!DOCTYPE html><title>Not found</title><p>The file is gone."


@pytest.mark.parametrize("suffix", ["docx", "pptx", "odt", "epub", "pdf", "tar"])
def test_text_and_web_pages_are_read_whatever_their_name(suffix: str) -> None:
    parsed = FILES.parse_bytes(b"The heron berths at pier nine.", f"a.{suffix}")
    assert parsed.documents[0].text == "The heron berths at pier nine."
    assert parsed.notice == f"is no {suffix.upper()} file, in spite of its name; it was read as text/plain"
    page = FILES.parse_bytes(PAGE, f"a.{suffix}")
    assert (page.documents[0].title, page.documents[0].text) == ("Not found", "The file is gone.")
    assert str(page.notice).endswith("it was read as text/html")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.zip", "a.pdf", "a"])
def test_an_office_document_is_read_whatever_its_name(name: str) -> None:
    parsed = FILES.parse_bytes(docx(paragraph("The heron berths at pier nine.")), name)
    assert parsed.documents[0].text == "The heron berths at pier nine."


@pytest.mark.parametrize("name", ["a.txt", "a.docx", "a.zip", "a"])
def test_a_pdf_is_read_whatever_its_name(name: str) -> None:
    parsed = FILES.parse_bytes(pdf(lines("The heron berths at pier nine.")), name)
    assert parsed.documents[0].text == "The heron berths at pier nine."


def test_an_archive_is_a_folder_unless_its_name_is_that_of_an_office_document() -> None:
    archive = zipped({"a.txt": "The heron berths at pier nine."})
    assert [member.name for member in FILES.parse_bytes(archive, "a.txt").members] == ["a.txt/a.txt"]
    with pytest.raises(UnreadableFile, match=r"no office document: name it \.zip"):
        FILES.parse_bytes(archive, "a.docx")


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.odt", "a.epub"])
def test_bytes_of_no_format_are_said_to_be_none(name: str) -> None:
    with pytest.raises(UnreadableFile, match="is damaged, or of another format than its name says"):
        FILES.parse_bytes(bytes(range(256)) * 20, name)


def test_a_damaged_pdf_is_no_text() -> None:
    with pytest.raises(UnreadableFile, match="a damaged PDF"):
        FILES.parse_bytes(b"1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer", "a.pdf")
