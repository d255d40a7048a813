"""The names in memories, put into a graph with what they stand beside, and out of it again."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

from conspectus.facades.agent.graph import Graph
from conspectus.facades.agent.mapping import said_at
from conspectus.facades.agent.relations import Mention, relations
from conspectus.model.graph import MENTIONED_WITH, EntityLink
from conspectus.model.memory import Memory

EXTRACTED: Final = "extracted"
"""The property of nodes that are in a graph only because a memory mentions them."""
TOGETHER: Final = 6
"""Of so many names in a sentence each is with each; of more, each with the next."""
WEIGHT: Final = 0.5
LONGEST: Final = 5_000
"""Characters that names are looked for in at once."""
_SENTENCE: Final = re.compile(r"[.!?]+\s+|\n+")


async def mentions(graph: Graph, text: str) -> list[Mention]:
    """The names in a text, each with the node of the graph that it means."""
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
    """Put a memory's names into the graph, with what a sentence says of two, else that they stand together.

    How many nodes and edges are new.
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
            "valid_from": said_at(memory),
            "evidence": memory.id,
        }
        for first, second, type, weight in drawn
    ]
    return (await graph.add_nodes(nodes) if nodes else 0, await graph.add_edges(together) if together else 0)


async def disconnect(graph: Graph, names: Iterable[str]) -> int:
    """Take those of these nodes out again that were extracted and have no edge; how many they were."""
    alone = [
        name for name in names if _extracted(await graph.get_node(name)) and not await graph.get_edges(name)
    ]
    return await graph.remove_nodes(alone) if alone else 0


async def _linked(graph: Graph, piece: str) -> Sequence[EntityLink]:
    return await graph.run(
        lambda engine: engine.graph.link(piece, graph=graph.name, collection=graph.desk.collection)
    )


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that names are looked for in at once, cut between sentences, or else words."""
    while len(text) > LONGEST:
        ends = [each.end() for each in _SENTENCE.finditer(text, 0, LONGEST)]
        end = ends[-1] if ends else text.rfind(" ", 0, LONGEST) + 1 or LONGEST
        yield text[:end]
        text = text[end:]
    yield text


def _extracted(node: Mapping[str, Any] | None) -> bool:
    return node is not None and node["properties"].get(EXTRACTED) is True


def _pairs(found: Sequence[Mention]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for sentence in dict.fromkeys(each.sentence for each in found):
        names = list(dict.fromkeys(each.node for each in found if each.sentence == sentence))
        pairs += combinations(names, 2) if len(names) <= TOGETHER else pairwise(names)
    return pairs
