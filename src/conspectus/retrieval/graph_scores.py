"""Scores from a graph: candidates that are connected with the query and its best hits."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from conspectus.graph.expansion import GraphCandidates, Reached, Way, traverse
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId
from conspectus.model.records import StoredChunk
from conspectus.ports import Candidates, Floats, Index, Probe
from conspectus.retrieval.candidates import CandidateSelection, with_extra_candidates
from conspectus.retrieval.plan import GRAPH_ENTITIES_ENTRY, GRAPH_PART, QUERY_ENTITIES_ENTRY
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.retrieval.ranking import IDENTIFIER_PART, Rows, SearchContext, rank

MAX_SHOWN_ENTITIES: Final = 10
"""Maximum number of query entities in the plan."""
Hydrate: TypeAlias = Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]
"""Reads the rows of chunks."""


async def with_graph_scores(
    context: SearchContext,
    index: Index,
    probe: Probe,
    candidates: Candidates,
    *,
    ranked: RankedCandidates,
    selection: CandidateSelection,
) -> RankedCandidates | None:
    """Add graph scores to the ranking, and the candidates that only the graph reached.

    Returns None if a row was deleted meanwhile, unless the context skips those. If the graph has no weight or
    no traversal is possible, the ranking is unchanged.
    """
    expansion, connections = context.graph, context.connections
    if expansion is None or connections is None:
        return ranked
    if not expansion.alpha:
        return replace(ranked, plan={**ranked.plan, GRAPH_PART: "no weight"})
    if connections.lack is not None:
        notice = f"graph scores were not used: {connections.lack}"
        return replace(
            ranked, plan={**ranked.plan, GRAPH_PART: "not walked"}, notices=(*ranked.notices, notice)
        )

    async def select_matching(chunks: Sequence[int]) -> frozenset[int]:
        scored = await index.score(np.sort(np.asarray(chunks, dtype=np.int64)), probe)
        return frozenset(scored.ids.tolist())

    scores = dict(zip(ranked.ids.tolist(), _scores_without_identifiers(ranked).tolist(), strict=True))
    paths = await traverse(context.query, scores, expansion, over=connections, allowed=select_matching)
    candidates = await with_extra_candidates(index, probe, candidates, paths.ways)
    read_context = replace(context, hydrate=_read_others_with(ranked.rows, context.hydrate))
    selection = selection.with_requested(paths.ways)
    ranked_again = await rank(read_context, index, probe, candidates, selection=selection)
    if ranked_again is None:
        return None
    return _with_graph_part(ranked_again, paths, expansion, connections)


def _read_others_with(rows: Rows, hydrate: Hydrate) -> Hydrate:
    """Return a function that reads only rows that have not been read yet."""

    async def read(ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        unread = [chunk for chunk in ids if chunk not in rows]
        all_rows = dict(rows)
        for row in await hydrate(unread) if unread else ():
            all_rows[row.chunk.id] = row
        return [all_rows[chunk] for chunk in ids if chunk in all_rows]

    return read


def _with_graph_part(
    ranked: RankedCandidates, paths: Reached, expansion: GraphExpansion, connections: GraphCandidates
) -> RankedCandidates:
    """Weigh the graph scores against all other parts."""
    ids = ranked.ids.tolist()
    no_path = Way(0.0)
    ways = [paths.ways.get(chunk, no_path) for chunk in ids]
    parts: dict[str, Floats] = {name: (1.0 - expansion.alpha) * part for name, part in ranked.parts.items()}
    parts[GRAPH_PART] = expansion.alpha * np.array([way.value for way in ways], dtype=np.float64)
    return replace(
        ranked,
        parts=parts,
        through={chunk: way.through for chunk, way in zip(ids, ways, strict=True) if way.through},
        plan={**ranked.plan, **_plan_entries(paths, expansion)},
        notices=(*ranked.notices, *connections.notices),
    )


def _scores_without_identifiers(ranked: RankedCandidates) -> Floats:
    """Return scores from 0 to 1, without the part that lifts exact matches above all others."""
    parts = [part for name, part in ranked.parts.items() if name != IDENTIFIER_PART]
    scores: Floats = np.sum(parts, axis=0, dtype=np.float64)
    return scores


def _plan_entries(paths: Reached, expansion: GraphExpansion) -> dict[str, str]:
    """Describe how the graph was used, for the plan."""
    entities = ", ".join(paths.named[:MAX_SHOWN_ENTITIES])
    if len(paths.named) > MAX_SHOWN_ENTITIES:
        entities += ", …"
    return {
        GRAPH_PART: f"weight {expansion.alpha:.2f}, hops {expansion.hops}",
        QUERY_ENTITIES_ENTRY: entities or "none that is known",
        GRAPH_ENTITIES_ENTRY: str(sum(1 for way in paths.ways.values() if way.through)),
    }
