"""Images of pages with drawn lines, as a scanner or a camera would make them."""

import io
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw, ImageFont

LINES = (
    "The lighthouse keeper lights the lamp at dusk,",
    "and every Monday the boat from Whitby brings",
    "oil for one week, fresh bread and the letters",
    "of both sisters, which nobody reads before six.",
)
PAGE_SIZE = (1_300, 700)


def draw_page(lines: Sequence[str] = LINES, size: tuple[int, int] = PAGE_SIZE) -> Any:
    """Return a gray page image with the lines in letters of 9 point at 200 dpi."""
    page = Image.new("L", size, 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(size=34)
    for number, line in enumerate(lines):
        draw.text((100, 100 + 60 * number), line, fill=0, font=font)
    return page


def encode(image: Any, format: str, **options: object) -> bytes:
    """Return the file of an image in a format of Pillow."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()
