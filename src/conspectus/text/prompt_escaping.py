"""Escape text that could act as a tag, a role or an instruction in a prompt."""

from itertools import pairwise

import regex

from conspectus.text.citation_marks import marks
from conspectus.text.late_patterns import regex_pattern
from conspectus.text.lookalikes import LOOKALIKES

RETRIEVED = "retrieved"
"""The element around all retrieved passages."""
FRAME = (f"<{RETRIEVED}>\n", f"\n</{RETRIEVED}>")
"""Its opening and closing tags."""
PASSAGE = "passage"
"""The element of each passage."""
USER_MESSAGE = "<user-message>"
"""The line before the user's message."""
_ALWAYS_UNSEEN = (
    "\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e00ff\U0001d173-\U0001d17a"
)
_JOINERS = "\u061c\u200c-\u200f\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = regex_pattern(rf"[{_ALWAYS_UNSEEN}]+")
_SMUGGLED = regex_pattern(rf"[{_JOINERS}]{{3,}}|(?<=[A-Za-z])[{_JOINERS}]+|[{_JOINERS}]+(?=[A-Za-z])")
_LINE = r"(?:\A|(?<=[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))"
_BLANK = r"[^\S\n\r]"
_DECORATION = r"(?:[^\S\n\r]|[\u115f\u1160\u2800\u3164\uffa0>*_`~|(\[{#+\u2022-])*"
_SPEAKER = r"(?:(?i:system|assistant|human|developer|chatbot|chatgpt)|U(?:ser|SER)|A(?:I|i)|B(?:ot|OT))"
_TITLE = r"(?i:instructions?|response|input|output|prompt|user|tool)"
_SAYS = rf"(?i:{_BLANK}?(?:message|prompt|instructions?|note|override|notice))?"
_COLON = r"[:\uff1a\ufe55\ua789\u2236]"
_SAYING = rf"{_SPEAKER}{_SAYS}[\])}}*_`|]*(?:{_COLON}|{_BLANK}{_COLON}(?:\s|\Z))"
_SPOKEN = regex_pattern(_SAYING)
_ROLE_LINE = regex_pattern(rf"{_LINE}({_DECORATION})(?={_SAYING})")
_ROLE_HEADING = regex_pattern(
    rf"^({_BLANK}*#+{_BLANK}*)(?=(?:{_SPEAKER}{_SAYS}|{_TITLE}){_BLANK}*{_COLON}?(?:{_BLANK}|#)*$)",
    regex.MULTILINE,
)
_BRACKETED = regex_pattern(
    r"([\[\uff3b])(?=\s*/?\s*(?:INST|SYS|SYSTEM|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS?|TOOL_RESULTS?"
    r"|TOOL_CONTENT|MODEL_SETTINGS|THINK|PREFIX|MIDDLE|SUFFIX)\s*[\]\uff3d]"
    r"|(?i:system|assistant|user)\s*[\]\uff3d]\s*\()"
)
_ANGLE = regex_pattern(r"[\u02c2\u1438\u2039\u2329\u276e\u27e8\u2a3c\u3008\ufe64\uff1c]")
_TAG = regex_pattern(r"\s*(?:/\s*)?([\w-]{1,20})|\s*[|\u01c0\u2223\u2502]")
_NAMES = frozenset(
    {RETRIEVED, PASSAGE, "user-message", "sys", "s", "bos", "eos", "im_start", "start_of_turn", "end_of_turn"}
)
_CARRIER = regex_pattern(
    r"(?<=!)(?=\[[^\]\n]{0,300}\]\s?\(\s*<?(?:data:|[^)\n]{0,2000}?[?&#={$\[<]))"
    r"|(?<!\\)(?=\[[^\]\n]{0,300}\]\s?\(\s*<?(?:javascript:|vbscript:|data:|[^()\s<>]{0,2000}?(?:\{|%7b|\$|\[|<)))",
    regex.IGNORECASE,
)
_OWN = regex_pattern(rf"<(?=\s*(?:/\s*)?(?:{RETRIEVED}|{PASSAGE}|user-message)(?![\w-]))", regex.IGNORECASE)


def disarm(text: str) -> str:
    """Escape a text so that it cannot act as markup or an instruction. It is idempotent.

    Angle brackets and ampersands are escaped by the code that writes XML.
    """
    if text.isascii():
        return _insert_backslashes(text, _escape_positions(text))
    seen = _SMUGGLED.sub("", _UNSEEN.sub("", text))
    read = seen.translate(LOOKALIKES)
    tags = (match.end() for match in _ANGLE.finditer(seen) if _is_tag(read, match.end()))
    return _insert_backslashes(
        seen, {*_escape_positions(read), *tags, *(mark.start + 1 for mark in marks(seen))}
    )


def escape_delimiters(text: str) -> str:
    """Escape only our own delimiters in a text, by `&lt;`."""
    return _OWN.sub("&lt;", text) if "<" in text else text


def _escape_positions(text: str) -> set[int]:
    """Return the positions at which backslashes are inserted."""
    positions = {mark.start + 1 for mark in marks(text)}
    patterns = [_BRACKETED, _CARRIER]
    if _SPOKEN.search(text):
        patterns.append(_ROLE_LINE)
    if "#" in text:
        patterns.append(_ROLE_HEADING)
    for pattern in patterns:
        positions |= {match.end() for match in pattern.finditer(text)}
    return positions


def _is_tag(text: str, start: int) -> bool:
    tag = _TAG.match(text, start)
    return tag is not None and (tag[1] is None or tag[1].casefold() in _NAMES)


def _insert_backslashes(text: str, positions: set[int]) -> str:
    if not positions:
        return text
    borders = [0, *sorted(positions), len(text)]
    return "\\".join(text[start:end] for start, end in pairwise(borders))
