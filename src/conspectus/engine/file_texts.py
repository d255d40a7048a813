"""Parts of a text by lines, characters and tokens."""

import re
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.ports import CountTokens
from conspectus.text.graphemes import last_border

MAX_TOKEN_CHARACTERS: Final = 16
"""At most this number of characters for each token is examined."""


def count_lines(text: str) -> int:
    """Return the number of lines of a text; a line break at the end begins no line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def character_range(text: str, first_line: int, last_line: int | None, start: int) -> tuple[int, int]:
    """Return the characters of a range of lines, from `start` on. Raises InvalidInput."""
    if first_line < 1 or (last_line is not None and last_line < first_line):
        raise InvalidInput("first_line" if first_line < 1 else "last_line", "lines count from 1, in order")
    if not 0 <= start <= len(text):
        raise InvalidInput("start", f"the file has {len(text)} characters")
    borders = [0, *(newline.end() for newline in re.finditer("\n", text)), len(text)]
    begin = max(start, borders[min(first_line, len(borders)) - 1])
    end = len(text) if last_line is None else borders[min(last_line, len(borders) - 1)]
    return begin, max(begin, end)


def fits_budget(text: str, limit: int, count: CountTokens) -> bool:
    """Return whether a text has at most `limit` tokens."""
    return len(text) <= limit * MAX_TOKEN_CHARACTERS and count(text) <= limit


def cut_to_budget(text: str, limit: int | None, count: CountTokens) -> tuple[str, int]:
    """Return the beginning of a text that fits the budget, whole lines if possible, and its tokens."""
    if limit is None or fits_budget(text, limit, count):
        return text, count(text)
    low, high = 0, min(len(text), max(0, limit) * MAX_TOKEN_CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits_budget(text[:middle], limit, count) else (low, middle - 1)
    end = text.rfind("\n", 0, low) + 1 or last_border(text, low)
    while end and not fits_budget(text[:end], limit, count):
        end = last_border(text, end - 1)
    return text[:end], count(text[:end])
