"""Texts in XML."""

from typing import Final

from conspectus.text.late_patterns import regex_pattern

_ESCAPES: Final = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_ESCAPED: Final = regex_pattern(r'[&<>"\t\n\r]')
_IMPOSSIBLE: Final = regex_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def replace_forbidden(text: str) -> str:
    """Replace the characters that XML forbids by U+FFFD."""
    return _IMPOSSIBLE.sub("\ufffd", text)


def escape_xml(text: str) -> str:
    """Escape a text for XML. Characters that XML forbids become U+FFFD."""
    return _ESCAPED.sub(lambda match: _ESCAPES[match[0]], replace_forbidden(text))
