"""Graph expansion: candidates that are connected with the query and its best hits by entities and edges.

A path has a value from 0 to 1: the value of its start, times a factor for each step. A passage keeps only its
best path, which is its score and can be shown. A step to a passage with the name as its title costs little, a
step to a passage that only mentions it costs more. Both costs grow with the number of such passages, because
a name that many passages mention says little about each.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from math import ceil, sqrt
from typing import Final, TypeVar

from conspectus.deferred import dataclass
from conspectus.model.graph import GraphExpansion, Neighbor, Node, Traversal
from conspectus.model.ids import ChunkId
from conspectus.ports.graphs import Mentioned, TextPassage
from conspectus.text.analyzer import STOP_WORDS
from conspectus.text.name_keys import key_of, keys_of

MAX_SEEDS: Final = 10
"""Maximum number of hits that a traversal starts from."""
NAMED: Final = 0.5
"""Value of an entity that the query names."""
STEP: Final = 0.9
"""Factor for a step from a passage to its entities, and from a node to the next."""
MENTION: Final = 0.3
"""Factor for a step to a passage that mentions an entity but is not about it."""
MIN_VALUE: Final = 0.05
"""Paths below this value are dropped."""
MAX_NAMES: Final = 300
MAX_PASSAGES: Final = 200
"""Maximum numbers of entities and passages that a step continues from."""
MAX_WORDS: Final = 150
MAX_NAME_WORDS: Final = 6
"""Maximum numbers of query words that are examined, and of words in an entity name."""

_WORD: Final = re.compile(r"\w(?:[\w'\u2019.&/+#-]*[\w+#])?")
_EMPTY: Final = frozenset().union(*STOP_WORDS.values())

Begin = TypeVar("Begin", int, str)


@dataclass(frozen=True, slots=True)
class Way:
    """The path to an item: the names on it, as spelled, and its value."""

    value: float
    through: tuple[str, ...] = ()

    def on(self, share: float, *names: str) -> "Way":
        """Extend the path by one step."""
        return Way(self.value * share, (*self.through, *names))


def seeds(scores: Mapping[int, float]) -> dict[int, Way]:
    """Return the best hits as starts. Their value is their score, reduced by the distance from the best.

    The best hit keeps its score, so graph scores are comparable with keyword and vector scores.
    """
    first = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:MAX_SEEDS]
    top = max(scores.values(), default=0.0)
    return {
        chunk: Way(min(scores[chunk], 1.0) * (scores[chunk] / top) ** 2)
        for chunk in first
        if scores[chunk] > 0.0
    }


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words [first, last) of a query that may be a name, as written and as a key."""

    first: int
    last: int
    text: str
    key: str


def phrases(question: str) -> list[Phrase]:
    """Return all phrases of a query that may be a name, longest first."""
    words = [word.span() for word in _WORD.finditer(question)][:MAX_WORDS]
    lengths = range(min(MAX_NAME_WORDS, len(words)), 0, -1)
    spans = [(first, first + length) for length in lengths for first in range(len(words) - length + 1)]
    texts = {(first, last): question[words[first][0] : words[last - 1][1]] for first, last in spans}
    keys = {span: key_of(text) for span, text in texts.items()}
    names = []
    for first, last in spans:
        key = keys[first, last]
        article = key == keys.get((first + 1, last))
        if len(key) > 1 and key not in _EMPTY and not article:
            names.append(Phrase(first, last, texts[first, last], key))
    return names


def named(candidates: Sequence[Phrase], existing: Iterable[str]) -> dict[str, Way]:
    """Return the phrases that are known names, except for parts of longer names."""
    there = frozenset(existing)
    used_words: set[int] = set()
    ways: dict[str, Way] = {}
    for phrase in candidates:
        words = range(phrase.first, phrase.last)
        if phrase.key in there and used_words.isdisjoint(words):
            used_words.update(words)
            ways.setdefault(phrase.key, Way(NAMED, (phrase.text,)))
    return ways


