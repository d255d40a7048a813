"""The read pipeline, step by step; each step leaves its share in the hits' parts."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from conspectus.errors import ProviderError, StorageBusy
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.results import Hit, QueryTerms, Retrieval
from conspectus.ports import Embedder, Probe
from conspectus.retrieval.candidates import QueryPlan, look, plan, probe
from conspectus.retrieval.graph_score import spread
from conspectus.retrieval.ranking import Keep, Ranked, SearchContext, rank
from conspectus.retrieval.scoring_profiles import kept_by_threads

ATTEMPTS = 5
KEPT = "kept with its thread"
"""A part of 0, which says why a hit is there although it is below the floor."""


class Stopwatch:
    """Milliseconds per named step."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, step: str) -> None:
        """Book the time since the last lap under the step's name."""
        now = perf_counter()
        self.times[step] = self.times.get(step, 0.0) + (now - self._last) * 1_000
        self._last = now


async def search(query: Query, looking: SearchContext, *, also: Sequence[ChunkId] = ()) -> Retrieval:
    """The hits for a question, best first; the chunks of `also` are ranked even if no arm found them.

    Raises StorageBusy when documents were replaced during every one of several attempts.
    """
    watch = Stopwatch()
    blind = looking.embedder if isinstance(looking.embedder, str) else None
    embedder = None if isinstance(looking.embedder, str) else looking.embedder
    decided, asked = await _asked(query, looking.where, embedder, blind)
    watch.lap("embed the question")
    more = decided.floor is not None or looking.standing is not None
    keep = Keep(query.limit, tuple(also), more=more)
    index = looking.index
    for _ in range(ATTEMPTS):
        union = await look(index, asked, also, language=looking.collection.language)
        watch.lap("look in the index")
        ranked = await rank(looking, index, asked, union, keep=keep)
        watch.lap("rank and read")
        if ranked is not None and looking.graph is not None:
            ranked = await spread(looking, index, asked, union=union, ranked=ranked, keep=keep)
            watch.lap("walk the graph")
        if ranked is not None:
            found = _selected(query, decided, ranked, looking=looking, also=also, timings=watch.times)
            return replace(found, terms={looking.collection.id: _terms(looking, asked, ranked)})
        index = await looking.refreshed()
        watch.lap("follow the records again")
    raise StorageBusy("documents were replaced faster than they could be read; ask again")


async def _asked(
    query: Query, where: Filter, embedder: Embedder | None, blind: str | None
) -> tuple[QueryPlan, Probe]:
    """What to look for; a question that cannot be embedded is still asked by its words, and says so."""
    decided = plan(query, blind=blind)
    try:
        return decided, await probe(query, decided, where, embedder)
    except ProviderError as fault:
        if not decided.words:
            raise
        decided = plan(query, blind=f"the question could not be embedded: {fault}")
        return decided, await probe(query, decided, where, None)


def _selected(
    query: Query,
    plan: QueryPlan,
    ranked: Ranked,
    *,
    looking: SearchContext,
    also: Sequence[ChunkId],
    timings: dict[str, float],
) -> Retrieval:
    """The best hits above the floor, which looks at raw similarity only, and those it kept out."""
    hits = [_hit(ranked, place) for place in range(len(ranked.candidates.ids))]
    hits.sort(key=lambda hit: (-hit.score, hit.chunk.id))
    standing = looking.standing
    hits = _kept(hits, plan.floor, keeps_threads=standing is not None and standing.profile.keeps_threads)
    above = [hit for hit in hits if KEPT in hit.parts or not _below(hit, plan.floor)]
    best = above[: query.limit] + [hit for hit in above[query.limit :] if hit.chunk.id in also]
    return Retrieval(
        outcome="found" if best else "nothing_relevant",
        hits=tuple(best),
        below_floor=tuple(hit for hit in hits if KEPT not in hit.parts and _below(hit, plan.floor)),
        plan={**plan.described(), "weight of words": f"{ranked.words_weight:.2f}", **ranked.plan},
        notices=(*plan.notices, *ranked.notices),
        timings=timings,
    )


def _terms(looking: SearchContext, asked: Probe, ranked: Ranked) -> QueryTerms:
    space = None if isinstance(looking.embedder, str) else looking.embedder.space
    vector = None if asked.vector is None else tuple(asked.vector.tolist())
    idf = {each.term: each.idf for each in ranked.candidates.terms}
    return QueryTerms(looking.collection.language, idf, space, vector)


def _kept(hits: list[Hit], floor: float | None, *, keeps_threads: bool) -> list[Hit]:
    """The hits, those marked that only their thread keeps."""
    if floor is None or not keeps_threads:
        return hits
    above = [not _below(hit, floor) for hit in hits]
    kept = kept_by_threads([hit.document for hit in hits], above)
    return [
        replace(hit, parts={**hit.parts, KEPT: 0.0}) if is_kept else hit
        for hit, is_kept in zip(hits, kept, strict=True)
    ]


def _hit(ranked: Ranked, place: int) -> Hit:
    union = ranked.candidates
    row = ranked.rows[int(union.ids[place])]
    parts = {name: float(values[place]) for name, values in ranked.parts.items()}
    words, cosine = float(union.words[place]), float(union.cosine[place])
    return Hit(
        chunk=row.chunk,
        document=row.document,
        score=sum(parts.values()),
        parts=parts,
        words=words or None,
        similarity=None if np.isnan(cosine) else cosine,
        through=ranked.through.get(int(union.ids[place]), ()),
    )


def _below(hit: Hit, floor: float | None) -> bool:
    """A chunk without a vector has no similarity that a floor could judge; its words speak for it."""
    return floor is not None and hit.similarity is not None and hit.similarity < floor
