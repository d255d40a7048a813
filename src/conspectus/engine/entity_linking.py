"""Links the mentions of a text to nodes of a graph."""

from collections.abc import Mapping, Sequence
from typing import Final

from conspectus.access.graph_reader import VisibleGraphs
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, ProviderError, TooLarge
from conspectus.graph.english_words import singular_of
from conspectus.graph.entity_linking import Surroundings, contains_whole_name, description_of, link, rivals_of
from conspectus.graph.entity_rules import phrases, with_gazetteer
from conspectus.graph.gazetteer import Gazetteer
from conspectus.ingest.embedding_queue import GivenVectors
from conspectus.model.graph import ENTITY, EntityLink, Node, Traversal
from conspectus.model.records import Mention
from conspectus.ports.jobs import on_behalf_of
from conspectus.text.analyzer import analyzer_for
from conspectus.text.name_keys import key_of

_MAX_CONTEXT_NEIGHBORS: Final = 20
"""Neighbors whose names describe a node."""
_MAX_SIMILAR_NODES: Final = 10
"""Candidates of a mention that share words with it, but not the name."""
_MAX_DESCRIBED_NODES: Final = 20
"""Nodes of one name that are described to tell them apart."""
_KEYS_PER_QUERY: Final = 500


class EntityLinker(Service, checked=False):
    """Finds mentions in texts, and links them to nodes."""

    async def link_mentions(
        self,
        text: str,
        graphs: VisibleGraphs,
        *,
        span: tuple[int, int] | None,
        threshold: float,
    ) -> list[EntityLink]:
        """Link the mentions of a text, or only the mention at a span."""
        mentions, named = await self.names_in(text, graphs)
        linkable = mentions if span is None else [_mention_at(text, span, mentions)]
        candidates_by_mention = {
            mention: await self._find_candidates(mention, named, graphs) for mention in linkable
        }
        around = await self._describe_surroundings(text, mentions, candidates_by_mention, graphs)
        return [
            link(mention, candidates_by_mention[mention], around, threshold=threshold) for mention in linkable
        ]

    async def names_in(
        self, text: str, graphs: VisibleGraphs
    ) -> tuple[list[Mention], list[tuple[str, Node]]]:
        """Return the mentions of a text, and the nodes with such names, each with the key of the name."""
        limit = self._parts.settings.max_query_characters
        if len(text) > limit:
            raise TooLarge("text", size=len(text), limit=limit, unit="characters")
        keys = [form for key in phrases(text) for form in (key, singular_of(key)) if form]
        named = await _nodes_by_keys(graphs, keys)
        nodes = {node.id: node for _, node in named}
        gazetteer = Gazetteer(
            {node.id: (node.name, *node.aliases) for node in nodes.values()},
            {node.id: node.type for node in nodes.values()},
        )
        extracted = (await self._core.names.extractor().extract([text]))[0]
        return with_gazetteer(text, extracted, gazetteer), named

    async def _find_candidates(
        self, mention: Mention, named: Sequence[tuple[str, Node]], graphs: VisibleGraphs
    ) -> list[Node]:
        """Return candidate nodes: with the mention's name, named in the text, or sharing words."""
        same_name = await _nodes_by_keys(graphs, [mention.key, singular_of(mention.key) or mention.key])
        terms = list(dict.fromkeys(analyzer_for(graphs.access.collection.language).terms(mention.text)))
        similar = await graphs.nodes_by_terms(terms, limit=_MAX_SIMILAR_NODES) if terms else ()
        candidates = [node for _, node in (*same_name, *named)] + [node for node, _ in similar]
        return list({(node.graph.id, node.id): node for node in candidates}.values())

    async def _describe_surroundings(
        self,
        text: str,
        mentions: Sequence[Mention],
        candidates_by_mention: Mapping[Mention, Sequence[Node]],
        graphs: VisibleGraphs,
    ) -> Surroundings:
        """Return the context words of the text, and descriptions of the nodes that share a name."""
        terms = analyzer_for(graphs.access.collection.language).terms
        rivals = {
            node.id: node
            for mention, nodes in candidates_by_mention.items()
            for node in rivals_of(mention, nodes)
        }
        about: dict[str, str] = {}
        for node in list(rivals.values())[:_MAX_DESCRIBED_NODES]:
            neighbors = await graphs.walk([node.id], Traversal(limit=_MAX_CONTEXT_NEIGHBORS))
            about[node.id] = description_of(node, [neighbor.node.name for neighbor in neighbors])
        mention_keys = {mention.key for mention in mentions}
        candidates = {node.id: node for nodes in candidates_by_mention.values() for node in nodes}
        return Surroundings(
            words=frozenset(terms(text)),
            about={
                id: frozenset(terms(description)) - frozenset(terms(rivals[id].name))
                for id, description in about.items()
            },
            recent=frozenset(
                node.id for node in candidates.values() if contains_whole_name(node, mention_keys)
            ),
            close=await self._similarities_to(text, about, graphs),
        )

    async def _similarities_to(
        self, text: str, about: Mapping[str, str], graphs: VisibleGraphs
    ) -> dict[str, float]:
        """Return the similarity of the text to the description of each node, by node id.

        Empty without an embedder, or if the model provider fails: links are then scored without it.
        """
        embedder = await self._context.embedder(graphs.access.collection) if about else None
        if embedder is None or isinstance(embedder, GivenVectors):
            return {}
        try:
            with on_behalf_of(self._person.id):
                text_vector = await embedder.embed_query(text)
                rows = await embedder.embed_documents(list(about.values()))
        except ProviderError:
            return {}
        return {id: float(row @ text_vector) for id, row in zip(about, rows, strict=True)}


async def _nodes_by_keys(graphs: VisibleGraphs, keys: Sequence[str]) -> list[tuple[str, Node]]:
    named_nodes: list[tuple[str, Node]] = []
    for first in range(0, len(keys), _KEYS_PER_QUERY):
        named_nodes += await graphs.nodes_by_name(keys[first : first + _KEYS_PER_QUERY])
    return named_nodes


def _mention_at(text: str, span: tuple[int, int], mentions: Sequence[Mention]) -> Mention:
    start, end = span
    if not 0 <= start < end <= len(text) or not key_of(text[start:end]):
        raise InvalidInput("mention", f"must be characters of the text, from 0 to {len(text)}")
    same = next((mention for mention in mentions if (mention.start, mention.end) == span), None)
    return same or Mention(start, end, text[start:end], key_of(text[start:end]), ENTITY)
