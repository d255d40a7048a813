"""Graph expansion: candidates that names and edges connect with a query and its first results.

A way has a value from 0 to 1: what its beginning is worth, times a factor for each step, so that of several
ways to a passage one, the best, says how near it is and can be shown. A step to the passages that have a name
as their title loses little, one to those that only mention it more; both lose more the more such passages
there are, since a name that many passages mention tells little of each.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Final, TypeVar

from conspectus.graph.name_keys import key_of, keys_of
from conspectus.model.graph import GraphExpansion, Neighbor, Node, Traversal
from conspectus.model.ids import ChunkId
from conspectus.ports.graphs import Mentioned, TextPassage
from conspectus.text.analyzer import STOP_WORDS

MOST_SEEDS: Final = 10
"""So many of the best hits are places to begin at."""
NAMED: Final = 0.5
"""What a name is worth that the question itself gives."""
STEP: Final = 0.9
"""What is left of a passage's value for the names in it, and of a node's for the next."""
MENTION: Final = 0.3
"""What is left on the way to a passage that mentions a name but is not about it."""
LEAST: Final = 0.05
"""Ways of less value lead nowhere."""
FEW: Final = ceil((MENTION / LEAST) ** 2)
"""Of a name that more passages mention, only those that are about it can be reached."""
MOST_NAMES: Final = 300
MOST_PASSAGES: Final = 200
"""Only the best so many names, and passages, are gone on from."""
MOST_WORDS: Final = 150
LONGEST_NAME: Final = 6
"""So many words of a question are looked at, and a name in it has at most so many."""

_WORD: Final = re.compile(r"\w(?:[\w'\u2019.&/+#-]*[\w+#])?")
_EMPTY: Final = frozenset().union(*STOP_WORDS.values())

Begin = TypeVar("Begin", int, str)


@dataclass(frozen=True, slots=True)
class Way:
    """How something was reached: over which names, as they are spelt, and what the way is worth."""

    value: float
    through: tuple[str, ...] = ()

    def on(self, share: float, *names: str) -> "Way":
        """The way one step further."""
        return Way(self.value * share, (*self.through, *names))


def seeds(scores: Mapping[int, float]) -> dict[int, Way]:
    """The best of the hits as beginnings: worth their score, less the further it is behind the best one.

    The best is worth what it scored, so that what a walk adds compares with what words and vectors say.
    """
    first = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))[:MOST_SEEDS]
    top = max(scores.values(), default=0.0)
    return {
        chunk: Way(min(scores[chunk], 1.0) * (scores[chunk] / top) ** 2)
        for chunk in first
        if scores[chunk] > 0.0
    }


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words [first, last) of a question that may be a name, as they are written and compared."""

    first: int
    last: int
    text: str
    key: str


def phrases(question: str) -> list[Phrase]:
    """Everything in a question that may be a name, longest first."""
    words = [each.span() for each in _WORD.finditer(question)][:MOST_WORDS]
    found = []
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        for first in range(len(words) - length + 1):
            last = first + length
            text = question[words[first][0] : words[last - 1][1]]
            key = key_of(text)
            article = length > 1 and key == key_of(question[words[first + 1][0] : words[last - 1][1]])
            if len(key) > 1 and key not in _EMPTY and not article:
                found.append(Phrase(first, last, text, key))
    return found


def named(said: Sequence[Phrase], known: Iterable[str]) -> dict[str, Way]:
    """Those of the phrases that are known as names; words of a longer name are no name by themselves."""
    there = frozenset(known)
    taken: set[int] = set()
    found: dict[str, Way] = {}
    for phrase in said:
        words = range(phrase.first, phrase.last)
        if phrase.key in there and taken.isdisjoint(words):
            taken.update(words)
            found.setdefault(phrase.key, Way(NAMED, (phrase.text,)))
    return found


def names_in(ways: Mapping[int, Way], passages: Sequence[TextPassage]) -> dict[str, Way]:
    """The names in passages that were reached, each by the best way."""
    steps = (
        (key, ways[passage.chunk].on(STEP, spelt))
        for passage in passages
        for key, spelt in sorted(passage.names.items())
    )
    return best(steps, MOST_NAMES)


def passages_with(names: Mapping[str, Way], mentioned: Mapping[str, Mentioned]) -> dict[int, Way]:
    """The passages that mention names that were reached, each by the best way."""
    steps: list[tuple[int, Way]] = []
    for key, where in mentioned.items():
        about = names[key].on(1.0 / sqrt(max(len(where.about), 1)))
        beside = names[key].on(MENTION / sqrt(len(where.chunks)))
        if about.value >= LEAST:
            steps += [(int(chunk), about) for chunk in sorted(where.about)]
        if beside.value >= LEAST:
            steps += [(int(chunk), beside) for chunk in where.chunks if chunk not in where.about]
    return best(steps, MOST_PASSAGES)


def starts(names: Mapping[str, Way], called: Sequence[tuple[str, Node]]) -> dict[str, Way]:
    """The nodes that are called by names that were reached."""
    return best(((node.id, names[key]) for key, node in called), MOST_NAMES)


