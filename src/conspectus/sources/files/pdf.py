"""PDF: the text of each page, with bookmarks as headings."""

import ctypes
import re
from collections.abc import Iterator, Sequence

import pypdfium2
from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDFCatalog_GetLanguage

from conspectus.model.records import TextPosition
from conspectus.sources.files.extract import Extract, Refused, left_out_notice
from conspectus.sources.files.file_properties import join_authors, language_metadata
from conspectus.sources.files.ocr import NOT_INSTALLED, PageReader
from conspectus.sources.files.pdf_pages import PageSpans, drop_running_heads, page_regions, page_spans
from conspectus.sources.files.pdf_pictures import picture_lines
from conspectus.sources.files.pdf_text import TextStyle, continue_tables, render_regions
from conspectus.sources.files.scans import (
    describe_recognition,
    recognition_notices,
    recognize_scans,
    with_boxes,
)

BETWEEN = "\n\n"
MAX_BOOKMARKS = 10_000
MAX_LANGUAGE_BYTES = 100
UNTITLED = frozenset({"untitled", "(anonymous)", "unspecified"})
_HYPHEN = re.compile("[\ufffe\x02]\n?")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def read_pdf(data: bytes, recognizer: PageReader | None = None, *, problem: str = NOT_INSTALLED) -> Extract:
    """Return the text of a PDF, with that of its scanned pages if there is a recognizer.

    Without one, `problem` says why. Raises Refused, and what the recognizer raises.
    """
    try:
        document = pypdfium2.PdfDocument(data)
        spans = [_page_spans(document, index) for index in range(len(document))]
        layers, left_out = _page_texts(spans)
        scans = recognize_scans(document, layers, recognizer)
        pictures = picture_lines(document, data)
        pages = [
            BETWEEN.join(filter(None, [scans.text(index) or layer, lines]))
            for index, (layer, lines) in enumerate(zip(layers, pictures, strict=True))
        ]
        bookmarks = list(_bookmarks(document, len(pages)))
        title = " ".join(_clean(document.get_metadata_value("Title")).split())
        author = join_authors([_clean(document.get_metadata_value("Author"))])
        language = language_metadata([_language(document)])
    except pypdfium2.PdfiumError as error:
        locked = error.err_code == FPDF_ERR_PASSWORD
        raise Refused("is encrypted with a password" if locked else f"a damaged PDF: {error}") from None
    if pages and not any(page is not None for page in spans):
        raise Refused("a damaged PDF: none of its pages can be read")
    if not any(pages):
        reason = "OCR found no words" if recognizer else f"they may be scanned, and {problem}"
        raise Refused(f"has no text; {reason}")
    without_text = "have no words" if recognizer else f"have no text; they may be scanned, and {problem}"
    counts = {without_text: scans.without_words, "are damaged": spans.count(None)}
    damages = [f"{count} of {len(pages)} pages {damage}" for damage, count in counts.items() if count]
    notices = [*damages, *filter(None, [left_out]), *recognition_notices(scans, len(pages))]
    recognized = scans.by_start(pages, BETWEEN)
    return Extract(
        BETWEEN.join(pages),
        "application/pdf",
        title="" if title.lower() in UNTITLED else title,
        places=with_boxes(_places(pages, bookmarks), recognized),
        notice="; ".join(notices) or None,
        author=author,
        metadata={**language, **describe_recognition(recognized)},
        read_by="ocr" if recognized else "text",
    )


def _language(document: pypdfium2.PdfDocument) -> str:
    """Return the language that the catalog of a PDF names; empty if it names none."""
    size = FPDFCatalog_GetLanguage(document, None, 0)
    if not 0 < size <= MAX_LANGUAGE_BYTES:
        return ""
    buffer = ctypes.create_string_buffer(size)
    FPDFCatalog_GetLanguage(document, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")


def _page_spans(document: pypdfium2.PdfDocument, index: int) -> PageSpans | None:
    """Return the spans of a page; None if it cannot be read."""
    try:
        page = document[index]
        text_page = page.get_textpage()
        spans = page_spans(page, text_page)
    except pypdfium2.PdfiumError:
        return None
    text_page.close()
    page.close()
    return spans


def _page_texts(spans: Sequence[PageSpans | None]) -> tuple[list[str], str | None]:
    """Return the text of each page in reading order, empty if it has none, and a notice of words left out."""
    readable = [page for page in spans if page is not None]
    words = _count_words(readable)
    drop_running_heads(readable)
    notice = left_out_notice(words, words - _count_words(readable), "running heads and page numbers")
    regions = [[] if page is None else page_regions(page) for page in spans]
    continue_tables(regions)
    style = TextStyle(region for page in regions for region in page)
    return [_UNSEEN.sub("", render_regions(page, style)) for page in regions], notice


def _count_words(pages: Sequence[PageSpans]) -> int:
    return sum(len(span.text.split()) for page in pages for span in page.main)


def _clean(text: str) -> str:
    """Return the lines of a page, with hyphenated words joined."""
    lines = _HYPHEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return "\n".join(_UNSEEN.sub("", line).rstrip() for line in lines).strip("\n")


def _bookmarks(document: pypdfium2.PdfDocument, pages: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Return the page (from 0) and the path of each bookmark that leads to a page."""
    path: list[str] = []
    for count, bookmark in enumerate(document.get_toc(max_depth=6)):
        if count == MAX_BOOKMARKS:
            return
        target = bookmark.get_dest()
        index = None if target is None else target.get_index()
        del path[bookmark.level :]
        path.append(" ".join(_clean(bookmark.get_title()).split()))
        if index is not None and 0 <= index < pages and path[-1]:
            yield index, tuple(path)


def _places(
    pages: Sequence[str], bookmarks: Sequence[tuple[int, tuple[str, ...]]]
) -> tuple[TextPosition, ...]:
    """Return the start of each page, and the position of each bookmark's title, if it is on its page."""
    starts = [0]
    for page in pages:
        starts.append(starts[-1] + len(page) + len(BETWEEN))
    marked_titles = [
        (starts[index] + max(0, _position(pages[index], path[-1])), order, index, path)
        for order, (index, path) in enumerate(bookmarks)
    ]
    marks = sorted([*marked_titles, *((start, -1, index, ()) for index, start in enumerate(starts[:-1]))])
    places: list[TextPosition] = []
    headings: tuple[str, ...] = ()
    for start, _, index, path in marks:
        headings = path or headings
        if places and places[-1].start == start:
            places.pop()
        places.append(TextPosition(start, index + 1, headings))
    return tuple(places)


def _position(page: str, title: str) -> int:
    """Return the start of the line that begins with the title, numbered or not; -1 if there is none."""
    words = [re.escape(word) for word in title.split()[:12]]
    match = re.search(r"^(?:[\dA-Z.]{1,8}\s+)?" + r"\s+".join(words), page, re.MULTILINE | re.IGNORECASE)
    return match.start() if match else -1
