"""Text cleaning: normalization, good positions for cuts, and names that cannot imitate headers."""

from collections.abc import Iterator
from typing import Final

import regex

from conspectus.text.late_patterns import re_pattern, regex_pattern

PAIR = regex_pattern(r"[\ud800-\udbff][\udc00-\udfff]")
_UNSTORABLE = regex_pattern(r"([\ud800-\udbff][\udc00-\udfff])|[\x00\ud800-\udfff]")
_TAIL = 2_000
_WORD_END = regex_pattern(r"(?<=\S)(?=\s)")


def clean(text: str) -> str:
    """Replace NUL characters and lone surrogates by U+FFFD.

    A surrogate pair becomes its character. Every database can store the result, and it can be encoded in
    UTF-8.
    """
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return _UNSTORABLE.sub(_storable, text)


def graphemes_prefix(text: str, limit: int) -> str:
    """Return the longest prefix of at most `limit` code points that does not split a grapheme cluster."""
    return text[: last_border(text, min(limit, len(text)))] if limit > 0 else ""


def sentence_end_before(text: str, limit: int) -> int:
    """Return a good position to cut a text to at most `limit` code points.

    It is the end of the last sentence or line, or else of the last word, in the second half of the prefix; or
    else the last grapheme border. Trailing white space is cut. Only the 2,000 code points before the limit
    are examined, so a longer cluster is split.
    """
    if limit >= len(text):
        return len(text)
    if limit <= 0:
        return 0
    lowest = max(limit - _TAIL, 0)
    tail = text[lowest : limit + 1]
    floor = max(lowest, limit // 2)
    for ends in (SENTENCE_END, _WORD_END):
        found = [lowest + match.end() for match in ends.finditer(tail)]
        usable = (end for end in reversed(found) if last_border(text, end, lowest) == end)
        best = next((end for end in usable if end <= limit), 0)
        if best > floor:
            return best
    return last_border(text, limit, lowest)


def _storable(match: regex.Match[str]) -> str:
    if match[1] is None:
        return "\ufffd"
    pair: str = match[1]
    return pair.encode("utf-16", "surrogatepass").decode("utf-16")


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
    return _UNPRINTABLE.sub(lambda found: "\n" if found[0] in _PAGE_BREAKS else "\ufffd", text)


def unlike_headers(text: str) -> str:
    """Escape each bracket at the start of a line that looks like the header of a passage or a time range."""
    return _IMITATION.sub(_escaped, text) if "[" in text or "\uff3b" in text else text


def unbracketed(text: str) -> str:
    """Return a name on one line with escaped brackets, for use beside times in brackets."""
    return _BRACKET.sub(_escaped, on_one_line(text))


def _escaped(found: regex.Match[str]) -> str:
    return f"\\{found[0]}"


Span = tuple[int, int]

SENTENCE_END = regex_pattern(
    r"""(?<!(?:\n|\A)[ \t]{0,8}\d{1,3})[.!?\u2026]['"\u2019\u201D)\]]*(?=\s)"""
    r"""|[\u3002\uFF01\uFF1F][\u300D\u300F\uFF09]*"""
    r"""|(?<=\S)(?=\n)(?!(?<=[^\n]{40})\n[ \t]*+(?:[\p{L}("'\[`]|[*_]++\p{L}|\p{N}++(?![.)])))"""
)
"""A full stop or the end of a line, but not the end of a long line that the next one continues."""


def sentences(text: str) -> Iterator[Span]:
    """Yield the spans [start, end) of sentences, without the white space between them."""
    start = 0
    for end in (*(found.end() for found in SENTENCE_END.finditer(text)), len(text)):
        lead = len(text[start:end]) - len(text[start:end].lstrip())
        if start + lead < end:
            yield start + lead, start + len(text[start:end].rstrip())
        start = end


# Flags are named first: to tell which two belong together, `\X` reads back to the first of a row of flags.
_CLUSTER = regex_pattern(r"\p{RI}{2}(?![\p{GCB=Extend}\p{GCB=SpacingMark}\u200D])|\X")
_PLAIN = regex_pattern(
    r"(?<!\p{GCB=Prepend})[[\p{GCB=Other}&&[\p{Common}\p{Latin}\p{Greek}\p{Cyrillic}\p{Han}\p{Hiragana}"
    r"\p{Katakana}\p{Arabic}\p{Hebrew}]]--\p{ExtPict}]|\r|(?<!\r)\n",
    regex.VERSION1,
)
_LOOK_BACK = 32


class Borders:
    """Finds grapheme borders of a text and scans each part once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._origin = self._limit = -1
        self._ends: list[int] = []
        self._set: frozenset[int] = frozenset()

    def is_border(self, position: int, origin: int, limit: int) -> bool:
        """Return whether a position splits no cluster.

        `origin` is an earlier border, and `limit` ≥ position.
        """
        if position >= len(self._text) or _PLAIN.match(self._text, position):
            return True
        self._walk(origin, limit)
        return position in self._set

    def last(self, origin: int, limit: int) -> int:
        """Return the last border in (origin, limit], or `origin` if there is none."""
        if limit >= len(self._text) or _PLAIN.match(self._text, limit):
            return limit
        self._walk(origin, limit)
        return self._ends[-1] if self._ends else origin

    def _walk(self, origin: int, limit: int) -> None:
        if (origin, limit) == (self._origin, self._limit):
            return
        self._origin, self._limit = origin, limit
        # Whether a cluster ends at `limit` depends on the one character after it and on no other.
        matches = _CLUSTER.finditer(self._text[origin : limit + 1])
        self._ends = [origin + match.end() for match in matches if origin + match.end() <= limit]
        self._set = frozenset(self._ends)


def next_border(text: str, position: int) -> int:
    """Return the first border at or after a position."""
    before = last_border(text, position)
    cluster = _CLUSTER.match(text, before) if before < position else None
    return cluster.end() if cluster else position


def last_border(text: str, position: int, lowest: int = 0) -> int:
    """Return the last border at or before a position.

    `lowest` counts as one, and nothing before it is read.
    """
    anchor, step = position, _LOOK_BACK
    while anchor > lowest and not _PLAIN.match(text, anchor):
        reach = max(lowest, anchor - step)
        found = [match.start() for match in _PLAIN.finditer(text, reach, anchor)]
        anchor, step = (found[-1] if found else reach), step * 2
    return Borders(text).last(anchor, position)