def names_beyond(
    nodes: Mapping[str, Way], called: Sequence[tuple[str, Node]], walked: Sequence[Neighbor]
) -> dict[str, Way]:
    """What the nodes are called besides, and what those are called that edges lead to from them."""
    steps = [
        (other, nodes[node.id].on(1.0, *_also(node.name, key)))
        for key, node in called
        if node.id in nodes
        for other in keys_of(node.name, node.aliases)
    ]
    spelt = {node.id: node.name for _, node in called} | {each.node.id: each.node.name for each in walked}
    for each in walked:
        begin = nodes.get(each.path[0])
        if begin is not None:
            over = [spelt.get(step, step) for step in each.path[1:-1]]
            way = begin.on(each.decay * STEP**each.hop, *over, each.node.name)
            steps += [(key, way) for key in keys_of(each.node.name, each.node.aliases)]
    return best(steps, MOST_NAMES)


def best(steps: Iterable[tuple[Begin, Way]], most: int) -> dict[Begin, Way]:
    """The best way to each end, of the `most` best ends; of equal ways the shorter, then by their names."""
    found: dict[Begin, Way] = {}
    for end, way in steps:
        known = found.get(end)
        if way.value < LEAST or (known is not None and way.value < known.value):
            continue
        if known is None or _rank(way) < _rank(known):
            found[end] = way
    kept = sorted(found.items(), key=lambda item: (_rank(item[1]), item[0]))
    return dict(kept[:most])


def _rank(way: Way) -> tuple[float, int, tuple[str, ...]]:
    return (-way.value, len(way.through), way.through)


def _also(name: str, key: str) -> tuple[str, ...]:
    """The name of a node where it was found by another one."""
    return () if key_of(name) == key else (name,)


MOST_NEIGHBOURS = 200
FRONTIER = 50
"""So many passages that were newly reached are gone on from."""


@dataclass(frozen=True, slots=True)
class GraphCandidates:
    """The ways to ask names and graphs, each of which only knows what the person may see.

    `lack` says why there is nothing to walk over (None: there is), `notices` what is not known yet.
    """

    names_of: Callable[[Sequence[ChunkId]], Awaitable[Sequence[TextPassage]]]
    passages: Callable[[Sequence[str]], Awaitable[Mapping[str, Mentioned]]]
    called: Callable[[Sequence[str]], Awaitable[Sequence[tuple[str, Node]]]]
    walk: Callable[[Sequence[str], Traversal], Awaitable[Sequence[Neighbor]]]
    lack: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """The passages that were reached, each by its best way, and the names of the question that were known."""

    ways: Mapping[int, Way] = field(default_factory=dict)
    named: tuple[str, ...] = ()


Allowed = Callable[[Sequence[int]], Awaitable[frozenset[int]]]
"""Which of these passages the filter of the question leaves in."""


async def reached(
    question: str,
    scores: Mapping[int, float],
    ask: GraphExpansion,
    *,
    over: GraphCandidates,
    allowed: Allowed,
) -> Reached:
    """Walk from the names of the question and from the best hits, as many hops as were asked for.

    A passage that the question's filter leaves out is not reached, and so nothing is through it.
    """
    said = phrases(question)
    mentioned = await over.passages([phrase.key for phrase in said]) if said else {}
    nodes = await over.called([phrase.key for phrase in said]) if said else ()
    asked_for = named(said, [*mentioned, *(key for key, _ in nodes)])
    ways: dict[int, Way] = seeds(scores)
    frontier = dict(ways)
    direct = passages_with(asked_for, {key: mentioned[key] for key in asked_for if key in mentioned})
    fresh = await _into(ways, direct, allowed)
    names = asked_for
    for hop in range(ask.hops):
        frontier |= fresh
        if frontier:
            names = names | names_in(frontier, await over.names_of([ChunkId(each) for each in frontier]))
        if not hop:
            names = _better(names, await _beyond(names, ask.hops, over))
        found = passages_with(names, await over.passages(list(names))) if names else {}
        fresh = await _into(ways, found, allowed)
        frontier, names = dict(list(fresh.items())[:FRONTIER]), {}
        if not fresh:
            break
    return Reached(ways, tuple(way.through[0] for way in asked_for.values()))


async def _into(ways: dict[int, Way], found: Mapping[int, Way], allowed: Allowed) -> dict[int, Way]:
    """Take what is reached by a better way than before; what of it is new or better, best first."""
    better = {chunk: way for chunk, way in found.items() if way.value > _value(ways, chunk)}
    unknown = [chunk for chunk in better if chunk not in ways]
    there = (await allowed(unknown) if unknown else frozenset()) | ways.keys()
    fresh = {chunk: way for chunk, way in better.items() if chunk in there}
    ways.update(fresh)
    return fresh


async def _beyond(names: Mapping[str, Way], hops: int, over: GraphCandidates) -> Mapping[str, Way]:
    """What graphs add to the names that were reached: other names of the same, and where edges lead."""
    called = await over.called(list(names)) if names else ()
    nodes = starts(names, called)
    if not nodes:
        return {}
    walked = await over.walk(list(nodes), Traversal(hops=hops, limit=MOST_NEIGHBOURS)) if hops else ()
    return names_beyond(nodes, called, walked)


def _better(names: Mapping[str, Way], more: Mapping[str, Way]) -> dict[str, Way]:
    return best([*names.items(), *more.items()], len(names) + len(more))


def _value(ways: Mapping[int, Way], chunk: int) -> float:
    return ways[chunk].value if chunk in ways else 0.0
