"""Entities: they are extracted from texts and linked to nodes, and nodes have URIs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import require_range
from conspectus.facades.agent.graph import AsyncContextGraph, Graph
from conspectus.facades.agent.mapping import node_dict, time_of
from conspectus.facades.agent.parts import AsyncPart, has_own_storage
from conspectus.graph.name_keys import BASE, uri_of
from conspectus.model.graph import ENTITY, MENTIONED_WITH, EntityLink, LinkCandidate
from conspectus.model.memory import Memory

THRESHOLD: Final = 0.8
URI: Final = "uri"
SAME: Final = "same_as"
MAX_SAME_NAME: Final = 100
"""Maximum number of nodes with the same name that are checked for a URI."""


class AsyncEntityLinker(AsyncPart):
    """Links mentions to nodes by whole names and aliases, never by parts of a name.

    `knowledge_graph` is a graph, or a store to create one in. A mention is linked if its score reaches
    `similarity_threshold` (0 to 1); otherwise only candidates are returned.
    """

    def __init__(
        self, knowledge_graph: Any = None, *, similarity_threshold: float = THRESHOLD, base_uri: str = BASE
    ) -> None:
        require_range("similarity_threshold", similarity_threshold, 0, 1)
        given = knowledge_graph
        self.graph = given if isinstance(given, Graph) else AsyncContextGraph(given)
        self.storage, self.owns = self.graph.storage, has_own_storage(given)
        self.threshold = similarity_threshold
        self.base_uri = base_uri

    async def assign_uri(self, entity_id: str, text: str | None = None, entity_type: str = ENTITY) -> str:
        """Return the permanent URI of a node; a missing node is created with the name `text`.

        Two nodes with the same name and type have different URIs.
        """
        node = await self.graph.get_node(entity_id)
        if node is None:
            node = {"id": entity_id, "type": entity_type, "name": text or entity_id, "properties": {}}
        stored = node["properties"].get(URI)
        if isinstance(stored, str):
            return stored
        name = text or node["name"]
        named = [each["node"] for each in await self.graph.query(name, MAX_SAME_NAME)]
        taken = {each["properties"].get(URI) for each in named if each["id"] != entity_id}
        uri = uri_of(name, node["type"], base=self.base_uri)
        if uri in taken:
            uri = uri_of(name, node["type"], base=self.base_uri, id=entity_id)
        await self.graph.add_nodes([{**node, "properties": {**node["properties"], URI: uri}}])
        return uri

    async def link(self, text: str) -> list[dict[str, Any]]:
        """Return the mentions of a text with position, linked node (if any) and candidates."""
        return [self._linked(each) for each in await self._links(text)]

    async def find_similar(self, name: str, limit: int = 10) -> list[dict[str, Any]]:
        """Return the nodes that a name may refer to, best first, with the parts of their scores."""
        found = await self._links(name, mention=(0, len(name)))
        return [self._candidate(each) for each in (found[0].candidates if found else ())][:limit]

    async def link_entities(
        self, first: str, second: str, link_type: str = SAME, confidence: float = 1.0
    ) -> int:
        """Connect two nodes in both directions and return the number of new or changed edges."""
        both = ((first, second), (second, first))
        return await self.graph.add_edges(
            {"source_id": source, "target_id": target, "type": link_type, "weight": confidence}
            for source, target in both
        )

    async def merge(self, keep: str, others: Sequence[str], reason: str = "") -> dict[str, Any]:
        """Merge nodes into one: it gets their names as aliases, and their edges."""
        found = await self.graph.run(
            lambda engine: engine.graph.merge_nodes(keep, list(others), **self.graph.place, reason=reason)
        )
        return node_dict(found)

    async def split(self, merge: int, reason: str = "") -> list[dict[str, Any]]:
        """Undo a merge by its number in `history` and return the restored nodes."""
        found = await self.graph.run(
            lambda engine: engine.graph.undo_merge(merge, **self.graph.place, reason=reason)
        )
        return [node_dict(each) for each in found]

    async def history(self, node_id: str | None = None) -> list[dict[str, Any]]:
        """Return merges and splits in order, all or those of one node."""
        found = await self.graph.run(lambda engine: engine.graph.list_merges(node_id, **self.graph.place))
        return [{name: getattr(each, name) for name in each.__dataclass_fields__} for each in found]

    async def _links(self, text: str, mention: tuple[int, int] | None = None) -> Sequence[EntityLink]:
        options = {**self.graph.place, "mention": mention, "min_score": self.threshold}
        return await self.graph.run(lambda engine: engine.graph.link_entities(text, **options))

    def _linked(self, linking: EntityLink) -> dict[str, Any]:
        mention = linking.mention
        node = None if linking.node is None else node_dict(linking.node)
        meant = next((each for each in linking.candidates if each.node == linking.node), None)
        return {
            "text": mention.text,
            "start": mention.start,
            "end": mention.end,
            "type": mention.type,
            "node": node,
            "uri": uri_of(mention.text, mention.type, base=self.base_uri)
            if meant is None
            else self._uri(meant),
            "candidates": [self._candidate(each) for each in linking.candidates],
        }

    def _candidate(self, candidate: LinkCandidate) -> dict[str, Any]:
        return {
            "node": node_dict(candidate.node),
            "score": candidate.score,
            "parts": dict(candidate.parts),
            "uri": self._uri(candidate),
        }

    def _uri(self, candidate: LinkCandidate) -> str:
        stored = candidate.node.properties.get(URI)
        if isinstance(stored, str):
            return stored
        node = candidate.node
        return uri_of(node.name, node.type, base=self.base_uri, id=node.id)


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


EXTRACTED: Final = "extracted"
"""Property of nodes that exist only because a memory mentions them."""
MAX_PAIRED_NAMES: Final = 6
"""Maximum number of names in a sentence that are all paired; of more, each is paired with the next."""
WEIGHT: Final = 0.5
MAX_LENGTH: Final = 5_000
"""Maximum number of characters in one call of the entity linker."""
_SENTENCE: Final = re.compile(r"[.!?]+\s+|\n+")


async def mentions(graph: Graph, text: str) -> list[Mention]:
    """Return the entity mentions of a text, each with its node in the graph."""
    told: list[Mention] = []
    sentences = offset = 0
    for piece in _pieces(text):
        ends = [each.start() for each in _SENTENCE.finditer(piece)]
        for each in await _linked(graph, piece):
            node = each.node.id if each.node is not None else each.mention.key
            sentence = sentences + sum(end <= each.mention.start for end in ends)
            start, end = offset + each.mention.start, offset + each.mention.end
            known = each.node is not None
            told.append(
                Mention(node, each.mention.text, each.mention.type, sentence, start, end, known=known)
            )
        sentences += len(ends) + 1
        offset += len(piece)
    return [each for each in told if each.node]


async def connect(graph: Graph, found: Sequence[Mention], memory: Memory, *, edges: bool) -> tuple[int, int]:
    """Add the entities of a memory to the graph, with stated relations or else co-occurrence edges.

    Returns the numbers of new nodes and new edges.
    """
    fresh = {each.node: each for each in found if not each.known}
    nodes = [
        {"id": name, "type": each.type, "name": each.name, "properties": {EXTRACTED: True}}
        for name, each in fresh.items()
        if await graph.get_node(name) is None
    ]
    stated = relations(memory.text, found) if edges else []
    said = {frozenset((each.source, each.target)) for each in stated}
    pairs = {tuple(sorted(pair)) for pair in _pairs(found) if frozenset(pair) not in said} if edges else set()
    drawn = [(*pair, MENTIONED_WITH, WEIGHT) for pair in sorted(pairs) if pair[0] != pair[1]]
    drawn += [(each.source, each.target, each.type, 1.0) for each in stated]
    together = [
        {
            "source_id": first,
            "target_id": second,
            "type": type,
            "weight": weight,
            "valid_from": time_of(memory),
            "evidence": memory.id,
        }
        for first, second, type, weight in drawn
    ]
    return (await graph.add_nodes(nodes) if nodes else 0, await graph.add_edges(together) if together else 0)


async def disconnect(graph: Graph, names: Iterable[str]) -> int:
    """Remove those of these nodes that were extracted and have no edge; return their number."""
    alone = []
    for name in names:
        node = await graph.get_node(name)
        if node is not None and node["properties"].get(EXTRACTED) is True and not await graph.get_edges(name):
            alone.append(name)
    return await graph.remove_nodes(alone) if alone else 0


async def _linked(graph: Graph, piece: str) -> Sequence[EntityLink]:
    return await graph.run(lambda engine: engine.graph.link_entities(piece, **graph.place))


def _pieces(text: str) -> Iterator[str]:
    """Split a text at sentence ends, or else between words, into pieces of at most MAX_LENGTH characters."""
    while len(text) > MAX_LENGTH:
        ends = [each.end() for each in _SENTENCE.finditer(text, 0, MAX_LENGTH)]
        end = ends[-1] if ends else text.rfind(" ", 0, MAX_LENGTH) + 1 or MAX_LENGTH
        yield text[:end]
        text = text[end:]
    yield text


def _pairs(found: Sequence[Mention]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for sentence in dict.fromkeys(each.sentence for each in found):
        names = list(dict.fromkeys(each.node for each in found if each.sentence == sentence))
        pairs += combinations(names, 2) if len(names) <= MAX_PAIRED_NAMES else pairwise(names)
    return pairs
