"""Names that are known beforehand, found in texts as whole words, the longest first."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import ahocorasick
import regex

from conspectus.graph.inflection import plural_of
from conspectus.graph.vocabulary import common_words
from conspectus.model.graph import ENTITY

LONGEST_KNOWN: Final = 200
"""A longer name is not looked for."""
_MOST_WORDS: Final = 12
_SPELT: Final = {0x2019: "'", 0x2018: "'", 0x2010: "-", 0x2011: "-", 0x2013: "-", 0x00A0: " ", 0x5F: " "}
_BREAKS: Final = regex.compile(r"\W")
_SPACES: Final = regex.compile(r"\s{2,}+|[^\S ]")


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way a known name is written, and which names are written so."""

    text: str
    type: str
    names: tuple[str, ...]
    any_case: bool


@dataclass(frozen=True, slots=True)
class KnownSpan:
    """A known name in a text."""

    start: int
    end: int
    spelling: Spelling


class Known:
    """Finds known names and aliases.

    A spelling in lower case stands for a common thing and is found in any case, and in the plural. Others are found with their
    capitals or in capitals throughout; without any only where no common word is written so. Acronyms have
    to be written as they are.
    """

    def __init__(self, names: Mapping[str, Iterable[str]], types: Mapping[str, str] | None = None) -> None:
        """`names` are spellings by the name (or id) that they stand for; `types` what those are."""
        self._automaton = ahocorasick.Automaton()
        self._spellings: dict[str, list[Spelling]] = {}
        meant: dict[str, dict[str, None]] = {}
        for name, spellings in names.items():
            for spelling in spellings:
                meant.setdefault(" ".join(spelling.split()), {})[name] = None
        for plural, single in _plurals(meant).items():
            meant[plural] = dict(meant[single])
        for text, owners in meant.items():
            self._add(text, tuple(owners), (types or {}).get(next(iter(owners)), ENTITY))
        for folded in self._spellings:
            self._automaton.add_word(f" {_opened(folded)} ", folded)
        if self._spellings:
            self._automaton.make_automaton()

    def _add(self, text: str, owners: tuple[str, ...], kind: str) -> None:
        folded = _folded(text)
        if 0 < len(text) <= LONGEST_KNOWN and any(map(str.isalnum, text)) and text.count(" ") < _MOST_WORDS:
            any_case = text == folded or not (text.isupper() or folded in common_words())
            self._spellings.setdefault(folded, []).append(Spelling(text, kind, owners, any_case))

    def __len__(self) -> int:
        return len(self._spellings)

    def find(self, text: str) -> list[KnownSpan]:
        """Known names in order and without overlaps, each as long as it can be."""
        if not self._spellings:
            return []
        found: list[KnownSpan] = []
        done = 0
        for span in sorted(self._matches(text), key=lambda span: (span.start, -span.end)):
            if span.start >= done:
                found.append(span)
                done = span.end
        return found

    def _matches(self, text: str) -> Iterator[KnownSpan]:
        folded = _folded(text)
        opened = f" {_opened(folded)} "
        for last, key in self._automaton.iter(opened):
            end = last - 1
            start = end - len(key)
            if folded[start:end] == key or _alike(folded[start:end], key):
                spelling = _fitting(self._spellings[key], text[start:end])
                if spelling is not None:
                    yield KnownSpan(start, end, spelling)


def _plurals(spellings: Iterable[str]) -> dict[str, str]:
    """The plurals of common things that are not spellings themselves, with what they are plurals of."""
    given = frozenset(spellings)
    found = {plural_of(each): each for each in given if each.islower() and each[-1].isalpha()}
    return {plural: each for plural, each in sorted(found.items()) if plural not in given}


def _fitting(spellings: Iterable[Spelling], written: str) -> Spelling | None:
    """The spelling of which this is a way of writing, the same one first."""
    best = None
    for each in spellings:
        if each.text == written:
            return each
        if best is None and (
            each.any_case or (written.isupper() and len(written) > 3 and not each.text.isupper())
        ):
            best = each
    return best


def _alike(written: str, key: str) -> bool:
    """Whether they differ in nothing but hyphens and spaces."""
    return written.replace("-", " ").replace("\n", " ") == key.replace("-", " ")


def _folded(text: str) -> str:
    """In lower case, with plain quotes and dashes, and as long as it was."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(small if len(small := character.lower()) == 1 else character for character in text)
    return lower if lower.isascii() and "_" not in lower else lower.translate(_SPELT)


def _opened(folded: str) -> str:
    """With a space for every mark, so that whole words alone are found."""
    return _BREAKS.sub(" ", folded)
