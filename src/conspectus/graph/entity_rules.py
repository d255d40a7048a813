"""Entity extraction by rules: patterns, capitals and word lists, without a model."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from conspectus.deferred import dataclass
from conspectus.graph.gazetteer import (
    EVENTS,
    FUNCTION_WORDS,
    NOBLE,
    ORGANISATIONS,
    PLACES,
    TITLES,
    Gazetteer,
    common_words,
)
from conspectus.graph.name_keys import key_of
from conspectus.model.graph import ENTITY
from conspectus.model.records import Mention
from conspectus.text.late_patterns import re_pattern, regex_pattern

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
        choice = _choice(word[0])
        start, end = word.span()
        if choice and end > done:
            for span in _in_word(text, max(start, done), min(end, start + _MAX_WORD_LENGTH), choice):
                done = span.end
                yield span


def _choice(word: str) -> _Forms:
    """Select the patterns to try on a word by the kinds of characters in it."""
    core = word.strip(_AROUND)
    if core.isalpha() and (core[1:].islower() or core.isupper()):
        return _SPELT_OUT if core in _STARTERS else ()
    counted = _COUNTED if _DIGIT.search(core, 0, _MAX_WORD_LENGTH) else _SPELT_OUT if "-" in core else ()
    return _MARKED + counted if _MARK.search(word, 0, _MAX_WORD_LENGTH) else counted


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
        if match is not None and not (kind == "code" and _abbreviated(match[0])):
            closing = _CLOSING if kind in ("address", "file") else ""
            return Span(at, at + len(match[0].rstrip(closing)), kind, 0.6 if kind == "number" else 0.9)
    handle = _HANDLE.match(text, at)
    if handle is not None:
        return Span(*handle.span(1), "person", 0.9)
    version = _SHORT_VERSION.match(text, at)
    if version is not None and _VERSIONED.search(text, max(0, at - 40), at):
        return Span(*version.span(), "version", 0.8)
    return None


def fenced(text: str) -> Iterator[Span]:
    """Find the text between single backticks."""
    if "`" in text:
        for match in _FENCED.finditer(text):
            if any(map(str.isalpha, match[1])):
                yield Span(*match.span(1), "code", 0.9)


def quoted(text: str) -> Iterator[Span]:
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


def _abbreviated(code: str) -> bool:
    """Whether text with full stops is an abbreviation or two sentences rather than code."""
    parts = code.split(".")
    joined = len(parts) == 2 and parts[1][:1].isupper() and not parts[0][:1].isupper()
    return len(parts) > 1 and (joined or any(len(part) < 2 for part in parts))


_SHORT: Final = (
    "Mr|Mrs|Ms|Dr|Prof|St|Mt|Ft|Gen|Col|Lt|Sgt|Capt|Rev|Hon|Sen|Rep|Gov|Pres|Jr|Sr|Inc|Ltd|Co|Corp|Bros"
)
_WORD: Final = (
    rf"(?:(?:{_SHORT})\.|(?:\p{{Lu}}\.){{1,6}}+"
    r"|(?:(?:al|el|ad|an|as|ash|d|l|O)[-'\u2019]|[ei](?=\p{Lu}\p{Ll}))?"
    r"\p{Lu}[\p{L}\p{M}\p{N}]*+(?:[-'\u2019&/\u00b7][\p{L}\p{M}\p{N}]++)*+)"
)
_JOINS: Final = (
    "of|de|del|della|di|da|do|dos|du|des|la|le|les|van|von|der|den|zu|al|el|bin|ibn|y|e|for|and|&|the|in|on"
)
_RUN: Final = regex_pattern(
    r"(?<![\p{L}\p{N}_@#/.\\])(?:(?:(?:1\d|20)\d\d|\d{1,3}(?:st|nd|rd|th))[ ](?=\p{Lu}\p{Ll}))?"
    rf"{_WORD}(?:[ \t\xa0\n]{{1,2}}+"
    rf"(?:(?:(?:{_JOINS})[ \xa0\n]){{0,2}}+{_WORD}|\d{{1,2}}(?![\w.,:%/-]\w|\w|[ ]?%)))*+"
)
_PIECE: Final = regex_pattern(r"\S++")
_MIDDLE: Final = regex_pattern(r"(?<=[\p{Ll},]['\u2019\"]?[ ])\p{Lu}[\p{L}\p{N}]++")
_LOWER: Final = regex_pattern(r"(?<![\p{L}\p{N}_])\p{Ll}++(?![\p{L}\p{N}_])")
_BEFORE: Final = " \t\xa0\"'\u201c\u2018([{*_#>"
_ENDS_SENTENCE: Final = ".!?:\u2026\u2022|"
_FEW: Final = frozenset(("and", "for", "the", "in", "on", "&", "y", "e", "la", "le", "el", "al"))
_NAMED_AFTER: Final = ORGANISATIONS | PLACES | EVENTS | {"day", "disease"}
_CLOSED: Final = frozenset(("inc", "ltd", "corp", "jr", "sr", "bros"))
_DATED: Final = frozenset(word.removesuffix("s") for word in EVENTS)
_AFTER_OF: Final = frozenset(("of", "for", "de", "&"))
_MAX_WORDS: Final = 8
_SHOUTED: Final = 6
_WRAPPED: Final = 45
_ACRONYMS: Final = frozenset(("US", "WHO", "IT", "UN", "EU", "UK", "AI"))


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    word: str

    @property
    def lower(self) -> str:
        return self.word.rstrip(".").lower().replace("\u2019", "'")

    @property
    def functional(self) -> bool:
        """Whether the word is a function word, or a contraction of one such as You've."""
        return self.lower in FUNCTION_WORDS or self.lower.partition("'")[0] in FUNCTION_WORDS

    @property
    def joins(self) -> bool:
        return (
            not self.word[:1].isupper()
            and not self.word[:1].isdigit()
            and len(self.word) < 6
            and self.word[1:2].islower()
        ) or self.word in ("&", "y", "e")


