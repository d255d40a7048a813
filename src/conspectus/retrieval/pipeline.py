"""The retrieval pipeline: embed the query, collect candidates, rank them, select hits."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Final

from conspectus.errors import StorageBusy
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.results import QueryTerms, Retrieval
from conspectus.ports import Candidates, Probe
from conspectus.retrieval.candidates import CandidateSelection, collect_candidates
from conspectus.retrieval.first_mention import with_first_mention_part
from conspectus.retrieval.fusion import WORDS_ONLY_FUSION
from conspectus.retrieval.graph_scores import with_graph_scores
from conspectus.retrieval.plan import QueryPlan
from conspectus.retrieval.query_embedding import prepare_query
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.retrieval.ranking import SearchContext, rank
from conspectus.retrieval.selection import select_hits
from conspectus.retrieval.statements import with_statement_parts
from conspectus.text.analyzer import analyzer_for

COMPLETE_ATTEMPTS: Final = 5
"""Number of searches for all documents. Later ones leave out what was replaced meanwhile."""
MAX_ATTEMPTS: Final = 10
"""Maximum number of searches while documents are replaced."""
REPLACED_NOTICE: Final = "documents were replaced while they were read, and some may be missing; search again"
MAX_INLINE_HITS: Final = 200
"""Most hits that are selected on the event loop, which takes about a millisecond."""


class Stopwatch:
    """Measures milliseconds per named step."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._last = perf_counter()

    def note_step(self, step: str) -> None:
        """Add the time since the last call to a step."""
        now = perf_counter()
        self.times[step] = self.times.get(step, 0.0) + (now - self._last) * 1_000
        self._last = now


async def search(query: Query, context: SearchContext, *, requested: Sequence[ChunkId] = ()) -> Retrieval:
    """Return the hits for a query, best first. Requested chunks are ranked even if no retriever finds them.

    Documents that are replaced during each of several attempts are missing, which a notice says. Raises
    StorageBusy if all of them are.
    """
    watch = Stopwatch()
    plan, probe = await prepare_query(
        query, context.filter, context.embedder, language=context.collection.language
    )
    probe = replace(probe, sources=context.sources)
    if plan.words_only:
        context = replace(context, fusion=WORDS_ONLY_FUSION)
    watch.note_step("embed_query")
    selection = _selection_for(query, plan, context, requested)
    feedback_parts: Mapping[int, float] = {}
    if context.feedback is not None:
        feedback_parts = context.feedback.parts(query.query, probe.vector)
    index = context.index
    for attempt in range(MAX_ATTEMPTS):
        if attempt == COMPLETE_ATTEMPTS:
            context = replace(context, skips_deleted=True)
            plan = replace(plan, notices=(*plan.notices, REPLACED_NOTICE))
        ids = (*selection.requested, *map(ChunkId, feedback_parts))
        candidates = await collect_candidates(index, probe, ids, language=context.collection.language)
        if feedback_parts:
            context, selection = _with_feedback(context, selection, feedback_parts, candidates)
        watch.note_step("index_search")
        ranked = await rank(context, index, probe, candidates, selection=selection)
        watch.note_step("rank")
        if ranked is not None and context.graph is not None:
            ranked = await with_graph_scores(
                context, index, probe, candidates, ranked=ranked, selection=selection
            )
            watch.note_step("graph_traversal")
        if ranked is not None and (ranked.rows or not context.skips_deleted or not len(candidates.ids)):
            retrieval = await _select(query, plan, context, probe, ranked, requested)
            return replace(retrieval, timings=watch.times)
        index = await context.refreshed()
        watch.note_step("index_catch_up")
    raise StorageBusy("documents changed while they were read; try again")


def _selection_for(
    query: Query, plan: QueryPlan, context: SearchContext, requested: Sequence[ChunkId]
) -> CandidateSelection:
    """Return which candidates are ranked: all of them if the query asks for a first mention."""
    return CandidateSelection(
        limit=plan.depth if plan.first_mention else query.limit,
        requested=(*requested, *context.thread_chunks),
        reorders=plan.min_similarity is not None or context.ranking_context is not None,
    )


async def _select(
    query: Query,
    plan: QueryPlan,
    context: SearchContext,
    probe: Probe,
    ranked: RankedCandidates,
    requested: Sequence[ChunkId],
) -> Retrieval:
    """Return the hits of the ranked candidates, with the terms of the query."""
    if not context.multiplies:
        ranked = with_statement_parts(query.query, ranked, context.space)
        if plan.first_mention:
            analyzer = analyzer_for(context.collection.language)
            ranked = with_first_mention_part(plan.first_mention, ranked, analyzer)
    select = partial(
        select_hits, query, plan, ranked, ranking_context=context.ranking_context, requested=requested
    )
    retrieval = select() if query.limit <= MAX_INLINE_HITS else await asyncio.to_thread(select)
    terms: dict[str, QueryTerms] = {context.collection.id: _query_terms(context, probe, ranked)}
    return replace(retrieval, terms=terms)


def _with_feedback(
    context: SearchContext,
    selection: CandidateSelection,
    feedback_parts: Mapping[int, float],
    candidates: Candidates,
) -> tuple[SearchContext, CandidateSelection]:
    """Rank the candidates that have feedback. Nothing depends on that of chunks outside of the filter."""
    visible = set(candidates.ids.tolist())
    visible_parts = {chunk: part for chunk, part in feedback_parts.items() if chunk in visible}
    if visible_parts:
        selection = replace(selection.with_requested(visible_parts), reorders=True)
    return replace(context, feedback_parts=visible_parts), selection


def _query_terms(context: SearchContext, probe: Probe, ranked: RankedCandidates) -> QueryTerms:
    vector = None if probe.vector is None else tuple(probe.vector.tolist())
    idf = {term.term: term.idf for term in ranked.terms}
    return QueryTerms(context.collection.language, idf, context.space, vector)
