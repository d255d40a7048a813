"""A gazetteer of the names that a collection knows."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final

import ahocorasick
import regex

from conspectus.deferred import dataclass
from conspectus.graph.english_words import BEFORE_VERBS, FUNCTION_WORDS, PRONOUNS, common_words
from conspectus.graph.name_matching import is_person
from conspectus.model.graph import ENTITY
from conspectus.text.counts import plural_of
from conspectus.text.late_patterns import regex_pattern

MAX_KNOWN_LENGTH: Final = 200
"""Maximum length of a known name in characters. Longer names are ignored."""
_MAX_WORDS: Final = 12
_WORD: Final = regex_pattern(r"[\p{L}\p{M}\p{N}_]++")
_ARTICLE: Final = regex_pattern(r"(?:the|an?)\s+(?=\S)", regex.IGNORECASE)
_SPELT: Final = {0x2019: "'", 0x2018: "'", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x00A0: " "}
_TELLING: Final = regex_pattern(r"[^\p{L}\p{M}\p{N}_\s.,'\u2019!?:;()\"-]")
_GAP: Final = regex_pattern(r"[^\S\n]{0,3}\n?[^\S\n]{0,3}|[-.'\u2019&/]| & ")
_STOPPED: Final = regex_pattern(r"\.[^\S\n]")
_SHORT: Final = 3


@dataclass(frozen=True, slots=True)
class Spelling:
    """A spelling of a known name, and the names that have it."""

    text: str
    type: str
    names: tuple[str, ...]
    any_case: bool


@dataclass(frozen=True, slots=True)
class KnownSpan:
    """A known name at a position in a text."""

    start: int
    end: int
    spelling: Spelling


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a text in lower case, joined by spaces, with their positions in both texts."""

    joined: str
    begins: Sequence[int]
    spans: Sequence[tuple[int, int]]


class Gazetteer:
    """Finds known names and aliases in a text.

    A spelling matches in any case, unless it is a function word or, for people, a common one: "i hope" does
    not mean the person Hope. Such a spelling matches with its capitals, or in all capitals. One in lower case
    is a common noun, which also matches in the plural, but not as a verb. A leading article is not part of a
    name. Spaces, hyphens and full stops between words are equivalent.
    """

    def __init__(
        self,
        names: Mapping[str, Iterable[str]],
        types: Mapping[str, str] | None = None,
        *,
        skip: Set[str] = FUNCTION_WORDS,
    ) -> None:
        """Compile the spellings of `names`, a mapping from name (or id) to spellings.

        `types` has the type of each name. Words in `skip` are ignored unless they are acronyms.
        """
        self._automaton = ahocorasick.Automaton()
        self._spellings: dict[str, list[Spelling]] = {}
        meant: dict[str, dict[str, None]] = {}
        for name, spellings in names.items():
            for spelling in spellings:
                for variant in _ways(" ".join(spelling.split()), skip):
                    meant.setdefault(variant, {})[name] = None
        for plural, single in _plurals(meant).items():
            meant[plural] = dict(meant[single])
        for text, owners in meant.items():
            self._add(text, tuple(owners), (types or {}).get(next(iter(owners)), ENTITY))
        for joined, written in self._spellings.items():
            written.sort(key=lambda spelling: (not _TELLING.search(spelling.text), spelling.text))
            self._automaton.add_word(f" {joined} ", joined)
        if self._spellings:
            self._automaton.make_automaton()

    def _add(self, text: str, owners: tuple[str, ...], kind: str) -> None:
        joined = _words(text).joined.strip()
        if joined and len(text) <= MAX_KNOWN_LENGTH and joined.count(" ") < _MAX_WORDS:
            ordinary = common_words() if is_person(kind) else FUNCTION_WORDS
            any_case = text == text.lower() or joined not in ordinary
            self._spellings.setdefault(joined, []).append(Spelling(text, kind, owners, any_case))

    def __len__(self) -> int:
        return len(self._spellings)

    def find(self, text: str) -> list[KnownSpan]:
        """Return the known names in order, without overlaps; the longest match is preferred."""
        if not self._spellings:
            return []
        spans: list[KnownSpan] = []
        done = 0
        for span in sorted(self._matches(text), key=lambda span: (span.start, -span.end)):
            if span.start >= done:
                spans.append(span)
                done = span.end
        return spans

    def _matches(self, text: str) -> Iterator[KnownSpan]:
        words = _words(text)
        for last, joined in self._automaton.iter(words.joined):
            first = bisect_left(words.begins, last - len(joined))
            ending = first + joined.count(" ")
            start, end = words.spans[first][0], words.spans[ending][1]
            if not _are_connected(text, words.spans[first : ending + 1]):
                continue
            spelling = _choose_spelling(self._spellings[joined], text, start, end)
            if spelling is not None and not (spelling.text.islower() and _is_verb(text, words.spans, first)):
                yield KnownSpan(start, _with_marks(spelling.text, text, end), spelling)


