"""Names and texts as they may stand in a line: printable, and nowhere like what only a renderer writes."""

import re
from typing import Final

import regex

_BREAK: Final = r"\n\r\x85\u2028\u2029"
_GAP: Final = r"[\s\p{Cf}]*+"
_OPEN: Final = r"[\[\uFF3B]"
_CLOSE: Final = r"[\]\uFF3D]"
_COLON: Final = r"[:\uFF1A\uFE55\uA789\u2236]"
_DASH: Final = r"[\p{Pd}\u2212]"
_NEXT: Final = rf"{_GAP}{_COLON}{_GAP}\p{{Nd}}{{2}}"
_DAY: Final = rf"\p{{Nd}}{{4}}{_GAP}{_DASH}\p{{Nd}}{{1,2}}{_DASH}\p{{Nd}}{{1,2}}[\s\p{{Cf}}T,]++"
_TIME: Final = rf"{_GAP}{_DASH}?+(?:{_DAY})?+\p{{Nd}}++{_NEXT}"
_REST: Final = rf"(?:[.,]\p{{Nd}}++)?+{_GAP}"
_RANGE: Final = rf"{_TIME}(?:{_NEXT})?+{_REST}(?:{_DASH}|,{_GAP}event\b)"
_INSTANT: Final = rf"{_TIME}{_NEXT}{_REST}{_CLOSE}"
_NUMBERED: Final = rf"{_GAP}(?:(?:\p{{Nd}}++|\u2026){_GAP}{_CLOSE}|\u2026{_GAP}\p{{Nd}})"
_BEGINNING: Final = rf"(?<=(?:\A|[{_BREAK}])[\s\p{{Cf}}]*)"

_IMITATION: Final = regex.compile(rf"{_BEGINNING}{_OPEN}(?={_NUMBERED}|{_INSTANT})|{_OPEN}(?={_RANGE})")
_BRACKET: Final = regex.compile(rf"{_OPEN}|{_CLOSE}")
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_PAGE_BREAKS: Final = frozenset("\x0b\x0c\x1c\x1d\x1e")


def on_one_line(text: str) -> str:
    """Printable, with every stretch of white space as one space."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Page breaks become lines, other control characters and lone surrogates U+FFFD."""
    return _UNPRINTABLE.sub(lambda found: "\n" if found[0] in _PAGE_BREAKS else "\ufffd", text)


def unlike_headers(text: str) -> str:
    """A backslash before each bracket that would begin a line as a passage does, or a range of time."""
    return _IMITATION.sub(r"\\\g<0>", text) if "[" in text or "\uff3b" in text else text


def unbracketed(text: str) -> str:
    """A name beside times in brackets, on one line: a backslash before each bracket of its own."""
    return _BRACKET.sub(r"\\\g<0>", on_one_line(text))
