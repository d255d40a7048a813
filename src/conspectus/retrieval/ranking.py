"""Rank candidates by fused scores, threads and phrases. Each reason is a named part of the score."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from importlib import import_module
from typing import Final, TypeAlias

import numpy as np

from conspectus.deferred import dataclass
from conspectus.graph.expansion import GraphCandidates
from conspectus.model.filter import Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId, SourceId
from conspectus.model.index import analyzed_text
from conspectus.model.records import Collection, EmbeddingSpace, StoredChunk
from conspectus.ports import Candidates, Embedder, Ids, Index, Probe
from conspectus.retrieval.boosts import identifier_boost
from conspectus.retrieval.candidates import CandidateSelection, best_of_period, with_extra_candidates
from conspectus.retrieval.counting import asks_for_number, repeated_thread_penalty
from conspectus.retrieval.dates import DATE_PART
from conspectus.retrieval.feedback import FEEDBACK_PART, PastFeedback
from conspectus.retrieval.fusion import CONVERSATION_FUSION, Fused, FusionProfile, fuse, fusion_for_model
from conspectus.retrieval.named_periods import (
    TIME_ENTRY,
    QueryTimes,
    has_timed_rows,
    select_in_period,
)
from conspectus.retrieval.phrases import PHRASE_WEIGHT, phrase_boost, phrase_words
from conspectus.retrieval.profiles import PLAIN, AdditiveProfile, MultiplicativeProfile, Weights
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.retrieval.ranking_context import (
    RankingContext,
    additive_parts,
    multiplicative_parts,
    weights_for,
)
from conspectus.retrieval.thread_parts import exchange_parts, thread_key, thread_parts

Rows: TypeAlias = Mapping[int, StoredChunk]
"""Rows of chunks by id."""

IDENTIFIER_PART: Final = "identifier"
PHRASE_PART: Final = "phrase"
REPEATED_THREAD_PART: Final = "repeated_thread"
MAX_QUOTING_HITS: Final = 10
"""Number of best keyword hits that are read to find sequences of query words."""
MAX_FURTHER_QUOTING_HITS: Final = 60
"""Number of best keyword hits of which those with all terms are read, if no better one quotes the query."""
ALL_TERMS_SHARE: Final = 0.7
"""Share of the maximum BM25 score that a text with all terms and up to twice the mean length reaches."""
NO_IDS: Final[Ids] = np.array([], dtype=np.int64)
_MESSAGE_KINDS: Final = frozenset({"message", "memory"})


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The context of a search in one collection.

    `index` holds all records of the collection, `refreshed` updates it, and `hydrate` reads the rows of
    chunk ids. `embedder` embeds queries, or is the reason why they cannot be embedded. `filter` includes
    the permissions of the user. `at` is the time of the query.
    The term frequencies of `sources` count beside those of the collection.
    `ranking_context` has the place and time of the query, if given, and `thread_chunks` are the first chunks
    of the messages in the thread that it names, which are candidates in any case. `fusion` replaces the
    default weights of keywords and vectors. `alone` disables the scores from neighbors in threads. With
    `graph`, connections of the `query` and of the hits add to the scores. `feedback` is that of the
    collection, and `feedback_parts` are the parts of chunks that follow from it. With `skips_deleted`, rows
    that were deleted after the search in the index are left out.
    """

    collection: Collection
    index: Index
    refreshed: Callable[[], Awaitable[Index]]
    hydrate: Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]
    embedder: Embedder | str
    filter: Filter
    at: datetime
    sources: tuple[SourceId, ...] = ()
    ranking_context: RankingContext | None = None
    thread_chunks: tuple[ChunkId, ...] = ()
    fusion: FusionProfile | None = None
    alone: bool = False
    query: str = ""
    graph: GraphExpansion | None = None
    connections: GraphCandidates | None = None
    feedback: PastFeedback | None = None
    feedback_parts: Mapping[int, float] = field(default_factory=dict)
    skips_deleted: bool = False

    @property
    def space(self) -> EmbeddingSpace | None:
        """The embedding model of the queries; None if they cannot be embedded."""
        return None if isinstance(self.embedder, str) else self.embedder.space

    @property
    def multiplies(self) -> bool:
        """Whether a score is the product of the profile, to which no part is added."""
        profile = None if self.ranking_context is None else self.ranking_context.profile
        return isinstance(profile, MultiplicativeProfile)

    async def read_rows(self, ids: Sequence[int]) -> Rows:
        """Return the existing rows of these chunks."""
        if ids:
            return {row.chunk.id: row for row in await self.hydrate([*map(ChunkId, ids)])}
        return {}


