"""Words of page images, recognized by Tesseract (extra `ocr`), with their confidence and their boxes."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import optional
from conspectus.model.records import Box
from conspectus.sources.files.ocr_languages import ALL_LANGUAGES, MAX_ENGINES, LanguageChoice
from conspectus.sources.files.page_skew import WHITE, skew_degrees

Image: TypeAlias = Any
"""An image of Pillow."""

EXTRA = "ocr"
INSTALL = f"pip install 'conspectus[{EXTRA}]'"
NOT_INSTALLED = f"the extra `{EXTRA}` reads them: {INSTALL}"
LANGUAGES_VARIABLE, FOLDER_VARIABLE = "CONSPECTUS_OCR_LANGUAGES", "CONSPECTUS_OCR_DATA"
ORIENTATION = "osd"
"""The data of Tesseract that find how a page is turned; they are no language."""
DPI = 200
MAX_PIXELS = 12_000_000
"""Larger images are scaled down: an A4 page of 350 dpi fits."""
MIN_WORD_CONFIDENCE = 60
MIN_PAGE_CONFIDENCE = 50
"""What Tesseract makes of photos and handwriting lies below this mean."""
TURNED_CONFIDENCE = 70
"""A page whose words have a lower mean may stand on its side or its head."""
MIN_SKEW_DEGREES = 1.0
NOISE_RADIUS = 0.8
"""Pixels; letters of 11 points at 200 dpi have strokes of 3."""
BOX_UNITS = 1_000
LANCZOS, BILINEAR = 1, 2
"""Numbers of filters in Pillow."""
TIME_SHARE = 0.8
"""Share of a reading's time limit after which no further page is recognized."""
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-$")


