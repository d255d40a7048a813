"""Printable texts, and names that cannot imitate headers of passages."""

from typing import Final

import regex

from conspectus.text.late_patterns import re_pattern, regex_pattern

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
_IMITATION: Final = regex_pattern(rf"{_BEGINNING}{_OPEN}(?={_NUMBERED}|{_INSTANT})|{_OPEN}(?={_RANGE})")
_BRACKET: Final = regex_pattern(rf"{_OPEN}|{_CLOSE}")
_UNPRINTABLE: Final = re_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_PAGE_BREAKS: Final = frozenset("\x0b\x0c\x1c\x1d\x1e")


def on_one_line(text: str) -> str:
    """Make a text printable, with single spaces instead of any white space."""
    return " ".join(printable(text).split()) if text else text


def printable(text: str) -> str:
    """Replace page breaks by line breaks, other control characters and lone surrogates by U+FFFD."""
    if text.replace("\n", " ").isprintable():
        return text
    return _UNPRINTABLE.sub(lambda match: "\n" if match[0] in _PAGE_BREAKS else "\ufffd", text)


def unlike_headers(text: str) -> str:
    """Escape each bracket at the start of a line that looks like the header of a passage or a time range."""
    if "[" in text or "\uff3b" in text:
        return _IMITATION.sub(_escape, text)
    return text


def escape_brackets(text: str) -> str:
    """Return a name on one line with escaped brackets, for use beside times in brackets."""
    return _BRACKET.sub(_escape, on_one_line(text))


def _escape(match: regex.Match[str]) -> str:
    return f"\\{match[0]}"
