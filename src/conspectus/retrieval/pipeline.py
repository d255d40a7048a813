"""The retrieval pipeline: plan, collect candidates, rank, select."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from conspectus.errors import StorageBusy
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.results import QueryTerms, Retrieval
from conspectus.ports import Candidates, Probe
from conspectus.retrieval.candidates import CandidateSelection, collect
from conspectus.retrieval.fusion import WORDS_ONLY
from conspectus.retrieval.graph_scores import spread
from conspectus.retrieval.query_embedding import prepare_query
from conspectus.retrieval.ranking import Ranked, SearchContext, rank
from conspectus.retrieval.selection import select_hits

ATTEMPTS = 5


class Stopwatch:
    """Measures milliseconds per named step."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, step: str) -> None:
        """Add the time since the last call to a step."""
        now = perf_counter()
        self.times[step] = self.times.get(step, 0.0) + (now - self._last) * 1_000
        self._last = now


async def search(query: Query, context: SearchContext, *, also: Sequence[ChunkId] = ()) -> Retrieval:
    """Return the hits for a query, best first. Chunks of `also` are ranked even if no retriever finds them.

    Raises StorageBusy if documents were replaced during each of several attempts.
    """
    watch = Stopwatch()
    unembeddable = context.embedder if isinstance(context.embedder, str) else None
    embedder = None if isinstance(context.embedder, str) else context.embedder
    decided, request = await prepare_query(query, context.filter, embedder, unembeddable)
    request = replace(request, sources=context.sources)
    if decided.words_only:
        context = replace(context, fusion=WORDS_ONLY)
    watch.lap("embed_query")
    more = decided.min_similarity is not None or context.standing is not None
    keep = CandidateSelection(query.limit, tuple(also), more=more)
    judged = context.feedback.parts(query.query, request.vector) if context.feedback is not None else {}
    index = context.index
    for _ in range(ATTEMPTS):
        union = await collect(
            index, request, (*also, *map(ChunkId, judged)), language=context.collection.language
        )
        if judged:
            context, keep = _with_feedback(context, keep, judged, union)
        watch.lap("index_search")
        ranked = await rank(context, index, request, union, keep=keep)
        watch.lap("rank")
        if ranked is not None and context.graph is not None:
            ranked = await spread(context, index, request, union=union, ranked=ranked, keep=keep)
            watch.lap("graph_traversal")
        if ranked is not None:
            found = select_hits(query, decided, ranked, context=context, also=also, timings=watch.times)
            return replace(found, terms={context.collection.id: _terms(context, request, ranked)})
        index = await context.refreshed()
        watch.lap("index_catch_up")
    raise StorageBusy("documents changed while they were read; try again")


def _with_feedback(
    context: SearchContext, keep: CandidateSelection, judged: Mapping[int, float], union: Candidates
) -> tuple[SearchContext, CandidateSelection]:
    """Rank the candidates that have feedback. Nothing depends on that of chunks outside of the filter."""
    among = set(union.ids.tolist())
    found = {chunk: part for chunk, part in judged.items() if chunk in among}
    if found:
        keep = replace(keep, also=tuple(dict.fromkeys((*keep.also, *map(ChunkId, found)))), more=True)
    return replace(context, judged=found), keep


def _terms(context: SearchContext, request: Probe, ranked: Ranked) -> QueryTerms:
    space = None if isinstance(context.embedder, str) else context.embedder.space
    vector = None if request.vector is None else tuple(request.vector.tolist())
    idf = {each.term: each.idf for each in ranked.candidates.terms}
    return QueryTerms(context.collection.language, idf, space, vector)
