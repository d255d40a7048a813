"""Text made storable, and places where a text may be cut without spoiling it."""

import regex

from conspectus.text.graphemes import last_border
from conspectus.text.sentences import SENTENCE_END

PAIR = regex.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_UNSTORABLE = regex.compile(r"([\ud800-\udbff][\udc00-\udfff])|[\x00\ud800-\udfff]")
_TAIL = 2_000
_WORD_END = regex.compile(r"(?<=\S)(?=\s)")


def clean(text: str) -> str:
    """The text with every NUL and lone surrogate replaced by U+FFFD, otherwise unchanged.

    A surrogate pair becomes the character it stands for. What is returned can be encoded in UTF-8
    and stored by every database.
    """
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return _UNSTORABLE.sub(_storable, text)


def graphemes_prefix(text: str, limit: int) -> str:
    """The longest prefix of at most `limit` code points that does not cut a grapheme cluster."""
    return text[: last_border(text, min(limit, len(text)))] if limit > 0 else ""


def sentence_end_before(text: str, limit: int) -> int:
    """Where to cut the text so that at most `limit` code points stay and it still reads well.

    The end of the last sentence or line, else of the last word, in the second half of what may stay;
    else the last grapheme border. The place of a cut is before white space, not after it. Only the
    2,000 code points before the limit are looked at, so a single cluster longer than that is cut.
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