@dataclass(frozen=True, slots=True)
class Word:
    """A recognized word with its confidence (0 to 100), and whether a line or a paragraph begins with it."""

    text: str
    confidence: float
    box: Box
    language: str = ""
    begins_line: bool = False
    begins_paragraph: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Where a paragraph starts in the text of its page, and its box in thousandths of the page."""

    start: int
    box: Box


@dataclass(frozen=True, slots=True)
class RecognizedPage:
    """The text of a page image, its mean confidence, its paragraphs, and the spans of uncertain words."""

    text: str = ""
    confidence: float = 0.0
    words: int = 0
    paragraphs: tuple[Paragraph, ...] = ()
    uncertain: tuple[tuple[int, int], ...] = ()


class RecognizerNeeded(Exception):
    """A page has to be recognized, and Tesseract is not loaded."""


class PageReader(Protocol):
    """Recognizes page images until the time of a file is over."""

    def is_late(self) -> bool:
        """Whether the time for the pages of this file is over."""

    def read(self, image: Image) -> RecognizedPage:
        """Return the text of a page image."""


class UnloadedRecognizer:
    """Stands for Tesseract where it is not loaded: most files have no page that needs it."""

    def is_late(self) -> bool:
        """Raise RecognizerNeeded, before a page is rendered."""
        raise RecognizerNeeded

    def read(self, image: Image) -> RecognizedPage:
        """Raise RecognizerNeeded."""
        raise RecognizerNeeded


@dataclass(slots=True)
class Recognizer:
    """Tesseract with its languages loaded; `orientation` finds pages that stand on their side or head.

    `engines` has one for all languages (`ALL_LANGUAGES`), and where these are several, one for each.
    """

    engines: Mapping[str, Any]
    orientation: Any
    deadline: float = field(default=math.inf)
    choice: LanguageChoice = field(init=False)

    def __post_init__(self) -> None:
        self.choice = LanguageChoice(self.engines.keys() - {ALL_LANGUAGES})

    def begin_file(self, seconds: float) -> None:
        """Begin a file, whose pages are recognized within a time."""
        self.choice.begin_file()
        self.deadline = time.monotonic() + TIME_SHARE * seconds

    def is_late(self) -> bool:
        """Whether the time for the pages of this file is over."""
        return time.monotonic() > self.deadline

    def read(self, image: Image) -> RecognizedPage:
        """Return the text of a page image, which may be skewed or turned; empty if it has no words."""
        page_image = _straighten(_soften(_fit_pixels(image.convert("L"))))
        words = self._words(page_image, self.choice.current)
        quarter_turns = 0
        if _mean_confidence(words) < TURNED_CONFIDENCE:
            quarter_turns = self._quarter_turns(page_image)
        if quarter_turns:
            page_image = page_image.rotate(90 * quarter_turns, expand=True)
            words = self._words(page_image, self.choice.current)
        if not self.choice.suits(_mean_confidence(words)):
            self.choice.begin_file()
            words = self._words(page_image, ALL_LANGUAGES)
        if self.choice.current == ALL_LANGUAGES:
            self.choice.learn([word.language for word in words], _mean_confidence(words))
        if _mean_confidence(words) < MIN_PAGE_CONFIDENCE:
            return RecognizedPage()
        return _compose_page(words, page_image.size, quarter_turns)

    def _words(self, image: Image, language: str) -> list[Word]:
        """Return the words of an image in reading order, after it was straightened if it is very skewed."""
        engine = self.engines[language]
        _show(engine, image)
        layout = engine.AnalyseLayout()
        if layout is None:
            return []
        degrees = math.degrees(layout.Orientation()[3])
        if MIN_SKEW_DEGREES <= abs(degrees) < 45:
            _show(engine, image.rotate(degrees, fillcolor=WHITE, resample=BILINEAR))
        remaining = self.deadline - time.monotonic()
        engine.Recognize(0 if remaining == math.inf else max(1, int(remaining * 1_000)))
        words = list(_iterate_words(engine))
        engine.Clear()
        return words

    def _quarter_turns(self, image: Image) -> int:
        """Return by how many quarter turns (counterclockwise) an image is set upright."""
        _show(self.orientation, image)
        detected = self.orientation.DetectOrientationScript()
        self.orientation.Clear()
        return 0 if detected is None else round(detected["orient_deg"] / 90) % 4


def is_installed() -> bool:
    """Return whether the extra `ocr` is installed."""
    return all(find_spec(module) is not None for module in ("PIL", "tessdata", "tesserocr"))


def recognition_problem(languages: str = "", folder: str = "") -> str:
    """Return why pages cannot be recognized with these languages; empty if they can."""
    if not is_installed():
        return NOT_INSTALLED
    data_folder = Path(folder or optional("tessdata", EXTRA, "tessdata").data_path())
    installed = _languages_in(data_folder)
    return _missing_languages(languages.split("+") if languages else installed, installed, data_folder)


def load_recognizer(languages: str = "", folder: str = "") -> Recognizer:
    """Return Tesseract with languages such as `eng+deu`; without any, with all of the folder.

    Without a folder it is that of the installed packages. Raises MissingExtra, and ValueError for a language
    without data.
    """
    # A child that reads files can load no module later on.
    for module in ("PIL.ImageOps", "PIL.ImageFilter"):
        optional(module, EXTRA, "pillow")
    optional("PIL.Image", EXTRA, "pillow").init()
    tesserocr = optional("tesserocr", EXTRA, "tesserocr")
    packaged = optional("tessdata", EXTRA, "tessdata").data_path()
    data_folder = Path(folder or packaged)
    installed = _languages_in(data_folder)
    requested = languages.split("+") if languages else installed
    if problem := _missing_languages(requested, installed, data_folder):
        raise ValueError(problem)
    languages_alone = requested if 1 < len(requested) <= MAX_ENGINES else []
    loaded = {ALL_LANGUAGES: "+".join(requested), **{language: language for language in languages_alone}}
    engines = {
        name: tesserocr.PyTessBaseAPI(path=str(data_folder), lang=codes, oem=tesserocr.OEM.LSTM_ONLY)
        for name, codes in loaded.items()
    }
    has_orientation = (data_folder / f"{ORIENTATION}.traineddata").exists()
    orientation_folder = str(data_folder) if has_orientation else packaged
    orientation_engine = tesserocr.PyTessBaseAPI(
        path=orientation_folder, lang=ORIENTATION, psm=tesserocr.PSM.OSD_ONLY
    )
    recognizer = Recognizer(engines, orientation_engine)
    # Tesseract opens the file for its remarks when it has the first one: that a page has too few letters.
    recognizer.read(optional("PIL.Image", EXTRA, "pillow").new("L", (64, 64), 255))
    return recognizer


def _show(engine: Any, image: Image) -> None:
    engine.SetImage(image)
    engine.SetSourceResolution(DPI)


def _languages_in(folder: Path) -> list[str]:
    """Return the languages of the data in a folder, English first."""
    names = {path.stem for path in folder.glob("*.traineddata")} - {ORIENTATION}
    return sorted(names, key=lambda language: (language != "eng", language))


def _missing_languages(requested: Sequence[str], installed: Sequence[str], folder: Path) -> str:
    """Return which languages have no data, and what to do; empty if all have."""
    missing = sorted({*requested} - {*installed})
    if not missing and requested:
        return ""
    return (
        f"Tesseract has no data for {', '.join(missing) or 'any language'} in {folder}, which has "
        f"{', '.join(installed) or 'none'}; change {LANGUAGES_VARIABLE} or {FOLDER_VARIABLE}"
    )


def _fit_pixels(image: Image) -> Image:
    """Return the image, scaled down if it has too many pixels."""
    width, height = image.size
    scale = math.sqrt(MAX_PIXELS / (width * height))
    return image if scale >= 1 else image.resize((max(1, int(width * scale)), max(1, int(height * scale))))


def _soften(image: Image) -> Image:
    """Return the image with the noise of a scanner smoothed, which hides letters and costs time."""
    return image.filter(optional("PIL.ImageFilter", EXTRA, "pillow").GaussianBlur(NOISE_RADIUS))


def _straighten(image: Image) -> Image:
    """Return the image with straight lines: Tesseract would need a second layout of the page for it."""
    degrees = skew_degrees(image)
    if abs(degrees) < MIN_SKEW_DEGREES:
        return image
    return image.rotate(degrees, fillcolor=WHITE, resample=BILINEAR)


def _iterate_words(engine: Any) -> Iterator[Word]:
    """Yield the words that were recognized, in reading order."""
    levels = optional("tesserocr", EXTRA, "tesserocr").RIL
    results = engine.GetIterator()
    if results is None or results.Empty(levels.WORD):
        return
    while True:
        box = results.BoundingBox(levels.WORD)
        text = results.GetUTF8Text(levels.WORD) if box else ""
        if text.strip():
            yield Word(
                " ".join(text.split()),
                results.Confidence(levels.WORD),
                box,
                results.WordRecognitionLanguage() or "",
                begins_line=results.IsAtBeginningOf(levels.TEXTLINE),
                begins_paragraph=results.IsAtBeginningOf(levels.PARA),
            )
        if not results.Next(levels.WORD):
            return


def _mean_confidence(words: Sequence[Word]) -> float:
    """Return the mean confidence by character, so that specks count little; 0 without words."""
    characters = sum(len(word.text) for word in words)
    return sum(len(word.text) * word.confidence for word in words) / characters if characters else 0.0


def _compose_page(words: Sequence[Word], size: tuple[int, int], quarter_turns: int) -> RecognizedPage:
    """Return the text of the words, with lines and paragraphs, and words joined that a line had divided."""
    text = ""
    starts: list[tuple[int, list[Box]]] = []
    uncertain: list[tuple[int, int]] = []
    for word in words:
        if word.begins_line and _HYPHENATED.search(text) and word.text[0].islower():
            text = text[:-1]
        elif word.begins_paragraph or not starts:
            text += "\n\n" if text else ""
            starts.append((len(text), []))
        else:
            text += "\n" if word.begins_line else " "
        starts[-1][1].append(word.box)
        if word.confidence < MIN_WORD_CONFIDENCE:
            uncertain.append((len(text), len(text) + len(word.text)))
        text += word.text
    return RecognizedPage(
        text,
        _mean_confidence(words),
        len(words),
        tuple(Paragraph(start, _turn_back(_enclose(boxes), size, quarter_turns)) for start, boxes in starts),
        tuple(uncertain),
    )


def _enclose(boxes: Sequence[Box]) -> Box:
    """Return the smallest box around boxes."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _turn_back(box: Box, size: tuple[int, int], quarter_turns: int) -> Box:
    """Return a box of an image that was turned, in thousandths of the image as it was before."""
    width, height = size
    left, right = (max(0, min(BOX_UNITS, round(BOX_UNITS * x / width))) for x in (box[0], box[2]))
    top, bottom = (max(0, min(BOX_UNITS, round(BOX_UNITS * y / height))) for y in (box[1], box[3]))
    for _ in range(quarter_turns):
        # A quarter turn clockwise.
        left, top, right, bottom = BOX_UNITS - bottom, left, BOX_UNITS - top, right
    return left, top, right, bottom
