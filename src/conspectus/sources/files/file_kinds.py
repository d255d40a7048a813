"""Which reader a file has: that of its first bytes, or of its name, and text in spite of its name."""

from pathlib import PurePath

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.sources.files import ocr
from conspectus.sources.files.parsers import SHEET_SUFFIXES
from conspectus.sources.plain_text import plain_text

BINARY = (
    (b"%PDF-", "pdf"), (b"PK\x03\x04", "zip"), (b"PK\x05\x06", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "compound"),
    (b"\x89PNG\r\n", "picture"), (b"\xff\xd8\xff", "picture"),
    (b"II*\x00", "picture"), (b"MM\x00*", "picture"),
    (b"\x1f\x8b", "tar"), (b"BZh", "tar"), (b"\xfd7zXZ\x00", "tar"),
)  # fmt: skip
TAR_MARK = (b"ustar", 257)
"""Stands at that position."""
XML_MARK = b"<?xml"
PDF_MARKS = (b"%PDF-", b"endobj")
"""A damaged PDF has one of them somewhere."""
NAME_DECIDES = {("compound", "workbook"), ("zip", "office")}
NAMED = {
    **dict.fromkeys(
        (".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".xlsb", ".ods", ".odt", ".odp", ".epub"),
        "office",
    ),
    **dict.fromkeys((".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"), "picture"),
    ".pdf": "pdf", ".xls": "workbook", ".eml": "mail", ".mbox": "mailbox", ".tar": "tar",
}  # fmt: skip
NAMED_ALONE = frozenset({"mail", "mailbox"})
"""Texts, which have no first bytes of their own."""


def binary_kind(start: bytes, name: str) -> str | None:
    """Return the reader of a file that begins so, if it is binary. Raises UnsupportedContent."""
    marked = _marked_kind(start)
    named = NAMED.get(PurePath(name).suffix.lower()) if start else None
    kind = named if marked is None or (marked, named) in NAME_DECIDES else marked
    if kind == "picture" and not ocr.is_installed():
        raise UnsupportedContent(name, f"a picture, whose text the extra `ocr` reads: {ocr.INSTALL}")
    return kind


def is_text_named_as_binary(data: bytes, kind: str) -> bool:
    """Return whether a file has the name of a binary format and is text, such as a page of an export.

    `kind` is the reader that its name has.
    """
    if kind in NAMED_ALONE or data.startswith(XML_MARK) or _marked_kind(data) is not None:
        return False
    if kind == "pdf" and any(mark in data for mark in PDF_MARKS):
        return False
    try:
        plain_text(data, "", is_text=False)
    except UnreadableFile:
        return False
    return True


def format_named(name: str) -> str:
    """Return the format that the name of a file promises, as a sentence calls it."""
    suffix = PurePath(name).suffix.lower()
    return "workbook" if suffix in SHEET_SUFFIXES else f"{suffix[1:].upper()} file"


def _marked_kind(start: bytes) -> str | None:
    """Return the reader of a file by its first bytes; None if they are those of no binary format."""
    marked = next((kind for mark, kind in BINARY if start.startswith(mark)), None)
    return "tar" if marked is None and start.startswith(*TAR_MARK) else marked