def _ways(spelling: str, skip: Set[str]) -> Iterator[str]:
    """Return variants of a spelling without article and without apostrophes; none for skipped words."""
    bare = _ARTICLE.sub("", spelling, count=1) if _ARTICLE.match(spelling) else spelling
    if bare.lower() not in skip or (len(bare) > 1 and bare.isupper()):
        yield bare if bare.lower() not in common_words() else spelling
    elif bare != spelling:
        yield spelling
    if "'" in bare or "\u2019" in bare:
        yield bare.replace("'", "").replace("\u2019", "")


def _plurals(spellings: Iterable[str]) -> dict[str, str]:
    """Map plurals of common nouns to their singular, unless the plural is a spelling itself."""
    existing = frozenset(spellings)
    singulars = {
        plural_of(spelling): spelling
        for spelling in existing
        if spelling.islower() and spelling[-1].isalpha()
    }
    return {plural: spelling for plural, spelling in sorted(singulars.items()) if plural not in existing}


def _words(text: str) -> _Words:
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(small if len(small := character.lower()) == 1 else character for character in text)
    spans = [word.span() for word in _WORD.finditer(lower)]
    begins, at = [], 1
    for start, end in spans:
        begins.append(at)
        at += end - start + 1
    return _Words(f" {' '.join(lower[start:end] for start, end in spans)} ", begins, spans)


def _are_connected(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the words are separated only by characters that may occur inside a name."""
    return all(
        text[end:start] == " "
        or _GAP.fullmatch(text, end, start)
        or (end - begin <= _SHORT and _STOPPED.fullmatch(text, end, start))
        for (begin, end), (start, _) in pairwise(spans)
    )


def _choose_spelling(spellings: Iterable[Spelling], text: str, start: int, end: int) -> Spelling | None:
    """Return the spelling that matches the text, with preference for an exact match."""
    best, written = None, text[start:end]
    for spelling in spellings:
        occurrence = written
        if _TELLING.search(spelling.text):
            # The first word of a spelling may stand behind other characters.
            word = _WORD.search(spelling.text)
            first = max(0, start - (word.start() if word else 0))
            occurrence = text[first : first + len(spelling.text)]
        if occurrence == spelling.text:
            return spelling
        if occurrence is not written and occurrence.lower().translate(
            _SPELT
        ) != spelling.text.lower().translate(_SPELT):
            continue
        shouted = written.isupper() and len(written) > 3 and not spelling.text.isupper()
        best = spelling if best is None and (spelling.any_case or shouted) else best
    return best


def _with_marks(spelling: str, text: str, end: int) -> int:
    """Return the end of a name including its final marks, as in C++."""
    closing = spelling[len(spelling.rstrip("+#!")) :]
    if closing and text.startswith(closing, end):
        return end + len(closing)
    return end


def _is_verb(text: str, spans: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a word is a verb: after a pronoun, or a common word after `to` or an auxiliary verb."""
    if at == 0 or not text[spans[at - 1][1] : spans[at][0]].isspace():
        return False
    before, word = (text[start:end].lower() for start, end in spans[at - 1 : at + 1])
    return before in PRONOUNS or (before in BEFORE_VERBS and word in common_words())
