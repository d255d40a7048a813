"""Entity linking: choose the node that a mention refers to, by the similarity of names."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.graph.name_matching import INFLECTED, SURNAME, contradict, fit, is_person
from conspectus.model.graph import EntityLink, LinkCandidate, Node
from conspectus.model.records import Mention
from conspectus.text.name_keys import BASE, key_of, uri_of

SAME: Final = 0.9
"""Minimum score for the relation `same`; below it, the relation is `related`."""
THRESHOLD: Final = 0.8
_ONLY: Final = 0.1
_RECENT: Final = 0.08
_CONTEXT: Final = 0.15
_CLOSE: Final = 0.1
_USUAL: Final = 0.12
_CONTRADICTION: Final = -0.15
_STRANGER: Final = -0.2
_TIED: Final = 0.01
_ENOUGH_WORDS: Final = 3
_MAX_CANDIDATES: Final = 20
_MAX_DESCRIPTION_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a mention.

    `words` are terms of the text around it. `about` maps node ids to terms of their descriptions and
    neighbors. `recent` has ids of nodes that the conversation named before. `close` is the similarity (0 to
    1) of text and node vectors. `usual` is the share (0 to 1) of earlier mentions of this name that meant the
    node.
    """

    words: frozenset[str] = frozenset()
    about: Mapping[str, frozenset[str]] = field(default_factory=dict)
    recent: frozenset[str] = frozenset()
    close: Mapping[str, float] = field(default_factory=dict)
    usual: Mapping[str, float] = field(default_factory=dict)


NO_SURROUNDINGS: Final = Surroundings()


def link(
    mention: Mention,
    nodes: Iterable[Node],
    around: Surroundings = NO_SURROUNDINGS,
    *,
    threshold: float = THRESHOLD,
    base: str = BASE,
) -> EntityLink:
    """Rank the candidates of a mention, best first, and select a node if its score is high enough.

    A linked mention has the type of its node. No node is selected if the two best candidates have the same
    score. Two people are not matched merely
    because one name is part of the other.
    """
    distinct = {(node.graph.id, node.id): node for node in nodes}
    fitting = [(node, _parts(mention, node, around)) for node in distinct.values()]
    # Surnames count as a good match only if the person was named.
    well = [
        parts
        for _, parts in fitting
        if next(iter(parts.values()), 0.0) >= SURNAME and "not named here" not in parts
    ]
    if len(well) == 1:
        well[0]["only one"] = _ONLY
    ranked = [_rate_candidate(node, parts, base) for node, parts in fitting if parts]
    ranked.sort(key=lambda candidate: (-candidate.score, candidate.node.id, candidate.node.graph.id))
    del ranked[_MAX_CANDIDATES:]
    node = _decide(ranked, threshold)
    if node is not None:
        mention = replace(mention, type=node.type)
    return EntityLink(mention, node, tuple(ranked))


def relation(score: float) -> Literal["same", "related"]:
    """Return the relation of a mention to a candidate with this score."""
    return "same" if score >= SAME else "related"


def rivals_of(mention: Mention, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes whose whole name matches the mention, if there are at least two."""
    rivals = [
        node
        for node in nodes
        if fit(mention.key, node.name, node.aliases, person=is_person(node.type))[1] >= INFLECTED
    ]
    return rivals if len(rivals) > 1 else []


def contains_whole_name(node: Node, keys: Set[str]) -> bool:
    """Return whether a text contains the whole name of a node, if the name has several words."""
    key = key_of(node.name)
    return " " in key and key in keys


def description_of(node: Node, beside: Iterable[str] = ()) -> str:
    """Describe a node by its name, type, properties and the names of its neighbors."""
    texts = [f"{node.name} ({node.type})", *map(str, node.properties.values()), *beside]
    return "; ".join(texts)[:_MAX_DESCRIPTION_LENGTH]


def _parts(mention: Mention, node: Node, around: Surroundings) -> dict[str, float]:
    """Return the parts of a candidate's score; empty if the names have nothing in common."""
    person = is_person(node.type) or mention.type == "person"
    way, much = fit(mention.key, node.name, node.aliases, person=person)
    if not much:
        return {}
    parts: dict[str, float] = {way: much}
    if way == "surname" and node.id not in around.recent:
        parts["not named here"] = _STRANGER
    if node.id in around.recent:
        parts["named before"] = _RECENT
    shared = len(around.words & around.about.get(node.id, frozenset()))
    if shared:
        parts["context"] = _CONTEXT * min(1.0, shared / _ENOUGH_WORDS)
    if around.close.get(node.id, 0.0) > 0:
        parts["similarity"] = _CLOSE * around.close[node.id]
    if around.usual.get(node.id, 0.0) > 0:
        parts["usual"] = _USUAL * around.usual[node.id]
    if contradict(mention.type, node.type):
        parts["another kind"] = _CONTRADICTION
    return parts


def _rate_candidate(node: Node, parts: Mapping[str, float], base: str) -> LinkCandidate:
    score = round(min(1.0, max(0.0, sum(parts.values()))), 4)
    return LinkCandidate(node, score, dict(parts), uri_of(node.name, node.type, base=base, id=node.id))


def _decide(ranked: Sequence[LinkCandidate], threshold: float) -> Node | None:
    if not ranked or ranked[0].score < threshold:
        return None
    best, others = (
        ranked[0],
        [candidate for candidate in ranked[1:] if candidate.node.id != ranked[0].node.id],
    )
    return None if others and best.score - others[0].score < _TIED else best.node
