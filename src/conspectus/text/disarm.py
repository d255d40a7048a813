"""Texts that somebody else wrote, made safe to stand in a prompt; a backslash shows what was disarmed.

Harmless text stays as it is. What changes: characters that nobody sees; lines and tokens by which chat models
tell who speaks; our own citation marks and delimiters, in look-alikes too; images and links that carry
data.
"""

import unicodedata

import regex

from conspectus.text.marks import marks

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
_TAG = regex.compile(r"\s*/?\s*([\w\uff0d-]{1,20})|\s*[|\u01c0\u2223\u2502\uff5c]")
_NAMES = (
    RETRIEVED,
    PASSAGE,
    "user-message",
    "sys",
    "s",
    "bos",
    "eos",
    "start_of_turn",
    "end_of_turn",
    "im_start",
)
_LETTERS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0455\u0456\u0501\u051b\u0261\u03bf\u03b5\u03c1\u03b9\u03bd\u0433\u043c\u0442\u0432\u04bb",
    "aeopcysidqgoepivrmtvh",
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
    if not text.isascii():
        text = _SMUGGLED.sub("", _UNSEEN.sub("", text))
        text = _ANGLE.sub(lambda found: _angle(text, found), text)
    if _SPOKEN.search(text):
        text = _ROLE_LINE.sub(r"\1\\", text)
    if "#" in text:
        text = _ROLE_HEADING.sub(r"\1\\", text)
    text = _BRACKETED.sub(r"\1\\", text)
    return _without_marks(_CARRIER.sub(r"\\", text))


def without_delimiters(text: str) -> str:
    """A text with our own delimiters, and nothing else, disarmed: `&lt;` begins each of them."""
    return _OWN.sub("&lt;", text) if "<" in text else text


def _angle(text: str, found: regex.Match[str]) -> str:
    tag = _TAG.match(text, found.end())
    if tag is None:
        return found[0]
    name = unicodedata.normalize("NFKC", tag[1] or "").casefold().translate(_LETTERS)
    return found[0] + "\\" if tag[1] is None or name in _NAMES else found[0]


def _without_marks(text: str) -> str:
    pieces, end = [], 0
    for mark in marks(text):
        pieces += [text[end : mark.start + 1], "\\"]
        end = mark.start + 1
    return "".join([*pieces, text[end:]])
