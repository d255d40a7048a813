"""The share that names and graphs have in a ranking.

`score = (1 - alpha) x (what it is without) + alpha x graph`. Both run from 0 to 1 and mean the same: a hit
that words and vectors find is a place to begin a walk at and worth its own score there, so that where nothing
leads anywhere the best stays what it is. A passage that is reached is worth what it was reached from, less
what each step costs. Nothing is stretched to fit a scale: two hits of .99 and .98 stay as near to each other.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from conspectus.graph.expansion import GraphCandidates, Reached, Way, reached
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId
from conspectus.model.records import StoredChunk
from conspectus.ports import Candidates, Floats, Index, Probe
from conspectus.retrieval.ranking import EXACT, Keep, Ranked, SearchContext, rank, widened

GRAPH = "graph"
QUESTION_NAMES = "query_entities"
REACHED = "graph_entities"
GRAPH_PLAN = (GRAPH, QUESTION_NAMES, REACHED)
SHOWN = 10
"""So many names of a question are told in its plan."""

Hydrate: TypeAlias = Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]


async def spread(
    context: SearchContext, index: Index, asked: Probe, *, union: Candidates, ranked: Ranked, keep: Keep
) -> Ranked | None:
    """The ranking with what the graph says for each candidate, and with those that only it reached.

    None when a row vanished meanwhile. Where the graph has no weight, or there is nothing to walk over, the
    ranking stays what it was.
    """
    ask, over = context.graph, context.connections
    if ask is None or over is None:
        return ranked
    if not ask.alpha:
        return replace(ranked, plan={GRAPH: "no weight"})
    if over.lack is not None:
        return replace(ranked, plan={GRAPH: "not walked"}, notices=(f"the graph had no say: {over.lack}",))

    async def allowed(chunks: Sequence[int]) -> frozenset[int]:
        found = await index.score(np.sort(np.asarray(chunks, dtype=np.int64)), asked)
        return frozenset(found.ids.tolist())

    scores = dict(zip(ranked.candidates.ids.tolist(), _scores(ranked).tolist(), strict=True))
    found = await reached(context.question, scores, ask, over=over, allowed=allowed)
    ways = np.fromiter(sorted(found.ways), dtype=np.int64, count=len(found.ways))
    union = await widened(index, asked, union, np.setdiff1d(ways, union.ids))
    read = replace(context, hydrate=_knowing(ranked.rows, context.hydrate))
    again = await rank(read, index, asked, union, keep=keep.with_those(ways))
    return None if again is None else _weighed(again, found, ask, over)


def _knowing(rows: Mapping[int, StoredChunk], read: Hydrate) -> Hydrate:
    """How to read rows, of which some have just been read."""

    async def hydrate(ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        further = [each for each in ids if each not in rows]
        found = {each.chunk.id: each for each in await read(further)} if further else {}
        return [found[each] if each in found else rows[each] for each in ids if each in found or each in rows]

    return hydrate


def _weighed(ranked: Ranked, found: Reached, ask: GraphExpansion, over: GraphCandidates) -> Ranked:
    ids = ranked.candidates.ids.tolist()
    nowhere = Way(0.0)
    ways = [found.ways.get(each, nowhere) for each in ids]
    parts: dict[str, Floats] = {name: (1.0 - ask.alpha) * each for name, each in ranked.parts.items()}
    parts[GRAPH] = ask.alpha * np.array([way.value for way in ways], dtype=np.float64)
    return replace(
        ranked,
        parts=parts,
        through={each: way.through for each, way in zip(ids, ways, strict=True) if way.through},
        plan=_described(found, ask),
        notices=over.notices,
    )


def _scores(ranked: Ranked) -> Floats:
    """From 0 to 1, so without what lifts exact matches above all others."""
    parts = [each for name, each in ranked.parts.items() if name != EXACT]
    scores: Floats = np.sum(parts, axis=0, dtype=np.float64)
    return scores


def _described(found: Reached, ask: GraphExpansion) -> dict[str, str]:
    """What the graph did, in words."""
    shown = ", ".join(found.named[:SHOWN]) + (", …" if len(found.named) > SHOWN else "")
    return {
        GRAPH: f"weight {ask.alpha:.2f}, hops {ask.hops}",
        QUESTION_NAMES: shown or "none that is known",
        REACHED: str(sum(1 for way in found.ways.values() if way.through)),
    }