async def rank(
    context: SearchContext,
    index: Index,
    probe: Probe,
    candidates: Candidates,
    *,
    selection: CandidateSelection,
) -> RankedCandidates | None:
    """Rank the candidates, with those of the calendar period that a query in conversations names.

    Returns None if a row was deleted meanwhile, unless the context skips those.
    """
    ranked = await _rank(context, index, probe, candidates, selection=selection)
    if ranked is None or context.alone or context.multiplies or not has_timed_rows(ranked.rows.values()):
        return ranked
    # The grammar of times is loaded with the first conversation: a search of documents starts faster.
    reader = import_module("conspectus.retrieval.query_times")
    times: QueryTimes = reader.read_query_times(context.query, context.at)
    if times.period is not None:
        inside = await best_of_period(index, probe, times.period)
        candidates = await with_extra_candidates(index, probe, candidates, inside)
        selection = selection.with_requested(inside)
        ranked = await _rank(context, index, probe, candidates, selection=selection)
    return None if ranked is None else _with_times(ranked, times, _weights(context.ranking_context, ranked))


def _with_times(ranked: RankedCandidates, times: QueryTimes, weights: Weights) -> RankedCandidates:
    """Add the part for what is from the period that the query names, and say which one that is."""
    ranked = replace(ranked, notices=(*ranked.notices, *times.notices))
    if times.period is None:
        return ranked
    inside = select_in_period(times.period, ranked.rows.values())
    ranked = ranked.with_part_of(DATE_PART, dict.fromkeys(inside, weights.date))
    return replace(ranked, plan={**ranked.plan, TIME_ENTRY: times.period.description})


async def _rank(
    context: SearchContext,
    index: Index,
    probe: Probe,
    candidates: Candidates,
    *,
    selection: CandidateSelection,
) -> RankedCandidates | None:
    """Fuse the scores, read the rows of the best, and add the parts for threads and query context.

    Returns None if a row was deleted meanwhile, unless the context skips those.
    """
    fused = _fuse_candidates(candidates, context)
    scores = fused.score
    if len(candidates.exact):
        scores = scores + identifier_boost(candidates.ids, candidates.exact)
    quoting = _best_quoting(probe, candidates)
    selected = sorted(selection.ids_to_rank(candidates, scores) | {*quoting})
    rows = await context.read_rows(selected)
    if len(rows) < len(selected) and not context.skips_deleted:
        return None
    phrase_shares = _phrase_shares(probe, [rows[chunk] for chunk in quoting if chunk in rows])
    if max(phrase_shares.values(), default=PHRASE_WEIGHT) < PHRASE_WEIGHT:
        # A quotation of common words can rank low, so more keyword hits with all terms are read.
        following = np.lexsort((candidates.ids, -candidates.words))[MAX_QUOTING_HITS:MAX_FURTHER_QUOTING_HITS]
        min_bm25 = ALL_TERMS_SHARE * sum(term.weight for term in candidates.terms)
        bm25 = candidates.words[following]
        further = sorted(candidates.ids[following][(bm25 > 0.0) & (bm25 >= min_bm25)].tolist())
        known_rows = {**rows, **await context.read_rows([chunk for chunk in further if chunk not in rows])}
        further_rows = {chunk: known_rows[chunk] for chunk in further if chunk in known_rows}
        further_shares = _phrase_shares(probe, list(further_rows.values()))
        quotations = {chunk: share for chunk, share in further_shares.items() if share}
        phrase_shares = phrase_shares | quotations
        rows = {**rows, **{chunk: further_rows[chunk] for chunk in quotations}}
    ranked = await _with_context_parts(context, index, probe, candidates, fused=fused, rows=rows)
    if ranked is None or context.multiplies:
        return ranked
    return ranked.with_part_of(PHRASE_PART, phrase_shares).with_part_of(FEEDBACK_PART, context.feedback_parts)


async def _with_context_parts(
    context: SearchContext, index: Index, probe: Probe, candidates: Candidates, *, fused: Fused, rows: Rows
) -> RankedCandidates | None:
    """Return the candidates with rows, ranked by threads and query context."""
    ranking_context = context.ranking_context
    if ranking_context is not None and context.multiplies:
        ranked = _make_candidates(replace(candidates, exact=NO_IDS), fused, rows)
        documents = [row.document for row in ranked.rows_in_order]
        return ranked.with_parts(multiplicative_parts(ranking_context, documents, ranked.fused_scores))
    threaded = [row for row in rows.values() if row.document.thread is not None]
    if threaded and not context.alone:
        links = _thread_links(threaded)
        return await _rank_threads(context, index, probe, candidates, rows=rows, links=links)
    return _with_additive_parts(_make_candidates(candidates, fused, rows), ranking_context)


def _best_quoting(probe: Probe, candidates: Candidates) -> list[int]:
    """Return the best keyword hits, which may quote the query; none for a query without a phrase."""
    if not phrase_words(probe.words or ""):
        return []
    best = np.lexsort((candidates.ids, -candidates.words))[:MAX_QUOTING_HITS]
    return sorted(candidates.ids[best][candidates.words[best] > 0.0].tolist())


