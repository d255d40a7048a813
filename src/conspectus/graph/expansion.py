"""Graph expansion: candidates that are connected with the query and its best hits by entities and edges.

A path has a value from 0 to 1: the value of its start, times a factor for each step. A passage keeps only its
best path, which is its score and can be shown. A step to a passage with the name as its title costs little, a
step to a passage that only mentions it costs more. Both costs grow with the number of such passages, because
a name that many passages mention says little about each.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from math import ceil, sqrt
from typing import Final, TypeAlias, TypeVar

from conspectus.deferred import dataclass
from conspectus.model.graph import GraphExpansion, Neighbor, Node, Traversal
from conspectus.model.ids import ChunkId
from conspectus.ports.graphs import Mentioned, TextPassage
from conspectus.text.analyzer import ALL_STOP_WORDS
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

Begin = TypeVar("Begin", int, str)


@dataclass(frozen=True, slots=True)
class Way:
    """The path to an item: the names on it, as spelled, and its value.

    `start` is the hit that it begins with, 0 for the query.
    """

    value: float
    through: tuple[str, ...] = ()
    start: int = 0

    def on(self, share: float, *names: str) -> "Way":
        """Extend the path by one step."""
        return Way(self.value * share, (*self.through, *names), self.start)


Ways: TypeAlias = tuple[Way, ...]
"""The best path to an end, and the best one with another start, if there is any."""


def seeds(scores: Mapping[int, float]) -> dict[int, Way]:
    """Return the best hits as starts. Their value is their score, reduced by the distance from the best.

    The value is that of paths to other passages. It is no graph score of the hit itself.
    """
    first = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:MAX_SEEDS]
    top = max(scores.values(), default=0.0)
    return {
        chunk: Way(min(scores[chunk], 1.0) * (scores[chunk] / top) ** 2, start=chunk)
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
        if len(key) > 1 and key not in ALL_STOP_WORDS and not article:
            names.append(Phrase(first, last, texts[first, last], key))
    return names


def select_known_names(candidates: Sequence[Phrase], existing: Iterable[str]) -> dict[str, Ways]:
    """Return the phrases that are known names, except for parts of longer names."""
    there = frozenset(existing)
    used_words: set[int] = set()
    ways: dict[str, Ways] = {}
    for phrase in candidates:
        words = range(phrase.first, phrase.last)
        if phrase.key in there and used_words.isdisjoint(words):
            used_words.update(words)
            ways.setdefault(phrase.key, (Way(NAMED, (phrase.text,)),))
    return ways


def names_in(ways: Mapping[int, Ways], passages: Sequence[TextPassage]) -> dict[str, Ways]:
    """Return the entities in reached passages, each with its best paths."""
    return best(
        (
            (key, way.on(STEP, spelt))
            for passage in passages
            for way in ways[passage.chunk]
            for key, spelt in passage.names.items()
        ),
        MAX_NAMES,
    )


def passages_with(names: Mapping[str, Ways], mentioned: Mapping[str, Mentioned]) -> dict[int, Ways]:
    """Return the passages that mention reached entities, each with its best paths.

    No path leads back to the hit that it begins with.
    """
    steps: list[tuple[Way, Iterable[int]]] = []
    for key, where in mentioned.items():
        for way in names[key]:
            if where.about:
                steps.append((way.on(1.0 / sqrt(len(where.about))), where.about))
            steps.append((way.on(MENTION / sqrt(len(where.chunks))), where.chunks))
    chunk_ways: dict[int, Ways] = {}
    for way, chunks in sorted(steps, key=lambda step: _rank(step[0])):
        if way.value < MIN_VALUE:
            break
        for chunk in chunks:
            ways = chunk_ways.get(chunk, ())
            if chunk != way.start and all(way.start != other.start for other in ways[:2]):
                chunk_ways[chunk] = (*ways, way)[:2]
    return _best_ends(chunk_ways, MAX_PASSAGES)


def max_mentions(value: float) -> int:
    """Return the number of passages beyond which none that mentions an entity of this value is reached."""
    if value * MENTION >= MIN_VALUE:
        return ceil((value * MENTION / MIN_VALUE) ** 2)
    return 0


def find_starts(names: Mapping[str, Ways], nodes_by_key: Sequence[tuple[str, Node]]) -> dict[str, Ways]:
    """Return the nodes that have a reached name, each with its best paths."""
    return best(((node.id, way) for key, node in nodes_by_key for way in names[key]), MAX_NAMES)


def names_beyond(
    nodes: Mapping[str, Ways], nodes_by_key: Sequence[tuple[str, Node]], walked: Sequence[Neighbor]
) -> dict[str, Ways]:
    """Return other names of the nodes, and the names of nodes reached by edges."""
    steps = [
        (other, way.on(1.0, *(() if key_of(node.name) == key else (node.name,))))
        for key, node in nodes_by_key
        for way in nodes.get(node.id, ())
        for other in keys_of(node.name, node.aliases)
    ]
    spelt = {node.id: node.name for _, node in nodes_by_key} | {
        neighbor.node.id: neighbor.node.name for neighbor in walked
    }
    for neighbor in walked:
        over = [spelt.get(step, step) for step in neighbor.path[1:-1]]
        for begin in nodes.get(neighbor.path[0], ()):
            way = begin.on(neighbor.decay * STEP**neighbor.hop, *over, neighbor.node.name)
            steps += [(key, way) for key in keys_of(neighbor.node.name, neighbor.node.aliases)]
    return best(steps, MAX_NAMES)


def best(steps: Iterable[tuple[Begin, Way]], maximum: int) -> dict[Begin, Ways]:
    """Keep the best paths to each end, for the `maximum` best ends.

    Ties: the shorter path, then its names, then its start.
    """
    ends: dict[Begin, Ways] = {}
    for end, way in steps:
        ways = ends.get(end, ())
        # Most steps lead to an end with two better paths.
        if way.value >= (ways[1].value if len(ways) > 1 else MIN_VALUE):
            ends[end] = _with_way(ways, way)
    return _best_ends(ends, maximum)


def _with_way(ways: Ways, way: Way) -> Ways:
    """Return the best path of some, and the best one with another start."""
    first, *others = sorted((*ways, way), key=_rank)
    return (first, *[other for other in others if other.start != first.start][:1])


def _best_ends(ends: Mapping[Begin, Ways], maximum: int) -> dict[Begin, Ways]:
    ranked = sorted(ends.items(), key=lambda pair: (_rank(pair[1][0]), pair[0]))
    return dict(ranked[:maximum])


def _rank(way: Way) -> tuple[float, int, tuple[str, ...], int]:
    return (-way.value, len(way.through), way.through, way.start)


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


async def traverse(
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
    asked_for = select_known_names(candidates, [*mentioned, *(key for key, _ in nodes)])
    begun = {chunk: (way,) for chunk, way in seeds(scores).items()}
    frontier: dict[int, Ways] = dict(begun)
    paths: dict[int, Ways] = {}
    direct = passages_with(asked_for, {key: mentioned[key] for key in asked_for if key in mentioned})
    fresh = await _into(paths, direct, begun.keys(), allowed)
    names = asked_for
    for hop in range(ask.hops):
        frontier = _merge(frontier, fresh)
        if frontier:
            passages = await over.names_of([ChunkId(chunk) for chunk in frontier])
            names = _merge(names, names_in(frontier, passages))
        if not hop:
            names = _merge(names, await _find_names_beyond(names, ask.hops, over))
        near = {key: max_mentions(ways[0].value) for key, ways in names.items()}
        chunk_ways = passages_with(names, await over.passages(near)) if names else {}
        fresh = await _into(paths, chunk_ways, begun.keys(), allowed)
        frontier, names = dict(list(fresh.items())[:FRONTIER]), {}
        if not fresh:
            break
    best_paths = {chunk: ways[0] for chunk, ways in paths.items()}
    return Reached(best_paths, tuple(ways[0].through[0] for ways in asked_for.values()))


def _merge(ends: Mapping[Begin, Ways], more: Mapping[Begin, Ways]) -> dict[Begin, Ways]:
    """Return the ends of both, each with its best paths; new ones last."""
    merged = dict(ends)
    for end, ways in more.items():
        for way in ways:
            merged[end] = _with_way(merged.get(end, ()), way)
    return merged


async def _into(
    paths: dict[int, Ways], chunk_ways: Mapping[int, Ways], starts: AbstractSet[int], allowed: Allowed
) -> dict[int, Ways]:
    """Merge better paths into `paths`, and return the passages that changed, best first.

    Passages that are neither `starts` nor reached yet must be allowed.
    """
    better = {
        chunk: ways
        for chunk, ways in chunk_ways.items()
        if chunk not in paths or ways[0].value > paths[chunk][0].value
    }
    there = starts | paths.keys()
    unknown = [chunk for chunk in better if chunk not in there]
    there |= await allowed(unknown) if unknown else frozenset()
    fresh = {chunk: ways for chunk, ways in better.items() if chunk in there}
    paths.update(_merge({chunk: paths[chunk] for chunk in fresh if chunk in paths}, fresh))
    return fresh


async def _find_names_beyond(
    names: Mapping[str, Ways], hops: int, over: GraphCandidates
) -> Mapping[str, Ways]:
    """Return the names that graphs add: other names of reached entities, and the names behind edges."""
    nodes_by_key = await over.nodes_by_name(list(names)) if names else ()
    nodes = find_starts(names, nodes_by_key)
    if not nodes:
        return {}
    if not hops:
        return names_beyond(nodes, nodes_by_key, ())
    traversal = Traversal(hops=hops, limit=MAX_NEIGHBORS)
    walked = list(await over.walk(list(nodes), traversal))
    # A traversal does not return its own starts, and a hit may mention what an edge of the query leads to.
    of_query = [node for node, ways in nodes.items() if any(way.start == 0 for way in ways)]
    if of_query and len(of_query) < len(nodes):
        walked += await over.walk(of_query, traversal)
    return names_beyond(nodes, nodes_by_key, walked)
