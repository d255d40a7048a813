"""Pages of a PDF without a usable text layer, which are rendered and recognized."""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import accumulate

import pypdfium2
from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

from conspectus.deferred import dataclass
from conspectus.model.records import Json, TextPosition
from conspectus.sources.files.extract import escape_markdown
from conspectus.sources.files.ocr import DPI, MAX_PIXELS, PageReader, RecognizedPage
from conspectus.text.counts import format_count
from conspectus.text.positions import place_at

MAX_STAMP_CHARACTERS = 100
"""A scan may have so much text in its layer: a page number, a stamp."""
MIN_IMAGE_SHARE = 0.5
MAX_UNREADABLE_SHARE = 0.3
UNREADABLE_CATEGORIES = frozenset({"Cc", "Cn", "Co", "Cs"})
MIN_UNCERTAIN_SHARE = 0.02
TIMEOUT_VARIABLE = "CONSPECTUS_PARSE_TIMEOUT_SECONDS"
MAX_UNCERTAIN_SPANS = 100
POINTS_PER_INCH = 72


@dataclass(frozen=True, slots=True)
class Scans:
    """The recognized pages by index, and how many pages had no words or no time left."""

    pages: Mapping[int, RecognizedPage] = field(default_factory=dict)
    without_words: int = 0
    not_reached: int = 0

    def text(self, index: int) -> str:
        """Return the text of a recognized page; empty for any other."""
        # A line that looks like a heading gets a backslash, which shifts the positions behind it a little.
        return escape_markdown(self.pages[index].text) if index in self.pages else ""

    def by_start(self, pages: Sequence[str], between: str) -> list[tuple[int, RecognizedPage]]:
        """Return the recognized pages with their start in the text of all pages."""
        starts = accumulate((len(page) + len(between) for page in pages), initial=0)
        return [(start, self.pages[index]) for index, start in enumerate(starts) if index in self.pages]


def recognize_scans(
    document: pypdfium2.PdfDocument, layers: Sequence[str], recognizer: PageReader | None
) -> Scans:
    """Recognize the pages whose text layer is missing or unreadable."""
    pages: dict[int, RecognizedPage] = {}
    without_words = not_reached = 0
    for index, text in enumerate(layers):
        page = _load(document, index) if _may_be_scanned(text) else None
        if page is None:
            continue
        if _is_scanned(page, text):
            if recognizer is None:
                without_words += not text
            elif recognizer.is_late():
                not_reached += 1
            elif (recognized := recognizer.read(_render(page))).text:
                pages[index] = recognized
            else:
                without_words += not text
        page.close()
    return Scans(pages, without_words, not_reached)


def with_boxes(
    places: Sequence[TextPosition], recognized: Sequence[tuple[int, RecognizedPage]]
) -> tuple[TextPosition, ...]:
    """Add the paragraphs of recognized pages, given with the start of each page, to the positions."""
    boxed = {
        start + paragraph.start: replace(place_at(places, start + paragraph.start), box=paragraph.box)
        for start, page in recognized
        for paragraph in page.paragraphs
    }
    others = (position for position in places if position.start not in boxed)
    return tuple(sorted([*others, *boxed.values()], key=lambda position: position.start))


def describe_recognition(recognized: Sequence[tuple[int, RecognizedPage]]) -> Mapping[str, Json]:
    """Return the metadata of recognized pages: confidence, number of words, and spans of uncertain ones."""
    if not recognized:
        return {}
    words = sum(page.words for _, page in recognized)
    spans: list[Json] = [
        [start + first, start + end] for start, page in recognized for first, end in page.uncertain
    ]
    confidence = sum(page.confidence * page.words for _, page in recognized) / max(1, words)
    return {
        "ocr": {
            "confidence": round(confidence, 1),
            "words": words,
            "uncertain_words": len(spans),
            "uncertain": spans[:MAX_UNCERTAIN_SPANS],
        }
    }


def recognition_notices(scans: Scans, pages: int) -> Iterator[str]:
    """Yield what a user should know about the scanned ones of so many pages."""
    words = sum(page.words for page in scans.pages.values())
    uncertain = sum(len(page.uncertain) for page in scans.pages.values())
    if uncertain > MIN_UNCERTAIN_SHARE * words:
        yield f"uncertain: {uncertain} of {format_count(words, 'word')} read by OCR"
    if scans.not_reached:
        yield f"{scans.not_reached} of {pages} pages were not read in time; raise {TIMEOUT_VARIABLE}"


def _load(document: pypdfium2.PdfDocument, index: int) -> pypdfium2.PdfPage | None:
    """Return a page; None if it is damaged."""
    try:
        return document[index]
    except pypdfium2.PdfiumError:
        return None


def _may_be_scanned(text: str) -> bool:
    """Whether a text layer is short, or most of it is no letters and digits."""
    visible = "".join(text.split())
    return len(visible) < MAX_STAMP_CHARACTERS or 2 * sum(map(str.isalnum, visible)) < len(visible)


def _is_scanned(page: pypdfium2.PdfPage, text: str) -> bool:
    """Whether a page with such a text layer is an image, outlines of letters, or of unknown characters."""
    if not text:
        return any(True for _ in page.get_objects(max_depth=1))
    if _is_unreadable(page):
        return True
    width, height = page.get_size()
    images = page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE])
    largest = max((_area(*image.get_bounds()) for image in images), default=0.0)
    return largest >= MIN_IMAGE_SHARE * width * height and len("".join(text.split())) < MAX_STAMP_CHARACTERS


def _is_unreadable(page: pypdfium2.PdfPage) -> bool:
    """Whether many characters of the text layer stand for no letter: its font has no table of them."""
    layer = page.get_textpage()
    visible = "".join(layer.get_text_range().split())
    layer.close()
    unreadable = sum(
        character == "\ufffd" or unicodedata.category(character) in UNREADABLE_CATEGORIES
        for character in visible
    )
    return unreadable > MAX_UNREADABLE_SHARE * len(visible)


def _area(left: float, bottom: float, right: float, top: float) -> float:
    return max(0.0, right - left) * max(0.0, top - bottom)


def _render(page: pypdfium2.PdfPage) -> object:
    """Return the image of a page at 200 dpi, or less if the page is huge."""
    width, height = page.get_size()
    scale = min(DPI / POINTS_PER_INCH, math.sqrt(MAX_PIXELS / max(1.0, width * height)))
    # PDFium takes twice as long for shades of gray as for colors, which Pillow makes gray in no time.
    return page.render(scale=scale).to_pil().convert("L")
