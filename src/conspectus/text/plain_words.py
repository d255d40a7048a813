"""Plain words: the ASCII letters that a reader or a language model sees in a text, however they are spelled.

An attack can be written with letters that look alike, with marks, invisible characters, HTML entities, tags
and comments between letters and words. `readings` returns the text without them, so that patterns of plain
words find it.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from conspectus.text.lookalikes import LOOKALIKES

_ODD: Final = re.compile(r"[^\x00-\x7f]+")
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,30});?", re.IGNORECASE)
_TAG: Final = re.compile(
    r"<!--.{0,2000}?-->|</?[a-z][^<>]{0,300}>|<[!?][^<>]{0,300}>", re.IGNORECASE | re.DOTALL
)
_ESCAPED: Final = re.compile(r"\\u([0-9a-f]{4})|%([0-7][0-9a-f])", re.IGNORECASE)
_INSIDE: Final = re.compile(r"(?<=[a-z])(?:[*`~^.'\"\\|-]{1,4}|-\s*\n\s*)(?=[a-z])")
_SPELLED: Final = re.compile(r"(?<![a-z])[a-z](?:[^a-z0-9]{1,4}[a-z](?![a-z])){3,}")
_GAP: Final = re.compile(r"[^a-z]+")
_LETTERS: Final = bytes(range(97, 123))
_NO_LETTERS: Final = bytes(code for code in range(256) if code not in _LETTERS)
_SMALL_CAPITALS: Final = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
_INVISIBLE: Final = "\x1f"
"""Stands for invisible characters: nothing inside a word, or a space between words."""


def simplify(text: str) -> str:
    """Return a text in lower case without entities, marks and letters that look like ASCII letters."""
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(html.unescape(text))
    if ("%" in text or "\\u" in text) and _ESCAPED.search(text):
        text = _ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
    if not text.isascii():
        text = _ODD.sub(_to_ascii, unicodedata.normalize("NFKD", text))
    return text.lower()


def readings(text: str) -> Iterator[str]:
    """Yield the readings of a plain text: as it is, and without what may stand between letters or words."""
    yield text
    if "_" in text:
        text = text.replace("_", " ")
        yield text
    if _INVISIBLE in text or ("<" in text and _TAG.search(text)):
        yield _TAG.sub(" ", text).replace(_INVISIBLE, " ")
        text = _TAG.sub("", text).replace(_INVISIBLE, "")
        yield text
    joined = _INSIDE.sub("", text)
    if joined != text:
        yield joined
    spelled = _SPELLED.sub(_join_spelled, text)
    if spelled != text:
        yield spelled


def letters(text: str) -> bytes:
    """Return only the letters of a plain text, without its tags."""
    untagged = _TAG.sub("", text) if "<" in text else text
    return untagged.encode("ascii", "ignore").translate(None, _NO_LETTERS)


def _to_ascii(match: re.Match[str]) -> str:
    return "".join(map(_letter, match[0]))


@lru_cache(4_096)
def _letter(character: str) -> str:
    """Return the ASCII letter that a character looks like, or what stands for it."""
    code = ord(character)
    if 0xE0020 <= code < 0xE007F:
        return chr(code - 0xE0000)
    lookalike = LOOKALIKES.get(code) or _SMALL_CAPITALS.get(character)
    if lookalike is not None:
        return lookalike
    category = unicodedata.category(character)
    if category in {"Mn", "Me"}:
        return ""
    if category == "Cf":
        return _INVISIBLE
    return " " if category[0] in "ZPSC" else "\x1e"


def _join_spelled(match: re.Match[str]) -> str:
    """Return letters that are spelled one by one as words: the shortest gap joins, longer ones are spaces."""
    gaps = _GAP.findall(match[0])
    shortest = min(map(len, gaps))
    return _GAP.sub(lambda gap: "" if len(gap[0]) == shortest else " ", match[0])
