"""Texts that somebody else wrote, made safe to stand in a prompt; a backslash shows what was disarmed.

Harmless text stays as it is. What changes: characters that nobody sees; lines and tokens by which chat models
tell who speaks; our own citation marks and delimiters, in look-alikes too; images and links that carry
data.
"""

import unicodedata
from itertools import pairwise

import regex

from conspectus.text.citation_marks import marks

RETRIEVED = "retrieved"
"""The element around all that was retrieved."""
PASSAGE = "passage"
"""The element around each passage in it."""
USER_MESSAGE = "<user-message>"
"""The line before a user's own words."""

_ALWAYS_UNSEEN = (
    "\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e00ff\U0001d173-\U0001d17a"
)
_JOINERS = "\u061c\u200c-\u200f\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = regex.compile(rf"[{_ALWAYS_UNSEEN}]+")
_SMUGGLED = regex.compile(rf"[{_JOINERS}]{{3,}}|(?<=[A-Za-z])[{_JOINERS}]+|[{_JOINERS}]+(?=[A-Za-z])")

_ALIKE = (
    ("\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u051b\u043e\u0440\u0455\u0443\u0445", "acdehijqopsyx"),
    (
        "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425",
        "ABCEHIJKMOPSTX",
    ),
    (
        "\u03b1\u03b9\u03bd\u03bf\u03c1\u03c5\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d",
        "aivopuABEHIKMN",
    ),
    ("\u039f\u03a1\u03a4\u03a5\u03a7\u0396\u0131\u0261", "OPTYXZig"),
)
_STYLED = (range(0xFF01, 0xFF5F), range(0x1D400, 0x1D800), range(0x24B6, 0x24EA))


def _alphabets() -> dict[int, str]:
    """Letters that look like plain ones, and plain ones in other styles, each with the one it is read as."""
    table = {ord(odd): plain for odds, plains in _ALIKE for odd, plain in zip(odds, plains, strict=True)}
    for code in (code for styled in _STYLED for code in styled):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table


_READ_AS = _alphabets()

_LINE = r"(?:\A|(?<=[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))"
_BLANK = r"[^\S\n\r]"
_DECORATION = r"(?:[^\S\n\r]|[\u115f\u1160\u2800\u3164\uffa0>*_`~|(\[{#+\u2022-])*"
_SPEAKER = r"(?:(?i:system|assistant|human|developer|chatbot|chatgpt)|U(?:ser|SER)|A(?:I|i)|B(?:ot|OT))"
_TITLE = r"(?i:instructions?|response|input|output|prompt|user|tool)"
_SAYS = rf"(?i:{_BLANK}?(?:message|prompt|instructions?|note|override|notice))?"
_COLON = r"[:\uff1a\ufe55\ua789\u2236]"
_SAYING = rf"{_SPEAKER}{_SAYS}[\])}}*_`|]*(?:{_COLON}|{_BLANK}{_COLON}(?:\s|\Z))"
_SPOKEN = regex.compile(_SAYING)
_ROLE_LINE = regex.compile(rf"{_LINE}({_DECORATION})(?={_SAYING})")
_ROLE_HEADING = regex.compile(
    rf"^({_BLANK}*#+{_BLANK}*)(?=(?:{_SPEAKER}{_SAYS}|{_TITLE}){_BLANK}*{_COLON}?(?:{_BLANK}|#)*$)",
    regex.MULTILINE,
)

_BRACKETED = regex.compile(
    r"([\[\uff3b])(?=\s*/?\s*(?:INST|SYS|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS?|TOOL_RESULTS?"
    r"|TOOL_CONTENT|MODEL_SETTINGS|THINK|PREFIX|MIDDLE|SUFFIX)\s*[\]\uff3d]"
    r"|(?i:system|assistant|user)\s*[\]\uff3d]\s*\()"
)
_ANGLE = regex.compile(r"[\u02c2\u1438\u2039\u2329\u276e\u27e8\u2a3c\u3008\ufe64\uff1c]")
_TAG = regex.compile(r"\s*(?:/\s*)?([\w-]{1,20})|\s*[|\u01c0\u2223\u2502]")
_NAMES = frozenset(
    {RETRIEVED, PASSAGE, "user-message", "sys", "s", "bos", "eos", "im_start", "start_of_turn", "end_of_turn"}
)

_CARRIER = regex.compile(
    r"(?<=!)(?=\[[^\]\n]{0,300}\]\s?\(\s*<?(?:data:|[^)\n]{0,2000}?[?&#={$\[<]))"
    r"|(?<!\\)(?=\[[^\]\n]{0,300}\]\s?\(\s*<?(?:javascript:|vbscript:|data:|[^()\s<>]{0,2000}?(?:\{|%7b|\$|\[|<)))",
    regex.IGNORECASE,
)
_OWN = regex.compile(rf"<(?=\s*(?:/\s*)?(?:{RETRIEVED}|{PASSAGE}|user-message)(?![\w-]))", regex.IGNORECASE)


def disarm(text: str) -> str:
    """A text that cannot pass for anything but a text. Doing it twice changes nothing more.

    Angle brackets and ampersands are left to whoever puts it into XML.
    """
    if text.isascii():
        return _backslashed(text, _places(text))
    seen = _SMUGGLED.sub("", _UNSEEN.sub("", text))
    read = seen.translate(_READ_AS)
    tags = (found.end() for found in _ANGLE.finditer(seen) if _is_tag(read, found.end()))
    return _backslashed(seen, {*_places(read), *tags, *(mark.start + 1 for mark in marks(seen))})


def without_delimiters(text: str) -> str:
    """A text with our own delimiters, and nothing else, disarmed: `&lt;` begins each of them."""
    return _OWN.sub("&lt;", text) if "<" in text else text


def _places(text: str) -> set[int]:
    """Where backslashes are to stand."""
    found = {mark.start + 1 for mark in marks(text)}
    if _SPOKEN.search(text):
        found |= {each.end() for each in _ROLE_LINE.finditer(text)}
    if "#" in text:
        found |= {each.end() for each in _ROLE_HEADING.finditer(text)}
    return (
        found
        | {each.end() for each in _BRACKETED.finditer(text)}
        | {each.end() for each in _CARRIER.finditer(text)}
    )


def _is_tag(text: str, start: int) -> bool:
    tag = _TAG.match(text, start)
    return tag is not None and (tag[1] is None or tag[1].casefold() in _NAMES)


def _backslashed(text: str, places: set[int]) -> str:
    if not places:
        return text
    borders = [0, *sorted(places), len(text)]
    return "\\".join(text[start:end] for start, end in pairwise(borders))
