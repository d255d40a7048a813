"""How well what a text calls something fits what a node is called."""

from collections.abc import Sequence
from typing import Final, Literal

import regex

from conspectus.graph.inflection import plural_of, singular_of
from conspectus.graph.name_keys import key_of
from conspectus.graph.word_lists import DIRECTIONS, FUNCTION_WORDS, ORGANISATIONS, PLACES, TITLES

Way = Literal["name", "alias", "inflected", "initials", "surname", "words"]
EXACT: Final = 0.85
ALIAS: Final = 0.82
INFLECTED: Final = 0.8
INITIALS: Final = 0.72
SURNAME: Final = 0.72
ALIKE: Final = 0.7
"""Words in common count at most so much, which alone is never enough."""
_PEOPLE: Final = frozenset(("person", "per", "people", "user", "contact", "customer", "author", "speaker"))
_PARTING: Final = str.maketrans(".-", "  ")
_LONGEST_NAME: Final = 4
_WORD: Final = regex.compile(r"[\p{L}\p{M}\p{N}]++")


def fit(key: str, name: str, aliases: Sequence[str], *, person: bool) -> tuple[Way, float]:
    """The best way in which a key fits a name or aliases, and how much that says (0 to `EXACT`)."""
    named = key_of(name)
    if key == named:
        return "name", EXACT
    others = [key_of(alias) for alias in aliases]
    if key in others:
        return "alias", ALIAS
    every = [named, *others]
    words = _parted(key)
    if words and any(words == _parted(other) for other in every):
        return "alias", ALIAS
    if not person and any(key in (plural_of(other), singular_of(other)) for other in every):
        return "inflected", INFLECTED
    if any(initials_of(other) == key.replace(".", "").replace(" ", "") for other in every):
        return "initials", INITIALS
    if person:
        return max((_of_people(key, other) for other in every), key=lambda found: found[1])
    if any(_ends_with(key, other) for other in every):
        return "surname", SURNAME
    return "words", ALIKE * max(in_common(key, other) for other in every)


def _parted(key: str) -> list[str]:
    """The words of a key as spaces, full stops and hyphens part them; other marks belong to them."""
    return key.translate(_PARTING).split()


def is_person(type: str) -> bool:
    """Whether a type of nodes is one of people."""
    return type.casefold() in _PEOPLE


def initials_of(key: str) -> str | None:
    """The first letters of a name of several words, without those that only join."""
    words = [word for word in _WORD.findall(key) if word not in FUNCTION_WORDS]
    return "".join(word[0] for word in words) if len(words) > 1 else None


def in_common(one: str, other: str) -> float:
    """Whole words in common, as a share of all that either has; never parts of words."""
    ours, theirs = set(_WORD.findall(one)) - FUNCTION_WORDS, set(_WORD.findall(other)) - FUNCTION_WORDS
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


def _of_people(key: str, named: str) -> tuple[Way, float]:
    """People are the same by a whole name, or initials and a surname; a first name alone says little."""
    ours = [word for word in _parted(key) if word not in TITLES]
    theirs = [word for word in _parted(named) if word not in TITLES]
    if not ours or not theirs:
        return "words", 0.0
    if ours == theirs:
        return "alias", ALIAS
    if len(ours) == 1 and len(theirs) > 1 and ours[0] == theirs[-1]:
        return "surname", SURNAME
    if ours[-1] == theirs[-1] and len(ours) == len(theirs) and all(map(_initial, ours, theirs)):
        return "initials", INITIALS
    shared = in_common(" ".join(ours), " ".join(theirs))
    return "words", shared / 2 if set(ours) <= set(theirs) or set(theirs) <= set(ours) else 0.0


def _ends_with(key: str, name: str) -> bool:
    """Whether one word is the last of a name that is not told from others by the words before it."""
    ours, theirs = _WORD.findall(key), _WORD.findall(name)
    telling = theirs[:1] and (theirs[0] in DIRECTIONS or theirs[-1] in ORGANISATIONS | PLACES)
    return len(ours) == 1 and 1 < len(theirs) <= _LONGEST_NAME and ours == theirs[-1:] and not telling


def _initial(one: str, other: str) -> bool:
    """Whether one is the other or its first letter."""
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def contradict(found: str, node: str) -> bool:
    """Whether two types cannot be of one thing."""
    kinds = {"person", "place", "organisation"}
    kind = "person" if is_person(node) else node.casefold().replace("organization", "organisation")
    return found in kinds and kind in kinds and found != kind
