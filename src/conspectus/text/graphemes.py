"""Borders of grapheme clusters."""

import regex

from conspectus.text.late_patterns import regex_pattern

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


def graphemes_prefix(text: str, limit: int) -> str:
    """Return the longest prefix of at most `limit` code points that does not split a grapheme cluster."""
    if limit > 0:
        return text[: last_border(text, min(limit, len(text)))]
    return ""


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
        plain = [match.start() for match in _PLAIN.finditer(text, reach, anchor)]
        anchor, step = (plain[-1] if plain else reach), step * 2
    return Borders(text).last(anchor, position)
