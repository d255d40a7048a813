"""What names and graphs connect with a question and with what was found for it, as far as it can be seen."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from conspectus.graph.expansion import (
    Way,
    best,
    named,
    names_beyond,
    names_in,
    passages_with,
    phrases,
    seeds,
    starts,
)
from conspectus.model.graph import GraphExpansion, Neighbor, Node, Traversal
from conspectus.model.ids import ChunkId
from conspectus.ports.graphs import Mentioned, TextPassage

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
