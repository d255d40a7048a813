"""What mentions mean, and nodes that are one."""

from collections.abc import Mapping, Sequence
from typing import Final

from conspectus.access.graph_reader import VisibleGraphs
from conspectus.engine.naming import EntityExtractionService
from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus.graph.entity_linking import Surroundings, description_of, link, named_whole, rivals_of
from conspectus.graph.entity_rules import phrases, with_known
from conspectus.graph.gazetteer import Gazetteer
from conspectus.graph.inflection import singular_of
from conspectus.graph.name_keys import key_of
from conspectus.ingest.client_vectors import GivenVectors
from conspectus.model.graph import ENTITY, Mention, Node, NodeEvent, Traversal
from conspectus.model.graph import EntityLink as Linked
from conspectus.text.analyzer import analyzer_for

_BESIDE: Final = 20
_LIKE: Final = 10
_DESCRIBED: Final = 20
_LOOKED_UP: Final = 500


class Linking(EntityExtractionService):
    """Which node a name means."""

    async def find_names(self, text: str, *, collection: str = "default") -> list[Mention]:
        """The names in a text, in order: those of nodes that can be seen, and those found by their form.

        Raises TooLarge, or what the extractor of the settings does.
        """
        place = await self._sight.place(collection)
        graphs = await self._graphs_seen(place, None)
        return (await self._names_in(text, self._graph_sight.of(place, graphs)))[0]

    async def link(
        self,
        text: str,
        *,
        graph: str = "default",
        collection: str = "default",
        mention: tuple[int, int] | None = None,
        threshold: float | None = None,
    ) -> list[Linked]:
        """Which nodes of a graph the names of a text mean, or only the mention from one character to another.

        Each comes with its candidates and the parts of their scores; a node is named from `threshold` on.
        Raises NotFound, TooLarge, or InvalidInput for a mention outside of the text.
        """
        least = self._parts.settings.entity_link_min_percent / 100 if threshold is None else threshold
        if not 0 <= least <= 1:
            raise InvalidInput("threshold", "must be from 0 to 1")
        seen = await self._graph_seen(graph, collection)
        found, named = await self._names_in(text, seen)
        asked = found if mention is None else [_mention(text, mention, found)]
        meant = {each: await self._meant(each, named, seen) for each in asked}
        around = await self._around(text, found, meant, seen)
        return [link(each, meant[each], around, threshold=least) for each in asked]

    async def merge_nodes(
        self,
        keep: str,
        others: Sequence[str],
        *,
        graph: str = "default",
        collection: str = "default",
        reason: str = "",
    ) -> Node:
        """Make several nodes one: the others' names become aliases of the kept one, their edges its own.

        Raises NotFound, NotAllowed, or InvalidInput where there is no other.
        """
        source = await self._graph_edited(graph, collection, "merge nodes")
        gone = [each for each in dict.fromkeys(self._bounded_ids("others", others)) if each != keep]
        if not gone:
            raise InvalidInput("others", "names no other node")
        before = (keep, *gone)
        event = NodeEvent(0, "merge", self._parts.clock(), self._person.name, before, (keep,), reason)
        return await self._parts.graphs.merge(source.id, keep, gone, event)

    async def split_node(
        self, merge: int, *, graph: str = "default", collection: str = "default", reason: str = ""
    ) -> list[Node]:
        """Take back the merge of that number (see `node_history`): the nodes as they were, with their edges.

        Raises NotFound, NotAllowed, or Conflict where one of the nodes is there again.
        """
        source = await self._graph_edited(graph, collection, "split a node")
        events = await self._parts.graphs.events(source.id)
        merged = next((each for each in events if each.number == merge and each.kind == "merge"), None)
        if merged is None:
            raise NotFound("merge", str(merge))
        by = self._person.name
        event = NodeEvent(0, "split", self._parts.clock(), by, merged.after, merged.before, reason)
        return list(await self._parts.graphs.split(source.id, merge, event))

    async def node_history(
        self, node: str | None = None, *, graph: str = "default", collection: str = "default"
    ) -> list[NodeEvent]:
        """The merges and splits of a graph in order, all or those that a node was part of."""
        return await (await self._graph_seen(graph, collection)).events(node)

    async def _names_in(self, text: str, seen: VisibleGraphs) -> tuple[list[Mention], list[tuple[str, Node]]]:
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
        embedder = await self._embedder(seen.place.collection) if about else None
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