def _phrase_shares(probe: Probe, rows: Sequence[StoredChunk]) -> dict[int, float]:
    """Return the phrase score of each text by chunk id."""
    texts = [analyzed_text(row.document, row.chunk.text_with_header) for row in rows]
    shares = phrase_boost(phrase_words(probe.words or ""), texts).tolist()
    return dict(zip((row.chunk.id for row in rows), shares, strict=True))


async def _rank_threads(
    context: SearchContext,
    index: Index,
    probe: Probe,
    candidates: Candidates,
    *,
    rows: Rows,
    links: Ids,
) -> RankedCandidates | None:
    """Rank with the neighbors of the best candidates, and add the parts for threads."""
    linked = set(links.ravel().tolist())
    candidates = await with_extra_candidates(index, probe, candidates, linked)
    neighbors = sorted((linked & {*candidates.ids.tolist()}) - {*rows})
    neighbor_rows = await context.read_rows(neighbors)
    if len(neighbor_rows) < len(neighbors) and not context.skips_deleted:
        return None
    rows = {**rows, **neighbor_rows}
    fusion = CONVERSATION_FUSION if _are_conversations_of_people(rows.values()) else None
    ranked = _make_candidates(candidates, _fuse_candidates(candidates, context, fusion), rows)
    scores, rows_in_order = ranked.fused_scores, ranked.rows_in_order
    weights = _weights(context.ranking_context, ranked)
    parts = thread_parts(probe.words or "", scores, ranked.ids, links, rows=rows_in_order, weights=weights)
    if context.ranking_context is not None:
        parts |= exchange_parts(scores, ranked.ids, links, rows=rows_in_order, weights=weights)
    ranked = _with_additive_parts(ranked.with_parts(parts), context.ranking_context)
    if asks_for_number(probe.words or ""):
        threads = [thread_key(row.document) for row in rows_in_order]
        penalty = repeated_thread_penalty(ranked.total_scores, threads, ranked.ids)
        ranked = ranked.with_parts({REPEATED_THREAD_PART: penalty})
    return ranked


def _fuse_candidates(
    candidates: Candidates, context: SearchContext, default: FusionProfile | None = None
) -> Fused:
    """Fuse with the weights of the profile, of the search, the default ones, or those of the model."""
    of_profile = None if context.ranking_context is None else context.ranking_context.profile.fusion
    profile = of_profile or context.fusion or default or fusion_for_model(context.space)
    profile = profile.with_terms(candidates.terms, float(candidates.words.max(initial=0.0)))
    return fuse(candidates.words, candidates.cosine, terms=len(candidates.terms), profile=profile)


def _weights(ranking_context: RankingContext | None, ranked: RankedCandidates) -> Weights:
    profile = PLAIN if ranking_context is None else ranking_context.profile
    if not isinstance(profile, AdditiveProfile):
        return PLAIN.people
    return weights_for(profile, [row.document for row in ranked.rows_in_order])


def _with_additive_parts(
    ranked: RankedCandidates, ranking_context: RankingContext | None
) -> RankedCandidates:
    """Add the parts for the place and time of the query, if given."""
    if ranking_context is None:
        return ranked
    documents = [row.document for row in ranked.rows_in_order]
    return ranked.with_parts(additive_parts(ranking_context, documents, _weights(ranking_context, ranked)))


def _make_candidates(candidates: Candidates, fused: Fused, rows: Rows) -> RankedCandidates:
    """Return the candidates whose rows were read."""
    positions = np.searchsorted(candidates.ids, sorted(rows))
    ids = candidates.ids[positions]
    parts = {"keyword": fused.words[positions], "vector": fused.vectors[positions]}
    if len(candidates.exact):
        parts[IDENTIFIER_PART] = identifier_boost(ids, candidates.exact)
    return RankedCandidates(
        ids=ids,
        bm25=candidates.words[positions],
        cosine=candidates.cosine[positions],
        terms=candidates.terms,
        total=candidates.total,
        parts=parts,
        rows=rows,
        keyword_weight=fused.words_weight,
        all_bm25=candidates.words,
        all_cosine=candidates.cosine,
    )


def _are_conversations_of_people(rows: Iterable[StoredChunk]) -> bool:
    """Return whether all candidates are conversations between people, not with an assistant."""
    documents = [row.document for row in rows]
    return bool(documents) and all(
        document.kind in _MESSAGE_KINDS and document.role is None for document in documents
    )


def _thread_links(rows: Sequence[StoredChunk]) -> Ids:
    """Return pairs of chunks that directly follow each other in a thread."""
    before = [(row.previous, row.chunk.id) for row in rows if row.previous is not None]
    after = [(row.chunk.id, row.next) for row in rows if row.next is not None]
    return np.asarray(before + after, dtype=np.int64).reshape(-1, 2)
