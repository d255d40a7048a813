"""Entities and relations of memories in the graph of an agent's context."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Final

from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.mapping import time_of
from conspectus.graph.relations import Mention, relations
from conspectus.model.graph import MENTIONED_WITH, EntityLink
from conspectus.model.memory import Memory

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
