"""How much the lines of a page image rise or fall, from the contrast of its rows of pixels."""

import math
from itertools import pairwise
from typing import Any, TypeAlias

Image: TypeAlias = Any
"""An image of Pillow, in shades of gray."""

SMALL_SIDE = 500
"""Pixels of the longer side; a line of text is some seven rows high in an A4 page of this size."""
MAX_DEGREES = 3.0
COARSE_DEGREES, FINE_DEGREES = 0.5, 0.25
MIN_PROMINENCE = 1.5
"""Straight lines have 2 to 25 times the median contrast of all angles; photos have about the same."""
AFFINE, NEAREST, BOX = 0, 0, 4
"""Numbers of a method and of filters in Pillow."""
WHITE = 255


def skew_degrees(image: Image) -> float:
    """Return by how many degrees (counterclockwise) a page is set straight; 0 if it has no plain lines."""
    small = image.reduce(max(1, max(image.size) // SMALL_SIDE))
    steps = round(MAX_DEGREES / COARSE_DEGREES)
    angles = [COARSE_DEGREES * step for step in range(-steps, steps + 1)]
    contrasts = {degrees: _row_contrast(small, degrees) for degrees in angles}
    median = sorted(contrasts.values())[steps]
    best = max(contrasts, key=contrasts.__getitem__)
    for degrees in (best - FINE_DEGREES, best + FINE_DEGREES):
        contrasts[degrees] = _row_contrast(small, degrees)
    best = max(contrasts, key=contrasts.__getitem__)
    return best if contrasts[best] > MIN_PROMINENCE * median else 0.0


def _row_contrast(image: Image, degrees: float) -> int:
    """Return how much neighbouring rows differ after the image was turned, which a shear stands for."""
    width, height = image.size
    slope = math.tan(math.radians(degrees))
    coefficients = (1, 0, 0, slope, 1, -slope * width / 2)
    sheared = image.transform(image.size, AFFINE, coefficients, NEAREST, fillcolor=WHITE)
    rows = sheared.resize((1, height), BOX).tobytes()
    return sum((above - below) ** 2 for above, below in pairwise(rows))
