"""Names in a text, by capitals and word lists."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from conspectus.deferred import dataclass
from conspectus.graph.english_words import (
    EVENTS,
    FUNCTION_WORDS,
    NOBLE,
    ORGANISATIONS,
    PLACES,
    TITLES,
    common_words,
)
from conspectus.graph.written_forms import Span
from conspectus.model.graph import ENTITY
from conspectus.text.late_patterns import regex_pattern

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
            run_pieces = [
                _Piece(*piece.span(), piece[0]) for piece in _PIECE.finditer(self._text, *run.span())
            ]
            for pieces in self._parts(run_pieces):
                trimmed = self._trim(pieces)
                if trimmed and len(trimmed) <= _MAX_WORDS:
                    titled = any(piece.lower in TITLES for piece in pieces if piece.start < trimmed[0].start)
                    yield self._span(trimmed, titled)

    def _parts(self, pieces: list[_Piece]) -> Iterator[list[_Piece]]:
        """Split words at possessives, weak joining words, line ends and common words of headlines."""
        shouted = len(pieces) > _SHOUTED or self._is_shouted(pieces)
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

    def _is_shouted(self, pieces: Sequence[_Piece]) -> bool:
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
        if "\n" in between and not self._is_wrapped(last.end):
            return True
        if last.word.endswith(("'s", "\u2019s", "s'", "s\u2019")):
            return piece.lower not in _NAMED_AFTER
        if piece.word in _FEW and not last.joins:
            return not _is_joined(part, piece.word)
        return False

    def _is_wrapped(self, end: int) -> bool:
        """Whether the line that ends there is long enough to be a wrapped line."""
        return (
            end - (self._text.rfind("\n", max(0, end - _WRAPPED), end) + 1 or max(0, end - _WRAPPED))
            >= _WRAPPED
        )

    def _trim(self, pieces: list[_Piece]) -> list[_Piece]:
        """Remove joining words at both ends and words that only start the sentence."""
        first, last = 0, len(pieces)
        if last > 1 and pieces[0].word.isdigit() and pieces[-1].lower.removesuffix("s") not in _DATED:
            first = 1
        while first < last and self._is_apart(pieces[first:last]):
            first += 1
        while last > first and pieces[last - 1].joins:
            last -= 1
        trimmed = pieces[first:last]
        return [] if len(trimmed) == 1 and self._no_name(trimmed[0]) else trimmed

    def _is_apart(self, pieces: Sequence[_Piece]) -> bool:
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
        return text[at] in _ENDS_SENTENCE or (text[at] == "\n" and not self._is_wrapped(at))

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


def _is_joined(part: Sequence[_Piece], joint: str) -> bool:
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
