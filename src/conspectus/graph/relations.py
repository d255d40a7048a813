"""Relations that a text states between the entities that it mentions."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final

from conspectus.deferred import dataclass
from conspectus.graph.node_mentions import NodeMention
from conspectus.model.graph import MENTIONED_WITH

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
RELATION_WEIGHT: Final = 1.0
CO_OCCURRENCE_WEIGHT: Final = 0.5
MAX_PAIRED_NODES: Final = 6
"""Maximum number of nodes in a sentence that are all paired; of more, each is paired with the next."""
MAX_RELATION_CHARACTERS: Final = 40
"""Maximum number of characters between two names of a relation."""
MAX_LEADING_CHARACTERS: Final = 300
"""Number of characters that are examined before a name."""
_ACTIVE: Final = {verb: relation for relation, verbs in RELATION_VERBS.items() for verb in verbs}
_PASSIVE: Final = {
    f"{be} {participle} by": relation
    for relation, participles in RELATION_PARTICIPLES.items()
    for participle in participles
    for be in ("is", "was", "has been")
}
_WORDS_BETWEEN: Final = re.compile(
    r"\s+(?:(?:also|later|then|recently|once)\s+)?(\S.*?\S)(?:\s+(?:the|a|an))?\s+"
)
_CLAUSE_START: Final = re.compile(
    r"(?:.*(?:[,;:]|\b(?:and|but))\s+)?(?:(?:the|our|my)\s+)?", re.IGNORECASE | re.DOTALL
)
_HEDGES: Final = re.compile(r"\b(?:if|whether|unless|not|never|n't|nobody)\b", re.IGNORECASE)
_SENTENCE_ENDS: Final = re.compile(r"[.!?]+(?=\s|$)|\n")


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation from one node to another, with the weight of its edge."""

    source: str
    type: str
    target: str
    weight: float = RELATION_WEIGHT


def relations_of(text: str, mentions: Sequence[NodeMention]) -> list[Relation]:
    """Return the relations between the nodes that a text mentions, each once.

    Nodes of one sentence are `mentioned_with` each other unless the text states a relation of the two.
    """
    stated = find_relations(text, mentions)
    stated_pairs = {frozenset((relation.source, relation.target)) for relation in stated}
    pairs = {tuple(sorted(pair)) for pair in _node_pairs(mentions) if frozenset(pair) not in stated_pairs}
    co_occurrences = [
        Relation(first, MENTIONED_WITH, second, CO_OCCURRENCE_WEIGHT)
        for first, second in sorted(pairs)
        if first != second
    ]
    return co_occurrences + stated


def find_relations(text: str, mentions: Sequence[NodeMention]) -> list[Relation]:
    """Return the relations that a text states between neighboring mentions, each once."""
    return list(dict.fromkeys(_find_stated_relations(text, mentions)))


def _find_stated_relations(text: str, mentions: Sequence[NodeMention]) -> Iterator[Relation]:
    verbatim = [mention for mention in mentions if text[mention.start : mention.end] == mention.name]
    for first, second in pairwise(sorted(verbatim, key=lambda mention: mention.start)):
        is_near = second.start - first.end <= MAX_RELATION_CHARACTERS
        if first.sentence != second.sentence or first.node == second.node or not is_near:
            continue
        relation = _relation_in(text[first.end : second.start], first.node, second.node)
        if relation is not None and _is_plain_statement(text, first, second):
            yield relation


def _relation_in(between: str, first: str, second: str) -> Relation | None:
    """Return the relation of two nodes from the words between their names."""
    match = _WORDS_BETWEEN.fullmatch(between)
    words = " ".join(match[1].lower().split()) if match else ""
    if words in _ACTIVE:
        return Relation(first, _ACTIVE[words], second)
    if words in _PASSIVE:
        return Relation(second, _PASSIVE[words], first)
    return None


def _is_plain_statement(text: str, first: NodeMention, second: NodeMention) -> bool:
    """Return whether the first name is the subject of a statement that is neither hedged nor a question."""
    sentence_end = _SENTENCE_ENDS.search(text, second.end)
    if sentence_end is not None and "?" in sentence_end[0]:
        return False
    leading = text[max(first.start - MAX_LEADING_CHARACTERS, 0) : first.start]
    sentence_start = _SENTENCE_ENDS.split(leading)[-1].lstrip()
    return _CLAUSE_START.fullmatch(sentence_start) is not None and not _HEDGES.search(sentence_start)


def _node_pairs(mentions: Sequence[NodeMention]) -> list[tuple[str, str]]:
    """Return pairs of nodes in one sentence."""
    nodes_by_sentence: dict[int, dict[str, None]] = {}
    for mention in mentions:
        nodes_by_sentence.setdefault(mention.sentence, {})[mention.node] = None
    pairs: list[tuple[str, str]] = []
    for nodes in nodes_by_sentence.values():
        pairs += combinations(nodes, 2) if len(nodes) <= MAX_PAIRED_NODES else pairwise(nodes)
    return pairs
