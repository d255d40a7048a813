"""Scores from a graph: candidates that are connected with the query and its best hits."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from conspectus.graph.expansion import GraphCandidates, Reached, Way, reached
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId
from conspectus.model.records import StoredChunk
from conspectus.ports import Candidates, Floats, Index, Probe
from conspectus.retrieval.candidates import CandidateSelection, widened
from conspectus.retrieval.plan import GRAPH, QUESTION_NAMES, REACHED
from conspectus.retrieval.ranking import EXACT, Ranked, SearchContext, rank

MAX_SHOWN = 10
"""Maximum number of query entities in the plan."""
Hydrate: TypeAlias = Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]


async def spread(
    context: SearchContext,
    index: Index,
    probe: Probe,
    *,
    union: Candidates,
    ranked: Ranked,
    keep: CandidateSelection,
) -> Ranked | None:
    """Add graph scores to the ranking, and the candidates that only the graph reached.

    Returns None if a row was deleted meanwhile. If the graph has no weight or no traversal is possible, the
    ranking is unchanged.
    """
    ask, over = context.graph, context.connections
    if ask is None or over is None:
        return ranked
    if not ask.alpha:
        return replace(ranked, plan={GRAPH: "no weight"})
    if over.lack is not None:
        return replace(
            ranked, plan={GRAPH: "not walked"}, notices=(f"graph scores were not used: {over.lack}",)
        )

    async def allowed(chunks: Sequence[int]) -> frozenset[int]:
        found = await index.score(np.sort(np.asarray(chunks, dtype=np.int64)), probe)
        return frozenset(found.ids.tolist())

    scores = dict(zip(ranked.candidates.ids.tolist(), _scores(ranked).tolist(), strict=True))
    found = await reached(context.query, scores, ask, over=over, allowed=allowed)
    union = await widened(index, probe, union, found.ways)
    read = replace(context, hydrate=_knowing(ranked.rows, context.hydrate))
    again = await rank(read, index, probe, union, keep=keep.with_those(found.ways))
    return None if again is None else _weighed(again, found, ask, over)


def _knowing(rows: Mapping[int, StoredChunk], read: Hydrate) -> Hydrate:
    """Return a function that reads only rows that have not been read yet."""

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
    """Return scores from 0 to 1, without the part that lifts exact matches above all others."""
    parts = [each for name, each in ranked.parts.items() if name != EXACT]
    scores: Floats = np.sum(parts, axis=0, dtype=np.float64)
    return scores


def _described(found: Reached, ask: GraphExpansion) -> dict[str, str]:
    """Describe how the graph was used, for the plan."""
    shown = ", ".join(found.named[:MAX_SHOWN]) + (", …" if len(found.named) > MAX_SHOWN else "")
    return {
        GRAPH: f"weight {ask.alpha:.2f}, hops {ask.hops}",
        QUESTION_NAMES: shown or "none that is known",
        REACHED: str(sum(1 for way in found.ways.values() if way.through)),
    }
