"""Dates, versions, addresses, code, quoted terms and numbers in a text, by pattern."""

import re
from collections.abc import Iterator
from typing import Final

from conspectus.deferred import dataclass
from conspectus.text.late_patterns import re_pattern

_MONTH: Final = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
)
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th)"
_YEAR: Final = r"(?:1\d|20)\d\d(?![\w%]|[.,]\d)"
_DATE: Final = re_pattern(
    rf"""
    \d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?+(?:\.\d{{1,9}})?+(?:Z|[+-]\d\d:?+\d\d)?+)?+(?!\w)
    |\d{{1,2}}[/.]\d{{1,2}}[/.](?:\d{{4}}|\d\d)(?![\w/.]*\w)
    |(?:{_ORDINAL}|\d{{1,2}})(?:[ ]of)?+[ ]{_MONTH}\b\.?+(?:[ ]?,?[ ]{_YEAR})?+
    |{_MONTH}\b\.?+[ ](?:{_ORDINAL}|\d{{1,2}})\b(?![:.]\d)(?:[ ]?,?[ ]{_YEAR})?+
    |{_MONTH}\b\.?+(?:[ ]of|[ ]?,)?+[ ]{_YEAR}
    |(?:[Tt]he[ ](?=\d{{3}}0s))?+(?:mid-|(?:early|mid|late)[ ](?=\d\d?[a-z]))?+
        (?:\d{{3}}0s\b|{_ORDINAL}[ ]?+-?+[ ]?+century\b)
    |{_YEAR}(?![ ]?+(?:%|percent\b))
    |\d{{1,2}}:\d\d(?::\d\d)?+(?:[ ]?+[ap]\.?m\b\.?+)?+(?![\w:])
    |\d{{1,2}}[ ]?+[ap]\.?m\b
    """,
    re.VERBOSE,
)
_COUNT: Final = r"\d{1,20}+(?:[.,]\d{1,20}+){0,8}+"
_SPELT: Final = (
    "(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    "|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)"
)
_UNIT: Final = (
    "(?:km|cm|mm|m|miles?|kilomet(?:er|re)s?|met(?:er|re)s?|feet|foot|ft|inch(?:es)?|yards?|acres?|hectares?"
    "|ha|kg|mg|g|tons?|tonnes?|pounds?|lbs?|oz|lit(?:er|re)s?|ml|kWh?|MWh?|GW|kHz|MHz|GHz|Hz|KB|MB|GB|TB|kB"
    "|ms|s|minutes?|seconds?|hours?|days?|weeks?|months?|years?|tokens?|°C|°F|dollars?|euros?|cents|USD|EUR"
    "|GBP|million|billion|trillion|percent|copies)"
)
_AMOUNT: Final = re_pattern(
    rf"""
    (?:US|A|C|HK)?+[$€£¥₹][ ]?+{_COUNT}(?:[ ]?+(?:million|billion|trillion|thousand|[kKmMbB]n?+)\b)?+
    |{_COUNT}[ ]?+%
    |(?:{_COUNT}|{_SPELT})(?:[ ]?+[\xa0-]?+[ ]{{0,3}})
        (?:square[ ]|cubic[ ])?+{_UNIT}\b(?:[ ](?:dollars|euros)\b)?+
    """,
    re.VERBOSE,
)
_STAGE: Final = r"(?:[-.+]?+(?:alpha|beta|dev|post|rc|a|b)\.?+\d{0,6})?+"
_VERSION: Final = re_pattern(
    rf"v?+\d{{1,6}}(?:\.\d{{1,6}}){{2,5}}{_STAGE}(?!\w|\.\d)|v\d{{1,6}}(?:\.\d{{1,6}}){{0,5}}{_STAGE}(?!\w)"
)
_SHORT_VERSION: Final = re_pattern(rf"\d{{1,4}}\.\d{{1,6}}(?![\w%]|\.\d|[ ]?+(?:%|{_UNIT}\b))")
_VERSIONED: Final = re_pattern(r"(?:[A-Z][\w+#]{0,30}|[Vv]ersion|[Rr]elease) \Z")
_NETWORK: Final = re_pattern(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?+(?!\w|\.\d)")
_URL: Final = re_pattern(r"(?:(?:https?|ftp|file|ssh|git|wss?|s3)://|www\.)[^\s<>\"'`(){}\[\]]{1,2000}+")
_MAIL: Final = re_pattern(r"(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,6}+")
_HANDLE: Final = re_pattern(r"(?<![\w@])@([A-Za-z][\w-]{1,38}+)(?![\w@])")
_PATH: Final = re_pattern(
    r"(?<![\w/.:~])(?:(?:~|\.\.?)(?:/[\w.@+-]{1,120}+){1,40}+|(?:[\w.-]{1,80}+)?+(?:/[\w.@+-]{1,120}+){2,40}+)/?+"
    r"|[A-Z]:(?:\\[\w.@+-]{1,120}+){1,40}+"
)
_DOMAIN: Final = re_pattern(
    r"(?:[A-Za-z0-9][\w-]{0,62}+\.){1,5}(?:com|org|net|edu|gov|io|dev|ai|app|co|uk|de|fr|eu|info)\b"
    r"(?:/[^\s<>\"'`(){}\[\]]{0,2000}+)?+(?![\w(]|\.\w)"
)
_FILE: Final = re_pattern(
    r"(?:[\w.-]{1,80}+/)?+[\w-]{1,80}+(?:\.[\w-]{1,30}){0,2}?\.(?:py|md|txt|jsonl?|ya?ml|toml|jsx?|tsx?|csv|tsv|html?|css|pdf|docx?|xlsx?"
    r"|pptx?|png|jpe?g|gif|svg|sh|cfg|ini|sql|java|cc?|cpp|hpp|h|rs|go|rb|php|xml|zip|tar|gz|log|lock|ipynb"
    r"|rst|exe|dll|so|mp[34])(?![\w(]|\.\w)"
)
_NAME: Final = r"[A-Za-z_]\w{0,80}+"
_CODE: Final = re_pattern(
    rf"""
    {_NAME}(?:(?:\.|::){_NAME}){{0,8}}+\(\)
    |[A-Za-z_]\w{{1,40}}+(?:(?:\.|::)[A-Za-z_]\w{{1,80}}+){{1,8}}+(?![\w(.]\w|::)
    |(?=\w{{0,80}}[A-Za-z0-9]_[A-Za-z0-9]|__\w)\w{{3,120}}+(?!\w)
    |[a-z]{{2,40}}+(?:[A-Z][a-z0-9]{{0,40}}+){{1,8}}+(?!\w)
    |--[a-z]\w{{0,40}}+(?:-\w{{1,40}}+){{0,6}}+
    """,
    re.VERBOSE,
)
_FENCED: Final = re_pattern(r"(?<!`)`([^`\n]{1,100}+)`(?!`)")
_UNBROKEN: Final = re_pattern(r"\S++")
_INSIDE: Final = re_pattern(r"[\w@~$€£¥₹/.-]")
_LATER: Final = re_pattern(r"[^\w\s]++(?=[\w@$€£¥₹])")
_QUOTED: Final = re_pattern(
    r"""(?<!\w)["\u201c] ?+([^\s"\u201c\u201d][^"\u201c\u201d\n]{0,78}+)["\u201d](?!\w)"""
    r"""|\u2018([^\s\u2018\u2019][^\u2018\u2019\n]{0,60}+)\u2019(?!\w)"""
)
_PLAIN_NUMBER: Final = re_pattern(
    rf"(?<![\w.,$€£/:-]){_COUNT}(?![\w%]|[-/:]\d)|(?<![\w-]){_SPELT}(?![\w-])", re.IGNORECASE
)
_STARTERS: Final = frozenset(
    f"{_MONTH[3:-1].replace('Sept?', 'Sep|Sept')}|The|the|early|mid|late|{_SPELT[3:-1]}".split("|")
)
_AROUND: Final = ".,;:!?\"'()[]\u201c\u201d\u2018\u2019\u2026"
_DIGIT: Final = re_pattern(r"[\d$€£¥₹]")
_MARK: Final = re_pattern(r"[_@/\\]|\w(?:[.:](?=[\w:])|\(\))|(?<=[a-z])[A-Z]|--\w")
_CLOSING: Final = ".,;:!?*_"
_MAX_WORD_LENGTH: Final = 2_000
_MAX_TRIES: Final = 8
_MAX_QUOTED: Final = 8
_Forms = tuple[tuple[str, re.Pattern[str]], ...]
_SPELT_OUT: Final[_Forms] = (("date", _DATE), ("number", _AMOUNT))
_COUNTED: Final[_Forms] = (("address", _NETWORK), ("version", _VERSION), *_SPELT_OUT)
_MARKED: Final[_Forms] = (
    ("address", _URL), ("address", _MAIL), ("file", _FILE), ("file", _PATH), ("address", _DOMAIN),
    ("code", _CODE),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a text with an assumed type and its confidence, 0 to 1."""

    start: int
    end: int
    type: str
    score: float


def forms(text: str) -> Iterator[Span]:
    """Find dates, versions, addresses, files, code and amounts by pattern, in order."""
    done = 0
    for word in _UNBROKEN.finditer(text):
        choice = _choose_forms(word[0])
        start, end = word.span()
        if choice and end > done:
            for span in _in_word(text, max(start, done), min(end, start + _MAX_WORD_LENGTH), choice):
                done = span.end
                yield span


def _choose_forms(word: str) -> _Forms:
    """Select the patterns to try on a word by the kinds of characters in it."""
    core = word.strip(_AROUND)
    if core.isalpha() and (core[1:].islower() or core.isupper()):
        return _SPELT_OUT if core in _STARTERS else ()
    counted = _COUNTED if _DIGIT.search(core, 0, _MAX_WORD_LENGTH) else _SPELT_OUT if "-" in core else ()
    if _MARK.search(word, 0, _MAX_WORD_LENGTH):
        return _MARKED + counted
    return counted


def _in_word(text: str, start: int, end: int, choice: _Forms) -> Iterator[Span]:
    """Try the patterns at the start of a word and after each mark in it."""
    first = _INSIDE.search(text, start, end)
    at = end if first is None else first.start()
    for _ in range(_MAX_TRIES):
        if at >= end:
            return
        span = _form_at(text, at, choice)
        if span is not None:
            yield span
        later = _LATER.search(text, at if span is None else span.end, end)
        at = end if later is None else later.end()


def _form_at(text: str, at: int, choice: _Forms) -> Span | None:
    for kind, form in choice:
        match = form.match(text, at)
        if match is not None and not (kind == "code" and _is_abbreviation(match[0])):
            closing = _CLOSING if kind in ("address", "file") else ""
            return Span(at, at + len(match[0].rstrip(closing)), kind, 0.6 if kind == "number" else 0.9)
    handle = _HANDLE.match(text, at)
    if handle is not None:
        return Span(*handle.span(1), "person", 0.9)
    version = _SHORT_VERSION.match(text, at)
    if version is not None and _VERSIONED.search(text, max(0, at - 40), at):
        return Span(*version.span(), "version", 0.8)
    return None


def find_fenced(text: str) -> Iterator[Span]:
    """Find the text between single backticks."""
    if "`" in text:
        for match in _FENCED.finditer(text):
            if any(map(str.isalpha, match[1])):
                yield Span(*match.span(1), "code", 0.9)


def find_quoted(text: str) -> Iterator[Span]:
    """Find short quoted terms that are not speech. Capitalized terms are titles."""
    if not any(mark in text for mark in '"\u201c\u2018'):
        return
    for match in _QUOTED.finditer(text):
        term = (match[1] or match[2]).rstrip(" .")
        start = match.start(1 if match[1] else 2)
        is_term = (
            bool(term)
            and term.count(" ") < _MAX_QUOTED
            and term[-1] not in ",;:—-"
            and any(map(str.isalpha, term))
        )
        if is_term:
            yield Span(start, start + len(term), "title" if term[0].isupper() else "quoted", 0.7)


def numbers(text: str) -> Iterator[Span]:
    """Find plain numbers in digits or words."""
    for match in _PLAIN_NUMBER.finditer(text):
        yield Span(*match.span(), "number", 0.3)


def _is_abbreviation(code: str) -> bool:
    """Whether text with full stops is an abbreviation or two sentences rather than code."""
    parts = code.split(".")
    joined = len(parts) == 2 and parts[1][:1].isupper() and not parts[0][:1].isupper()
    return len(parts) > 1 and (joined or any(len(part) < 2 for part in parts))
