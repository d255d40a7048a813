"""Relations that a text states between the entities that it mentions."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from conspectus.deferred import dataclass

RELATION_VERBS: Final = {
    "acquired": ("acquired", "bought"),
    "belongs_to": ("belongs to", "is part of"),
    "born_in": ("was born in",),
    "built": ("built",),
    "created": ("created",),
    "depends_on": ("depends on",),
    "designed": ("designed",),
    "developed": ("developed",),
    "directed": ("directed",),
    "founded": ("founded", "co-founded", "cofounded"),
    "invented": ("invented",),
    "joined": ("joined",),
    "knows": ("knows", "knew"),
    "leads": ("leads", "led", "runs", "is the ceo of", "is ceo of"),
    "lives_in": ("lives in", "lived in", "moved to"),
    "located_in": ("is based in", "is located in", "is in"),
    "manages": ("manages", "managed"),
    "married_to": ("married", "is married to"),
    "met": ("met",),
    "owns": ("owns", "owned"),
    "reports_to": ("reports to", "reported to"),
    "studied_at": ("studied at",),
    "uses": ("uses", "used"),
    "works_for": ("works for", "worked for", "works at", "worked at"),
    "works_with": ("works with", "worked with"),
    "wrote": ("wrote",),
}
"""Verbs that state a relation between a subject and an object, by relation."""
RELATION_PARTICIPLES: Final = {
    "acquired": ("acquired", "bought"),
    "built": ("built",),
    "created": ("created",),
    "designed": ("designed",),
    "developed": ("developed",),
    "directed": ("directed",),
    "founded": ("founded", "co-founded", "cofounded"),
    "invented": ("invented",),
    "leads": ("led", "run"),
    "manages": ("managed",),
    "owns": ("owned",),
    "uses": ("used",),
    "wrote": ("written",),
}
"""Participles that state a relation between an object and a subject, as in "was founded by"."""
_ACTIVE: Final = {words: relation for relation, known in RELATION_VERBS.items() for words in known}
_PASSIVE: Final = {
    f"{be} {words} by": relation
    for relation, known in RELATION_PARTICIPLES.items()
    for words in known
    for be in ("is", "was", "has been")
}
_BETWEEN: Final = re.compile(r"\s+(?:(?:also|later|then|recently|once)\s+)?(\S.*?\S)(?:\s+(?:the|a|an))?\s+")
_BEGINS: Final = re.compile(
    r"(?:.*(?:[,;:]|\b(?:and|but))\s+)?(?:(?:the|our|my)\s+)?", re.IGNORECASE | re.DOTALL
)
_DOUBTED: Final = re.compile(r"\b(?:if|whether|unless|not|never|n't|nobody)\b", re.IGNORECASE)
_SENTENCE_ENDS: Final = re.compile(r"[.!?]+(?=\s|$)|\n")
_FURTHEST: Final = 300
"""Number of characters that are examined before a name."""
_MAX_DISTANCE: Final = 40
"""Maximum number of characters between two names of a relation."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity mention: characters [start, end) of a text, its node, and its sentence."""

    node: str
    name: str
    type: str
    sentence: int
    start: int
    end: int
    known: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one node to another."""

    source: str
    type: str
    target: str


def relations(text: str, found: Sequence[Mention]) -> list[Relation]:
    """Return the relations that are stated between neighboring mentions, each once."""
    return list(dict.fromkeys(_stated(text, found)))


def _stated(text: str, found: Sequence[Mention]) -> Iterator[Relation]:
    there = [each for each in found if text[each.start : each.end] == each.name]
    for first, second in pairwise(sorted(there, key=lambda each: each.start)):
        near = first.sentence == second.sentence and second.start - first.end <= _MAX_DISTANCE
        if near and first.node != second.node and _is_plain(text, first, second):
            yield from _relation(text[first.end : second.start], first.node, second.node)


def _relation(between: str, first: str, second: str) -> Iterator[Relation]:
    matched = _BETWEEN.fullmatch(between)
    words = " ".join(matched[1].lower().split()) if matched else ""
    if words in _ACTIVE:
        yield Relation(first, _ACTIVE[words], second)
    elif words in _PASSIVE:
        yield Relation(second, _PASSIVE[words], first)


def _is_plain(text: str, first: Mention, second: Mention) -> bool:
    """Return whether the first name is the subject of a statement that is neither hedged nor a question."""
    ends = _SENTENCE_ENDS.search(text, second.end)
    around = text[max(first.start - _FURTHEST, 0) : first.start]
    before = _SENTENCE_ENDS.split(around)[-1].lstrip()
    asked = ends is not None and "?" in ends[0]
    return not asked and _BEGINS.fullmatch(before) is not None and not _DOUBTED.search(before)