class Capitals:
    """Finds capitalized names. At the start of a sentence, other uses of the word decide."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._common = common_words()
        self._middle: Counter[str] | None = None
        self._lower: Counter[str] = Counter()

    def spans(self) -> Iterator[Span]:
        """Return the spans of names in order, without overlaps."""
        for run in _RUN.finditer(self._text):
            for pieces in self._parts(self._pieces(run.start(), run.end())):
                trimmed = self._trimmed(pieces)
                if trimmed and len(trimmed) <= _MAX_WORDS:
                    titled = any(piece.lower in TITLES for piece in pieces if piece.start < trimmed[0].start)
                    yield self._span(trimmed, titled)

    def _pieces(self, start: int, end: int) -> list[_Piece]:
        return [_Piece(*piece.span(), piece[0]) for piece in _PIECE.finditer(self._text, start, end)]

    def _parts(self, pieces: list[_Piece]) -> Iterator[list[_Piece]]:
        """Split words at possessives, weak joining words, line ends and common words of headlines."""
        shouted = len(pieces) > _SHOUTED or self._all_shouted(pieces)
        part: list[_Piece] = []
        for piece in pieces:
            if shouted and not piece.joins and piece.lower in self._common:
                yield part
                part = []
                continue
            if part and self._divides(part, piece):
                yield part
                part = []
            part.append(piece)
        yield part

    def _all_shouted(self, pieces: Sequence[_Piece]) -> bool:
        """Whether all words are in capitals, and too many or too common to be a name."""
        if len(pieces) < 2 or not all(piece.word.isupper() for piece in pieces):
            return False
        return len(pieces) > _SHOUTED // 2 or all(piece.lower in self._common for piece in pieces)

    def _divides(self, part: list[_Piece], piece: _Piece) -> bool:
        last = part[-1]
        if last.word[-1] == "." and (piece.lower in FUNCTION_WORDS or last.lower in _CLOSED):
            return True
        if last.word.isdigit() and len(part) > 1:
            return True
        between = self._text[last.end : piece.start]
        if "\n" in between and not self._wrapped(last.end):
            return True
        if last.word.endswith(("'s", "\u2019s", "s'", "s\u2019")):
            return piece.lower not in _NAMED_AFTER
        if piece.word in _FEW and not last.joins:
            return not _joined(part, piece.word)
        return False

    def _wrapped(self, end: int) -> bool:
        """Whether the line that ends there is long enough to be a wrapped line."""
        return (
            end - (self._text.rfind("\n", max(0, end - _WRAPPED), end) + 1 or max(0, end - _WRAPPED))
            >= _WRAPPED
        )

    def _trimmed(self, pieces: list[_Piece]) -> list[_Piece]:
        """Remove joining words at both ends and words that only start the sentence."""
        first, last = 0, len(pieces)
        if last > 1 and pieces[0].word.isdigit() and pieces[-1].lower.removesuffix("s") not in _DATED:
            first = 1
        while first < last and self._leading(pieces[first:last]):
            first += 1
        while last > first and pieces[last - 1].joins:
            last -= 1
        trimmed = pieces[first:last]
        return [] if len(trimmed) == 1 and self._no_name(trimmed[0]) else trimmed

    def _leading(self, pieces: Sequence[_Piece]) -> bool:
        """Whether the first word is not part of the name that follows."""
        first = pieces[0]
        if first.joins:
            return True
        if len(pieces) > 1 and first.lower in TITLES:
            return pieces[1].lower not in ("of", "and") or first.lower not in NOBLE
        if len(pieces) == 1 or first.word in _ACRONYMS or not self._begins(first.start):
            return False
        return first.functional or (pieces[1].joins and first.lower in self._common - ORGANISATIONS - PLACES)

    def _begins(self, start: int) -> bool:
        """Whether a sentence, line or quotation starts at this position."""
        at = start - 1
        text = self._text
        lowest = max(-1, start - 8)
        while at > lowest and text[at] in _BEFORE:
            at -= 1
        if at < 0:
            return True
        return text[at] in _ENDS_SENTENCE or (text[at] == "\n" and not self._wrapped(at))

    def _no_name(self, piece: _Piece) -> bool:
        """Whether a single capitalized word is not a name, judged by its other uses in the text."""
        word, lower = piece.word, piece.lower
        if piece.functional or lower in TITLES:
            return word not in _ACRONYMS
        if len(word) < 2 or word.isdigit():
            return True
        if word.isupper() and (len(word) < _SHOUTED or lower in self._common):
            return lower in self._common and len(word) > 3
        if not self._begins(piece.start):
            return False
        return self._usually_lower(word, lower)

    def _usually_lower(self, word: str, lower: str) -> bool:
        if self._middle is None:
            self._middle = Counter(_MIDDLE.findall(self._text))
            self._lower = Counter(_LOWER.findall(self._text))
        capital, small = self._middle[word], self._lower[lower]
        if capital or small:
            return small >= capital
        return any(form in self._common for form in _base_forms(lower))

    def _span(self, pieces: Sequence[_Piece], titled: bool) -> Span:
        start, end = pieces[0].start, pieces[-1].end
        for ending in ("'s", "\u2019s", "'", "\u2019", "/", "-"):
            if self._text.endswith(ending, start, end) and end - start > len(ending) + 1:
                end -= len(ending)
                break
        kind, score = ("person", 0.9) if titled else _kind(pieces)
        return Span(start, end, kind, score)


def _base_forms(word: str) -> tuple[str, ...]:
    """Return the possible base forms of an English word, with the word itself first."""
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            base = word.removesuffix(ending)
            return word, base, f"{base}e", base[:-1]
    return word, word.rstrip("s")


def _joined(part: Sequence[_Piece], joint: str) -> bool:
    """Whether a weak joining word is part of a name rather than between two names."""
    if joint in ("la", "le", "el", "al"):
        return True
    head = part[0].lower in ORGANISATIONS or part[-1].lower in ORGANISATIONS
    if joint == "for":
        return head
    if joint in ("and", "&"):
        return (joint == "&" and len(part) == 1) or (head and any(piece.word in _AFTER_OF for piece in part))
    return False


def _kind(pieces: Sequence[_Piece]) -> tuple[str, float]:
    """Guess the type of a name from its words, with a confidence."""
    first, last = pieces[0].lower, pieces[-1].lower.removesuffix("'s")
    head = first if len(pieces) > 1 and pieces[1].word in ("of", "for") else last
    if head in ORGANISATIONS and len(pieces) > 1:
        return "organisation", 0.8
    if (head in PLACES and len(pieces) > 1) or first in ("lake", "mount", "river", "cape", "mt", "fort"):
        return "place", 0.8
    return ENTITY, 0.7 if len(pieces) > 1 else 0.6


MAX_PHRASE_WORDS: Final = 5
"""Maximum number of words in a name that is looked up."""
_WORDS: Final = re_pattern(r"\S+")


class RuleExtractor:
    """Extracts entities without a model. The result for a text does not depend on other texts."""

    @property
    def name(self) -> str:
        """The name of the extractor in settings and reports."""
        return "rules"

    async def extract(self, texts: Sequence[str]) -> Sequence[Sequence[Mention]]:
        """Return the mentions in each text, in order and without overlaps."""
        return await asyncio.to_thread(self.extract_sync, texts)

    def extract_sync(self, texts: Sequence[str]) -> list[list[Mention]]:
        """Extract synchronously, otherwise like `extract`."""
        return [names_in(text) for text in texts]

    async def close(self) -> None:
        """Do nothing: the extractor holds no resources."""


def names_in(text: str, gazetteer: Gazetteer | None = None, *, with_numbers: bool = False) -> list[Mention]:
    """Return the mentions in a text, in order and without overlaps.

    Names of the gazetteer are found too and, `with_numbers`, plain numbers besides amounts with a unit.
    """
    exact = chain(fenced(text), forms(text))
    by_hand = _known_spans(text, gazetteer) if gazetteer is not None else ()
    capitals = Capitals(text).spans()
    rest = numbers(text) if with_numbers else ()
    spans = _without_overlaps(exact, quoted(text), by_hand, capitals, rest)
    return _named(text, spans)


def with_gazetteer(text: str, mentions: Iterable[Mention], gazetteer: Gazetteer) -> list[Mention]:
    """Add known names to extracted mentions. Of overlapping mentions, the longest is kept."""
    before = [Span(mention.start, mention.end, mention.type, mention.score) for mention in mentions]
    return _named(text, _without_overlaps(_known_spans(text, gazetteer), before))


def phrases(text: str, *, maximum: int = MAX_PHRASE_WORDS) -> list[str]:
    """Return the distinct keys of all phrases of up to `most` words that may be a name."""
    words = [word[0] for word in _WORDS.finditer(text)]
    keys: dict[str, None] = {}
    for first in range(len(words)):
        if words[first].lower() in FUNCTION_WORDS and words[first].islower():
            continue
        for last in range(first, min(first + maximum, len(words))):
            keys.setdefault(key_of(" ".join(words[first : last + 1])))
    return [key for key in keys if key]


def _known_spans(text: str, gazetteer: Gazetteer) -> Iterator[Span]:
    for span in gazetteer.find(text):
        kind = span.spelling.type
        yield Span(span.start, span.end, kind, 0.95)


def _without_overlaps(*ranks: Iterable[Span]) -> list[Span]:
    """Remove overlaps. The longest span is kept; of equal lengths, the one with the better rank."""
    spans = [
        (span.start - span.end, rank, span)
        for rank, ranked_spans in enumerate(ranks)
        for span in ranked_spans
    ]
    spans.sort(key=lambda ranked: (ranked[2].start, ranked[0], ranked[1]))
    separate: list[Span] = []
    for _, _, span in spans:
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
        elif span.end - span.start > separate[-1].end - separate[-1].start:
            separate[-1] = span
    return separate


def _named(text: str, spans: Iterable[Span]) -> list[Mention]:
    """Return spans as mentions, without those whose key is empty."""
    written = ((span, text[span.start : span.end]) for span in spans)
    keyed = ((span, name, key_of(name)) for span, name in written)
    return [
        Mention(span.start, span.end, name, key, span.type, span.score) for span, name, key in keyed if key
    ]