def names_in(ways: Mapping[int, Way], passages: Sequence[TextPassage]) -> dict[str, Way]:
    """Return the entities in reached passages, each with its best path."""
    names: dict[str, Way] = {}
    last = 0.0, 0
    for passage in sorted(passages, key=lambda passage: _rank(ways[passage.chunk].on(STEP))):
        way = ways[passage.chunk]
        value = way.value * STEP
        if value < MIN_VALUE or (len(names) >= MAX_NAMES and last != (value, len(way.through))):
            break
        last = value, len(way.through)
        for key, spelt in passage.names.items():
            better = names.get(key)
            # Most names are in a better passage too, and need no path.
            if better is None or (better.value == value and _rank(way.on(STEP, spelt)) < _rank(better)):
                names[key] = way.on(STEP, spelt)
    return best(names.items(), MAX_NAMES)


def passages_with(names: Mapping[str, Way], mentioned: Mapping[str, Mentioned]) -> dict[int, Way]:
    """Return the passages that mention reached entities, each with its best path."""
    steps: list[tuple[Way, Iterable[int]]] = []
    for key, where in mentioned.items():
        if where.about:
            steps.append((names[key].on(1.0 / sqrt(len(where.about))), where.about))
        steps.append((names[key].on(MENTION / sqrt(len(where.chunks))), where.chunks))
    chunk_ways: dict[int, Way] = {}
    last = Way(0.0)
    for way, chunks in sorted(steps, key=lambda step: _rank(step[0])):
        if way.value < MIN_VALUE or (len(chunk_ways) >= MAX_PASSAGES and way != last):
            break
        last = way
        for chunk in chunks:
            chunk_ways.setdefault(chunk, way)
    return best(chunk_ways.items(), MAX_PASSAGES)


def max_mentions(value: float) -> int:
    """Return the number of passages beyond which none that mentions an entity of this value is reached."""
    if value * MENTION >= MIN_VALUE:
        return ceil((value * MENTION / MIN_VALUE) ** 2)
    return 0


def starts(names: Mapping[str, Way], nodes_by_key: Sequence[tuple[str, Node]]) -> dict[str, Way]:
    """Return the nodes that have a reached name, each with its best path."""
    return best(((node.id, names[key]) for key, node in nodes_by_key), MAX_NAMES)


def names_beyond(
    nodes: Mapping[str, Way], nodes_by_key: Sequence[tuple[str, Node]], walked: Sequence[Neighbor]
) -> dict[str, Way]:
    """Return other names of the nodes, and the names of nodes reached by edges."""
    steps = [
        (other, nodes[node.id].on(1.0, *(() if key_of(node.name) == key else (node.name,))))
        for key, node in nodes_by_key
        if node.id in nodes
        for other in keys_of(node.name, node.aliases)
    ]
    spelt = {node.id: node.name for _, node in nodes_by_key} | {
        neighbor.node.id: neighbor.node.name for neighbor in walked
    }
    for neighbor in walked:
        begin = nodes.get(neighbor.path[0])
        if begin is not None:
            over = [spelt.get(step, step) for step in neighbor.path[1:-1]]
            way = begin.on(neighbor.decay * STEP**neighbor.hop, *over, neighbor.node.name)
            steps += [(key, way) for key in keys_of(neighbor.node.name, neighbor.node.aliases)]
    return best(steps, MAX_NAMES)


def best(steps: Iterable[tuple[Begin, Way]], maximum: int) -> dict[Begin, Way]:
    """Keep the best path to each end, for the `most` best ends. Ties: the shorter path, then its names."""
    ways: dict[Begin, Way] = {}
    for end, way in steps:
        best_way = ways.get(end)
        if way.value < MIN_VALUE or (best_way is not None and way.value < best_way.value):
            continue
        if best_way is None or _rank(way) < _rank(best_way):
            ways[end] = way
    ranked = sorted(ways.items(), key=lambda item: (_rank(item[1]), item[0]))
    return dict(ranked[:maximum])


def _rank(way: Way) -> tuple[float, int, tuple[str, ...]]:
    return (-way.value, len(way.through), way.through)


