"""Documents that are given as plain texts."""

from pathlib import Path

import pytest

from conspectus.errors import InvalidInput
from conspectus.ingest.plain_texts import as_documents
from conspectus.model.records import NewDocument


def test_a_text_is_a_document(tmp_path: Path) -> None:
    assert [document.text for document in as_documents(["One.", NewDocument("Two.")])] == ["One.", "Two."]
    assert [document.text for document in as_documents("README.txt is missing")] == ["README.txt is missing"]


def test_the_name_of_a_file_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The backup runs at two.", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"is the name of a file here; add its content with documents"):
        list(as_documents(str(page)))
    assert [document.text for document in as_documents(NewDocument(str(page)))] == [str(page)]


def test_the_address_of_a_page_is_refused() -> None:
    address = "https://example.org/handbook"
    with pytest.raises(InvalidInput, match=r"address of a page; read it with jobs\.ingest_url\('https:"):
        list(as_documents(["One.", f"{address}\n"]))
    texts = [NewDocument(address), f"See {address}", f"{address} is the handbook"]
    assert [document.text for document in as_documents(texts)] == [address, *texts[1:]]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="empty text"):
        list(as_documents(["One.", text]))
