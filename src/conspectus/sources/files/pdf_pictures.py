"""What the pictures of a PDF are described by: alternative texts of a tagged PDF, and the EXIF of photos."""

import ctypes
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pypdfium2
from pypdfium2 import raw

from conspectus.sources.files.exif import EXIF_MARK, photo_line
from conspectus.sources.files.extract import one_line

FIGURES = frozenset({"Figure", "InlineShape"})
MAX_ELEMENTS = 20_000
"""Elements of the structure of a page, which a hostile file may repeat without end."""
MAX_DEPTH = 60
MAX_PICTURES = 1_000


def picture_lines(document: pypdfium2.PdfDocument, data: bytes) -> Iterator[str]:
    """Yield the lines about the pictures of each page, empty for pages without any."""
    is_tagged = bool(raw.FPDFCatalog_IsTagged(document))
    # Photos stand in a PDF as they are, so that their mark does, too.
    has_photos = EXIF_MARK in data
    for index in range(len(document)):
        lines: dict[str, None] = {}
        if is_tagged or has_photos:
            try:
                page = document[index]
            except pypdfium2.PdfiumError:
                yield ""
                continue
            lines |= dict.fromkeys(_alternative_texts(page)) if is_tagged else {}
            lines |= dict.fromkeys(_photo_lines(page)) if has_photos else {}
            page.close()
        yield "\n\n".join(filter(None, lines))


def _alternative_texts(page: pypdfium2.PdfPage) -> Iterator[str]:
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return
    for element in islice(_walk_structure(tree), MAX_ELEMENTS):
        if _text_of(raw.FPDF_StructElement_GetType, element) in FIGURES:
            text = one_line(_text_of(raw.FPDF_StructElement_GetAltText, element))
            yield f"[Image: {text}]" if text else ""
    raw.FPDF_StructTree_Close(tree)


def _walk_structure(tree: Any) -> Iterator[Any]:
    """Yield the elements of the structure of a page in order."""
    count = raw.FPDF_StructTree_CountChildren(tree)
    waiting = [(raw.FPDF_StructTree_GetChildAtIndex(tree, index), 1) for index in reversed(range(count))]
    while waiting:
        element, depth = waiting.pop()
        if not element:
            continue
        yield element
        if depth < MAX_DEPTH and len(waiting) < MAX_ELEMENTS:
            count = min(raw.FPDF_StructElement_CountChildren(element), MAX_ELEMENTS)
            waiting += [
                (raw.FPDF_StructElement_GetChildAtIndex(element, index), depth + 1)
                for index in reversed(range(count))
            ]


def _text_of(read: Any, element: Any) -> str:
    """Return a text of an element by a function of pdfium that fills a buffer."""
    size = read(element, None, 0)
    if size <= len("\0".encode("utf-16-le")):
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(element, buffer, size)
    return buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0")


def _photo_lines(page: pypdfium2.PdfPage) -> Iterator[str]:
    for image in islice(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]), MAX_PICTURES):
        size = raw.FPDFImageObj_GetImageDataRaw(image, None, 0)
        buffer = ctypes.create_string_buffer(size)
        raw.FPDFImageObj_GetImageDataRaw(image, buffer, size)
        yield photo_line(buffer.raw)
