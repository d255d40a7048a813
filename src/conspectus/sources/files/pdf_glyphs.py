"""Letters and ruled lines of a PDF page with their positions, as pdfium has them."""

import ctypes
import math
from collections.abc import Iterator
from itertools import chain, islice, pairwise
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from conspectus.sources.files.pdf_spans import Glyph, Rule

MAX_PATHS = 3_000
MAX_PATH_SEGMENTS = 2_000
MAX_TILT = 10
MAX_RULE_SLANT = 1.0
HYPHENS = frozenset({0x02, 0xAD, 0xFFFE})
_LAST_CODE_POINT = 0x10FFFF


def page_glyphs(text_page: pypdfium2.PdfTextPage) -> Iterator[Glyph]:
    """Yield the letters of a page in the order of drawing, each in the frame of its direction.

    In the frame of a direction its text runs from left to right and from above, whatever the rotation of the
    page. White space has no width.
    """
    page = text_page.raw
    x, y = ctypes.c_double(), ctypes.c_double()
    box, matrix = raw.FS_RECTF(), raw.FS_MATRIX()
    direction, size = 0, 1.0
    is_word_start, last_x, last_y = True, 0.0, 0.0
    for index in range(text_page.count_chars()):
        code = raw.FPDFText_GetUnicode(page, index)
        letter = "-" if code in HYPHENS else chr(code) if code <= _LAST_CODE_POINT else "\ufffd"
        if letter.isspace():
            yield Glyph(letter, 0, 0, 0, 0, direction)
            is_word_start = True
            continue
        raw.FPDFText_GetCharOrigin(page, index, x, y)
        raw.FPDFText_GetLooseCharBox(page, index, box)
        # Type changes inside a word only where its line does, so this is not asked for each letter.
        if is_word_start or (x.value != last_x and y.value != last_y):
            raw.FPDFText_GetMatrix(page, index, matrix)
            direction = _direction(matrix.a, matrix.b)
            size = abs(raw.FPDFText_GetFontSize(page, index)) * math.hypot(matrix.c, matrix.d)
        is_word_start, last_x, last_y = False, x.value, y.value
        left, right, base = _framed(direction, (box.left, box.right, box.bottom, box.top), (x.value, y.value))
        if math.isfinite(left + right + base + size):
            yield Glyph(letter, left, right, base, size or right - left, direction)


def page_rules(page: pypdfium2.PdfPage, direction: int) -> Iterator[Rule]:
    """Yield the horizontal and vertical lines that a page draws, in the frame of a direction."""
    paths = page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1)
    for begin, end in chain.from_iterable(pairwise(_path_points(path)) for path in islice(paths, MAX_PATHS)):
        x, _, y = _framed(direction, (begin.x, begin.x, begin.y, begin.y), (begin.x, begin.y))
        other_x, _, other_y = _framed(direction, (end.x, end.x, end.y, end.y), (end.x, end.y))
        rule = Rule(min(x, other_x), max(x, other_x), min(y, other_y), max(y, other_y))
        if end.is_drawn and min(rule.right - rule.left, rule.bottom - rule.top) <= MAX_RULE_SLANT:
            yield rule


class _PathPoint(NamedTuple):
    """A point of a path on the page, and whether a straight line leads to it."""

    is_drawn: bool
    x: float
    y: float


def _path_points(path: pypdfium2.PdfObject) -> Iterator[_PathPoint]:
    matrix, x, y = path.get_matrix(), ctypes.c_float(), ctypes.c_float()
    begin = (0.0, 0.0)
    for index in range(min(raw.FPDFPath_CountSegments(path), MAX_PATH_SEGMENTS)):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = matrix.on_point(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            begin = point
        yield _PathPoint(kind == raw.FPDF_SEGMENT_LINETO, *point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield _PathPoint(True, *begin)


def _direction(a: float, b: float) -> int:
    """Return the direction of text in degrees: a multiple of 90, or -1 for slanted text."""
    angle = math.degrees(math.atan2(b, a)) % 360
    nearest = round(angle / 90) * 90
    return nearest % 360 if abs(angle - nearest) <= MAX_TILT else -1


def _framed(
    direction: int, box: tuple[float, float, float, float], origin: tuple[float, ...]
) -> tuple[float, float, float]:
    """Return left end, right end and base of a letter in the frame of its direction."""
    left, right, bottom, top = box
    x, y = origin
    match direction:
        case 90:
            return bottom, top, x
        case 180:
            return -right, -left, y
        case 270:
            return -top, -bottom, -x
        case _:
            return left, right, -y
