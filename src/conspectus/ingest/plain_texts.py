"""Documents that are given as plain texts."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.model.records import NewDocument

MAX_NAME_LENGTH: Final = 255
"""A longer text without a line break is not taken for the name of a file."""


def as_documents(documents: str | NewDocument | Iterable[str | NewDocument]) -> Iterator[NewDocument]:
    """Yield documents; a text becomes one.

    Raises InvalidInput for a text that is empty, and for one that is the address of a page, or the name of a
    file here, whose content was meant.
    """
    for document in [documents] if isinstance(documents, str | NewDocument) else documents:
        if isinstance(document, str):
            _require_text(document)
        yield NewDocument(text=document) if isinstance(document, str) else document


def _is_address(text: str) -> bool:
    return (
        text.startswith(("http://", "https://")) and len(text) <= MAX_NAME_LENGTH and len(text.split()) == 1
    )


def _require_text(text: str) -> None:
    if not text.strip():
        raise InvalidInput("documents", "has an empty text; leave it out")
    if _is_address(text):
        raise InvalidInput(
            "documents",
            f"{text!r} is the address of a page; read it with jobs.ingest_url({text!r}), or add the address"
            " itself as a NewDocument",
        )
    if len(text) > MAX_NAME_LENGTH or "\n" in text or "\0" in text or "." not in text:
        return
    if Path(text).is_file():
        raise InvalidInput(
            "documents",
            f"{text!r} is the name of a file here; add its content with documents.add_files([{text!r}]), or"
            " the name itself as a NewDocument",
        )