MAX_NEIGHBORS = 200
FRONTIER = 50
"""Maximum number of newly reached passages that a step continues from."""


@dataclass(frozen=True, slots=True)
class GraphCandidates:
    """Access to entities and graphs, limited to what the user may read.

    `lack` is the reason why no traversal is possible (None: it is possible). `notices` reports incomplete
    data.
    """

    names_of: Callable[[Sequence[ChunkId]], Awaitable[Sequence[TextPassage]]]
    passages: Callable[[Mapping[str, int]], Awaitable[Mapping[str, Mentioned]]]
    nodes_by_name: Callable[[Sequence[str]], Awaitable[Sequence[tuple[str, Node]]]]
    walk: Callable[[Sequence[str], Traversal], Awaitable[Sequence[Neighbor]]]
    lack: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """The reached passages with their best paths, and the known entities of the query."""

    ways: Mapping[int, Way] = field(default_factory=dict)
    named: tuple[str, ...] = ()


Allowed = Callable[[Sequence[int]], Awaitable[frozenset[int]]]
"""Returns the passages that match the filter of the query."""


async def reached(
    question: str,
    scores: Mapping[int, float],
    ask: GraphExpansion,
    *,
    over: GraphCandidates,
    allowed: Allowed,
) -> Reached:
    """Traverse from the entities of the query and from the best hits, up to the requested hops.

    Passages that do not match the filter are not reached, and no path leads through them.
    """
    candidates = phrases(question)
    mentioned = (
        await over.passages({phrase.key: max_mentions(1.0) for phrase in candidates}) if candidates else {}
    )
    nodes = await over.nodes_by_name([phrase.key for phrase in candidates]) if candidates else ()
    asked_for = named(candidates, [*mentioned, *(key for key, _ in nodes)])
    ways: dict[int, Way] = seeds(scores)
    frontier = dict(ways)
    direct = passages_with(asked_for, {key: mentioned[key] for key in asked_for if key in mentioned})
    fresh = await _into(ways, direct, allowed)
    names = asked_for
    for hop in range(ask.hops):
        frontier |= fresh
        if frontier:
            names = names | names_in(frontier, await over.names_of([ChunkId(chunk) for chunk in frontier]))
        if not hop:
            more = await _find_names_beyond(names, ask.hops, over)
            names = best([*names.items(), *more.items()], len(names) + len(more)) if more else names
        near = {key: max_mentions(way.value) for key, way in names.items()}
        chunk_ways = passages_with(names, await over.passages(near)) if names else {}
        fresh = await _into(ways, chunk_ways, allowed)
        frontier, names = dict(list(fresh.items())[:FRONTIER]), {}
        if not fresh:
            break
    return Reached(ways, tuple(way.through[0] for way in asked_for.values()))


async def _into(ways: dict[int, Way], chunk_ways: Mapping[int, Way], allowed: Allowed) -> dict[int, Way]:
    """Merge better paths into `ways`, and return the passages that changed, best first."""
    before = {chunk: ways[chunk].value for chunk in chunk_ways if chunk in ways}
    better = {chunk: way for chunk, way in chunk_ways.items() if way.value > before.get(chunk, 0.0)}
    unknown = [chunk for chunk in better if chunk not in ways]
    there = (await allowed(unknown) if unknown else frozenset()) | ways.keys()
    fresh = {chunk: way for chunk, way in better.items() if chunk in there}
    ways.update(fresh)
    return fresh


async def _find_names_beyond(names: Mapping[str, Way], hops: int, over: GraphCandidates) -> Mapping[str, Way]:
    """Return the names that graphs add: other names of reached entities, and the names behind edges."""
    nodes_by_key = await over.nodes_by_name(list(names)) if names else ()
    nodes = starts(names, nodes_by_key)
    if not nodes:
        return {}
    walked = await over.walk(list(nodes), Traversal(hops=hops, limit=MAX_NEIGHBORS)) if hops else ()
    return names_beyond(nodes, nodes_by_key, walked)
