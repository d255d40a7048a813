"""Sentences, and good positions to cut a text."""

from collections.abc import Iterator

from conspectus.text.graphemes import last_border
from conspectus.text.late_patterns import regex_pattern

Span = tuple[int, int]
SENTENCE_END = regex_pattern(
    r"""(?<!(?:\n|\A)[ \t]{0,8}\d{1,3})[.!?\u2026]['"\u2019\u201D)\]]*(?=\s)"""
    r"""|[\u3002\uFF01\uFF1F][\u300D\u300F\uFF09]*"""
    r"""|(?<=\S)(?=\n)(?!(?<=[^\n]{40})\n[ \t]*+(?:[\p{L}("'\[`]|[*_]++\p{L}|\p{N}++(?![.)])))"""
)
"""A full stop or the end of a line, but not the end of a long line that the next one continues."""
_TAIL_LENGTH = 2_000
_WORD_END = regex_pattern(r"(?<=\S)(?=\s)")


def sentences(text: str) -> Iterator[Span]:
    """Yield the spans [start, end) of sentences, without the white space between them."""
    start = 0
    for end in (*(match.end() for match in SENTENCE_END.finditer(text)), len(text)):
        lead = len(text[start:end]) - len(text[start:end].lstrip())
        if start + lead < end:
            yield start + lead, start + len(text[start:end].rstrip())
        start = end


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
    lowest = max(limit - _TAIL_LENGTH, 0)
    tail = text[lowest : limit + 1]
    floor = max(lowest, limit // 2)
    for ends in (SENTENCE_END, _WORD_END):
        positions = [lowest + match.end() for match in ends.finditer(tail)]
        usable = (end for end in reversed(positions) if last_border(text, end, lowest) == end)
        best = next((end for end in usable if end <= limit), 0)
        if best > floor:
            return best
    return last_border(text, limit, lowest)
