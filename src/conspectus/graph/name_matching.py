"""How well a name fits the names of a node: whole names, initials, surnames and inflections."""

from collections.abc import Sequence
from typing import Final, Literal

from conspectus.graph.english_words import (
    DIRECTIONS,
    FUNCTION_WORDS,
    ORGANISATIONS,
    PLACES,
    TITLES,
    singular_of,
)
from conspectus.text.counts import plural_of
from conspectus.text.late_patterns import regex_pattern
from conspectus.text.name_keys import key_of

Way = Literal["name", "alias", "inflected", "initials", "surname", "words"]
EXACT: Final = 0.85
ALIAS: Final = 0.82
INFLECTED: Final = 0.8
INITIALS: Final = 0.72
SURNAME: Final = 0.72
MIN_SIMILARITY: Final = 0.7
"""Highest score for shared words, too low to link on its own."""
_PEOPLE: Final = frozenset(("person", "per", "people", "user", "contact", "customer", "author", "speaker"))
_PARTING: Final = str.maketrans(".-", "  ")
_MAX_NAME_WORDS: Final = 4
_WORD: Final = regex_pattern(r"[\p{L}\p{M}\p{N}]++")


def fit(key: str, name: str, aliases: Sequence[str], *, person: bool) -> tuple[Way, float]:
    """Return how a key best matches a name or its aliases, with a score from 0 to `EXACT`."""
    named = key_of(name)
    if key == named:
        return "name", EXACT
    others = [key_of(alias) for alias in aliases]
    if key in others:
        return "alias", ALIAS
    every = [named, *others]
    words = _split_key(key)
    if words and any(words == _split_key(other) for other in every):
        return "alias", ALIAS
    if not person and any(key in (plural_of(other), singular_of(other)) for other in every):
        return "inflected", INFLECTED
    if any(initials_of(other) == key.replace(".", "").replace(" ", "") for other in every):
        return "initials", INITIALS
    if person:
        return max((_match_people(key, other) for other in every), key=lambda fit_of_name: fit_of_name[1])
    if any(_ends_with(key, other) for other in every):
        return "surname", SURNAME
    return "words", MIN_SIMILARITY * max(in_common(key, other) for other in every)


def _split_key(key: str) -> list[str]:
    """Split a key at spaces, full stops and hyphens. Other marks belong to the words."""
    return key.translate(_PARTING).split()


def is_person(type: str) -> bool:
    """Return whether nodes of this type are people."""
    return type.casefold() in _PEOPLE


def initials_of(key: str) -> str | None:
    """Return the initials of a name of several words, without function words."""
    words = [word for word in _WORD.findall(key) if word not in FUNCTION_WORDS]
    return "".join(word[0] for word in words) if len(words) > 1 else None


def in_common(one: str, other: str) -> float:
    """Return the Jaccard similarity of the whole words of two names."""
    ours, theirs = set(_WORD.findall(one)) - FUNCTION_WORDS, set(_WORD.findall(other)) - FUNCTION_WORDS
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


def _match_people(key: str, named: str) -> tuple[Way, float]:
    """Match names of people by whole name, or initials and surname. A first name alone scores low."""
    ours = [word for word in _split_key(key) if word not in TITLES]
    theirs = [word for word in _split_key(named) if word not in TITLES]
    if not ours or not theirs:
        return "words", 0.0
    if ours == theirs:
        return "alias", ALIAS
    if len(ours) == 1 and len(theirs) > 1 and ours[0] == theirs[-1]:
        return "surname", SURNAME
    if ours[-1] == theirs[-1] and len(ours) == len(theirs) and all(map(_is_initial, ours, theirs)):
        return "initials", INITIALS
    shared = in_common(" ".join(ours), " ".join(theirs))
    return "words", shared / 2 if set(ours) <= set(theirs) or set(theirs) <= set(ours) else 0.0


def _ends_with(key: str, name: str) -> bool:
    """Whether a single word is the last word of a name, unless the other words are its distinctive part."""
    ours, theirs = _WORD.findall(key), _WORD.findall(name)
    telling = theirs[:1] and (theirs[0] in DIRECTIONS or theirs[-1] in ORGANISATIONS | PLACES)
    return len(ours) == 1 and 1 < len(theirs) <= _MAX_NAME_WORDS and ours == theirs[-1:] and not telling


def _is_initial(one: str, other: str) -> bool:
    """Whether the words are equal or one is the initial of the other."""
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def contradict(mention_type: str, node: str) -> bool:
    """Return whether two types exclude each other."""
    kinds = {"person", "place", "organisation"}
    kind = "person" if is_person(node) else node.casefold().replace("organization", "organisation")
    return mention_type in kinds and kind in kinds and mention_type != kind
