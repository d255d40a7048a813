"""Passages as data in a prompt: escape text that could act as a tag, a role or an instruction."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import regex

from conspectus.deferred import dataclass
from conspectus.text.late_patterns import regex_pattern

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

_LOOKALIKES = (
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
    """Return the letters that look like ASCII letters, each with the letter that it looks like."""
    table = {ord(odd): plain for odds, plains in _LOOKALIKES for odd, plain in zip(odds, plains, strict=True)}
    for code in (code for styled in _STYLED for code in styled):
        plain = unicodedata.normalize("NFKC", chr(code))
        if len(plain) == 1 and plain.isascii():
            table[code] = plain
    return table


LOOKALIKES = _alphabets()

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
        return _backslashed(text, _places(text))
    seen = _SMUGGLED.sub("", _UNSEEN.sub("", text))
    read = seen.translate(LOOKALIKES)
    tags = (found.end() for found in _ANGLE.finditer(seen) if _is_tag(read, found.end()))
    return _backslashed(seen, {*_places(read), *tags, *(mark.start + 1 for mark in marks(seen))})


def without_delimiters(text: str) -> str:
    """Escape only our own delimiters in a text, by `&lt;`."""
    return _OWN.sub("&lt;", text) if "<" in text else text


def _places(text: str) -> set[int]:
    """Return the positions at which backslashes are inserted."""
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


_GIVEN = regex_pattern(
    rf'^<{PASSAGE} number="(\d+)"[^>]*>\n(.*?)\n</{PASSAGE}>$', regex.DOTALL | regex.MULTILINE
)


def escape(text: str) -> str:
    """Escape a text for XML. The module of the standard library for this loads an HTTP client."""
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")


def quoteattr(text: str) -> str:
    """Escape and quote a value of an XML attribute."""
    value = escape(text).replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")
    if '"' in value and "'" not in value:
        return f"'{value}'"
    quoted = value.replace('"', "&quot;")
    return f'"{quoted}"'


def escaped(text: str) -> str:
    """Disarm and escape a text: it can neither close nor open a tag, nor imitate a role."""
    return escape(disarm(text))


def element(fields: Mapping[str, str | int], content: str) -> str:
    """Return one passage element; `content` is escaped already, the fields are escaped here."""
    attributes = "".join(f" {name}={quoteattr(disarm(str(value)))}" for name, value in fields.items())
    return f"<{PASSAGE}{attributes}>\n{content}\n</{PASSAGE}>"


def framed(elements: Iterable[str]) -> str:
    """Join passages and enclose them in the delimiters; empty without passages."""
    whole = "\n".join(elements)
    return whole.join(FRAME) if whole else ""


def passages(rendered: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the disarmed text of each passage of a rendering, in order."""
    for found in _GIVEN.finditer(rendered):
        yield int(found[1]), found[2].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


_OPEN, _CLOSE = r"\[\uFF3B\u3010\u3014\u2772\u27E6", r"\]\uFF3D\u3011\u3015\u2773\u27E7"
_NUMBER = r"\p{Nd}{1,3}"
_TO = r"[-\u2010-\u2015~\uFF0D\uFF5E]"
_LISTED = rf"{_NUMBER}(?:\s?(?:[,;\uFF0C\u3001]|{_TO})\s?{_NUMBER})*"
_MARK = regex_pattern(rf"[{_OPEN}]\s?({_LISTED})\s?(?:\u2020[^{_CLOSE}\n]{{0,40}})?[{_CLOSE}]")
_ANY = regex_pattern(rf"[{_OPEN}]")
_SPAN = regex_pattern(rf"({_NUMBER})(?:\s?{_TO}\s?({_NUMBER}))?")
_CODE_BEFORE = regex_pattern(r"""(?:[={]\s?|["']\s?:\s?|\w\(|[\[\]\\!^`])\Z""")
_NAME_BEFORE = regex_pattern(r"(?:[\w$]*[\d_$][\w$]*|(?<![\w$])[A-Za-z]{1,2})\Z")
_GLUED = regex_pattern(r"[\w$)\"']\Z")
_CLAUSE_END = regex_pattern(rf"\Z|\s(?!\s*[-=<>*/+%&|])|[{_OPEN}]|[.,:!?\"'*](?!\w)|[^\x00-\x7F]")
_CODE_NEAR = regex_pattern(
    r"[=;{}_]|\w[.(]\w|\(\)|[\w)]\[(?![1-9])|^\s*(?:return|yield|assert|print|del|raise)\b"
)
_NOT_AFTER = regex_pattern(r"[A-Za-z0-9_(]")
_LOOK_BACK = 40


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark at characters [start, end) with inclusive spans of numbers."""

    start: int
    end: int
    spans: tuple[tuple[int, int], ...]


def marks(text: str) -> Iterator[Mark]:
    """Yield every citation mark, in order.

    Not marks are: code (`a[1]`, `x = [1, 2]`, `f([1])`), links (`[1](…)`), definitions (`[1]: …` at the start
    of a line), intervals that begin at 0, numbers of more than three digits, and reversed ranges. A mark
    directly after a word counts if a clause may end after it.
    """
    end, counted = -1, False
    if not _ANY.search(text):
        return
    for found in _MARK.finditer(text):
        chained = found.start() == end
        counted = (counted if chained else _follows_prose(text, found)) and _stands_free(text, found)
        end = found.end()
        spans = tuple(_spans(found[1])) if counted else ()
        if spans and all(1 <= first <= last for first, last in spans):
            yield Mark(found.start(), end, spans)


def _follows_prose(text: str, found: regex.Match[str]) -> bool:
    before = text[max(found.start() - _LOOK_BACK, 0) : found.start()]
    if _CODE_BEFORE.search(before) or _NAME_BEFORE.search(before):
        return False
    if not _GLUED.search(before):
        return True
    line = before[before.rfind("\n") + 1 :]
    return _CLAUSE_END.match(text, found.end()) is not None and not _CODE_NEAR.search(line)


def _stands_free(text: str, found: regex.Match[str]) -> bool:
    if _NOT_AFTER.match(text, found.end()):
        return False
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
    return line != ".." and not (text.startswith(":", found.end()) and not line)


def _spans(listed: str) -> Iterator[tuple[int, int]]:
    for span in _SPAN.finditer(listed):
        yield int(span[1]), int(span[2] or span[1])
