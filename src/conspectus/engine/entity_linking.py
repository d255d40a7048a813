"""What mentions mean, and nodes that are one."""

from collections.abc import Mapping, Sequence
from typing import Final

from conspectus.access.graph_reader import VisibleGraphs
from conspectus.engine.context import EngineContext
from conspectus.engine.graph_access import GraphAccess
from conspectus.errors import InvalidInput, TooLarge
from conspectus.graph.entity_linking import Surroundings, description_of, link, named_whole, rivals_of
from conspectus.graph.entity_rules import phrases, with_known
from conspectus.graph.gazetteer import Gazetteer, singular_of
from conspectus.graph.name_keys import key_of
from conspectus.ingest.client_vectors import GivenVectors
from conspectus.model.graph import ENTITY, Mention, Node, Traversal
from conspectus.model.graph import EntityLink as Linked
from conspectus.text.analyzer import analyzer_for

_BESIDE: Final = 20
_LIKE: Final = 10
_DESCRIBED: Final = 20
_LOOKED_UP: Final = 500


class EntityLinker:
    """Finds names in texts and decides which node each of them refers to."""

    def __init__(self, context: EngineContext, access: GraphAccess) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._access = access

    async def linked(
        self,
        text: str,
        seen: VisibleGraphs,
        *,
        mention: tuple[int, int] | None,
        threshold: float,
    ) -> list[Linked]:
        """Which nodes the names of a text mean, or only the mention from one character to another."""
        found, named = await self.names_in(text, seen)
        asked = found if mention is None else [_mention(text, mention, found)]
        meant = {each: await self._meant(each, named, seen) for each in asked}
        around = await self._around(text, found, meant, seen)
        return [link(each, meant[each], around, threshold=threshold) for each in asked]

    async def names_in(self, text: str, seen: VisibleGraphs) -> tuple[list[Mention], list[tuple[str, Node]]]:
        """The names of a text, and the nodes that are called something in it, each with the key."""
        limit = self._parts.settings.max_query_characters
        if len(text) > limit:
            raise TooLarge("text", size=len(text), limit=limit, unit="characters")
        keys = [form for key in phrases(text) for form in (key, singular_of(key)) if form]
        named = await _called(seen, keys)
        nodes = {node.id: node for _, node in named}
        known = Gazetteer(
            {node.id: (node.name, *node.aliases) for node in nodes.values()},
            {node.id: node.type for node in nodes.values()},
        )
        found = (await self._core.names.extractor().extract([text]))[0]
        return with_known(text, found, known), named

    async def _meant(
        self, mention: Mention, named: Sequence[tuple[str, Node]], seen: VisibleGraphs
    ) -> list[Node]:
        """Nodes of the mention's name, those that the text names, and those that share words with it."""
        called = await _called(seen, [mention.key, singular_of(mention.key) or mention.key])
        words = list(dict.fromkeys(analyzer_for(seen.place.collection.language).terms(mention.text)))
        like = await seen.named_like(words, limit=_LIKE) if words else ()
        found = [node for _, node in (*called, *named)] + [node for node, _ in like]
        return list({(node.graph.id, node.id): node for node in found}.values())

    async def _around(
        self,
        text: str,
        found: Sequence[Mention],
        meant: Mapping[Mention, Sequence[Node]],
        seen: VisibleGraphs,
    ) -> Surroundings:
        """What the text says beside the mentions, and what the graph says of nodes that share a name."""
        terms = analyzer_for(seen.place.collection.language).terms
        rivals = {node.id: node for each, nodes in meant.items() for node in rivals_of(each, nodes)}
        about: dict[str, str] = {}
        for node in list(rivals.values())[:_DESCRIBED]:
            beside = await seen.walk([node.id], Traversal(limit=_BESIDE))
            about[node.id] = description_of(node, [each.node.name for each in beside])
        there = {each.key for each in found}
        everyone = {node.id: node for nodes in meant.values() for node in nodes}
        return Surroundings(
            words=frozenset(terms(text)),
            about={
                id: frozenset(terms(said)) - frozenset(terms(rivals[id].name)) for id, said in about.items()
            },
            recent=frozenset(node.id for node in everyone.values() if named_whole(node, there)),
            close=await self._closeness(text, about, seen),
        )

    async def _closeness(self, text: str, about: Mapping[str, str], seen: VisibleGraphs) -> dict[str, float]:
        """How alike the text and what is said of each node are, where the collection has an embedder."""
        embedder = await self._context.embedder(seen.place.collection) if about else None
        if embedder is None or isinstance(embedder, GivenVectors):
            return {}
        question = await embedder.embed_query(text)
        rows = await embedder.embed_documents(list(about.values()))
        return {id: float(row @ question) for id, row in zip(about, rows, strict=True)}


async def _called(seen: VisibleGraphs, keys: Sequence[str]) -> list[tuple[str, Node]]:
    found: list[tuple[str, Node]] = []
    for first in range(0, len(keys), _LOOKED_UP):
        found += await seen.called(keys[first : first + _LOOKED_UP])
    return found


def _mention(text: str, span: tuple[int, int], found: Sequence[Mention]) -> Mention:
    start, end = span
    if not 0 <= start < end <= len(text) or not key_of(text[start:end]):
        raise InvalidInput("mention", f"must be characters of the text, from 0 to {len(text)}")
    same = next((each for each in found if (each.start, each.end) == span), None)
    return same or Mention(start, end, text[start:end], key_of(text[start:end]), ENTITY)
