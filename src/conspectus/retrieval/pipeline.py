"""The retrieval pipeline: plan, collect candidates, rank, select, rerank, merge.

The confidence of a search is a logistic regression over available signals: the share of the best possible
BM25 score that is reached, the best cosine, and how well the best passages cover the query.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, groupby, pairwise
from time import perf_counter
from typing import Final, NamedTuple

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, ProviderError, StorageBusy, TooLarge, require_range
from conspectus.model.filter import Filter, with_min_trust
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId
from conspectus.model.index import TermStatistic
from conspectus.model.query import RETRIEVERS, Query, QueryContext, QueryOptions
from conspectus.model.results import Hit, QueryTerms, Retrieval
from conspectus.ports import Candidates, Embedder, Index, Probe, Vectors
from conspectus.retrieval.ranking import (
    DEPTH,
    GRAPH,
    GRAPH_PLAN,
    CandidateSelection,
    Ranked,
    SearchContext,
    rank,
    spread,
    widened,
)
from conspectus.retrieval.scoring import (
    WORDS_ONLY,
    Product,
    fuse,
    kept_by_thread,
    learnt_for,
    profile_by_name,
)
from conspectus.settings import Settings
from conspectus.text.analyzer import STOP_WORDS, Analyzer, analyzer_for
from conspectus.text.clean import clean
from conspectus.text.vectors import unit

FUSION = "fusion"
"""The entry of a plan that says that only keyword scores are used."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The plan of a search: its retrievers, their depth, and its minimum similarity."""

    keyword: bool
    vector: bool
    depth: int
    min_similarity: float | None = None
    notices: tuple[str, ...] = ()
    profile: str | None = None
    words_only: bool = False

    def described(self) -> dict[str, str]:
        """Return the plan as strings for the trace."""
        used = [name for name in RETRIEVERS if getattr(self, name)]
        lowest = {} if self.min_similarity is None else {"min_similarity": f"{self.min_similarity:.2f}"}
        profile = {} if self.profile is None else {"profile": self.profile}
        fusion = {FUSION: "keyword scores alone"} if self.words_only else {}
        return {
            "retrievers": " and ".join(used) or "none",
            "depth": str(self.depth),
            **(lowest | profile | fusion),
        }


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
    decided, request = await _prepare(query, context.filter, embedder, unembeddable)
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
            found = _selected(query, decided, ranked, context=context, also=also, timings=watch.times)
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


def checked_query(query: str | Query, options: QueryOptions, settings: Settings) -> Query:
    """Return the query with the given options, validated. Raises InvalidInput or TooLarge."""
    whole = query if isinstance(query, Query) else Query(query, **options)
    if whole is query and options:
        whole = replace(whole, **options)
    _check_choices(whole, settings)
    if whole.graph is not None:
        _check_graph(whole.graph, settings)
    if whole.query_context is not None:
        _check_situation(whole.query_context)
    if len(whole.query) > settings.max_query_characters:
        size, limit = len(whole.query), settings.max_query_characters
        raise TooLarge("query", size=size, limit=limit, unit="characters")
    if whole.min_trust is not None:
        whole = replace(whole, filter=with_min_trust(whole.filter, whole.min_trust))
    cleaned = clean(whole.query)
    return whole if cleaned == whole.query else replace(whole, query=cleaned)


def plan(query: Query, *, unembeddable: str | None) -> QueryPlan:
    """Plan the retrievers and their depth.

    `unembeddable` is the reason why queries cannot be embedded (None: they can). A notice reports a retriever
    that cannot be used. Raises ProviderError if it is the only one requested.
    """
    vectors = "vector" in query.retrievers and (unembeddable is None or query.vector is not None)
    if unembeddable is not None and query.retrievers == ("vector",) and not vectors:
        raise ProviderError("embedder", unembeddable)
    notices: tuple[str, ...] = ()
    if unembeddable is not None and not vectors and "vector" in query.retrievers:
        notices = (f"keyword search only: {unembeddable}",)
    return QueryPlan(
        keyword="keyword" in query.retrievers and bool(query.query.strip()),
        vector=vectors and (query.vector is not None or bool(query.query.strip())),
        depth=max(DEPTH, 2 * query.limit),
        min_similarity=_min_similarity(query),
        notices=notices,
        profile=None if query.query_context is None else query.query_context.profile,
    )


def _min_similarity(query: Query) -> float | None:
    """Return the minimum similarity of the query, or else that of its profile."""
    if query.min_similarity is not None or query.query_context is None:
        return query.min_similarity
    return profile_by_name(query.query_context.profile).min_similarity


def _check_situation(situation: QueryContext) -> None:
    profile_by_name(situation.profile)
    if situation.thread is not None and situation.channel is None:
        raise InvalidInput("thread", "is a thread of a channel; give the channel too")


def _check_graph(ask: GraphExpansion, settings: Settings) -> None:
    if not 0.0 <= ask.alpha <= 1.0:
        raise InvalidInput("graph.alpha", "must be a weight from 0 to 1")
    require_range("graph.hops", ask.hops, 0, settings.max_hops)


def _check_choices(whole: Query, settings: Settings) -> None:
    if unknown := set(whole.retrievers) - set(RETRIEVERS):
        raise InvalidInput(
            "retrievers", f"{min(unknown)!r} is unknown; expected one of {', '.join(RETRIEVERS)}"
        )
    require_range("limit", whole.limit, 0, settings.max_limit)
    require_range("thread_messages", whole.thread_messages, 0, settings.max_thread_messages)
    if whole.min_similarity is not None and not -1.0 <= whole.min_similarity <= 1.0:
        raise InvalidInput("min_similarity", "must be a cosine similarity from -1 to 1")
    require_range("min_confidence", whole.min_confidence, 0, 1)


SHARE = 0.3
"""Minimum share of an identifier in the summed inverse document frequency of a query for an exact match."""
DIGITS = 5
"""Number of digits from which an identifier is matched exactly in any query."""


async def probe(query: Query, plan: QueryPlan, where: Filter, embedder: Embedder | None) -> Probe:
    """Embed the query, unless it has a vector, and return the probe for indexes."""
    return Probe(
        filter=where,
        words=query.query if plan.keyword else None,
        vector=await _vector(query, embedder) if plan.vector else None,
        limit=plan.depth,
    )


async def collect(
    index: Index, request: Probe, also: Sequence[ChunkId], *, language: str | None = None
) -> Candidates:
    """Collect the candidates of all retrievers, chunks with a rare identifier, and the chunks in `also`."""
    found = await index.search(request)
    identifiers = _rare_identifiers(request, found, language)
    if identifiers:
        exact = await index.search(replace(request, terms=identifiers, vector=None))
        found = replace(found, exact=exact.ids)
    if not also and not len(found.exact):
        return found
    return await widened(index, request, found, (*found.exact.tolist(), *also))


def _rare_identifiers(request: Probe, found: Candidates, language: str | None) -> tuple[str, ...]:
    """Return the identifiers of the query that are rare and carry much of its weight."""
    known = analyzer_for(language).identifiers(request.words or "")
    maximum = min(DEPTH, math.isqrt(found.total))
    rare = {
        term.term: term.idf for term in found.terms if term.term in known and 0 < term.documents <= maximum
    }

    def counts(each: str, idf: float) -> bool:
        rest = sum(term.idf for term in found.terms if term.documents and term.term not in known[each])
        return idf >= SHARE * (idf + rest) or sum(map(str.isdigit, each)) >= DIGITS

    return tuple(each for each, idf in rare.items() if counts(each, idf))


async def _vector(query: Query, embedder: Embedder | None) -> Vectors | None:
    if query.vector is None:
        return await embedder.embed_query(query.query) if embedder is not None else None
    vector = unit(query.vector)
    if embedder is not None and len(vector) != embedder.space.dimensions:
        raise InvalidInput("vector", f"has {len(vector)} numbers, the space {embedder.space.dimensions}")
    return vector


ATTEMPTS = 5
KEPT_BY_THREAD = "kept_by_thread"
"""A part of 0 that marks a hit below the minimum similarity that its thread keeps."""


async def _prepare(
    query: Query, where: Filter, embedder: Embedder | None, unembeddable: str | None
) -> tuple[QueryPlan, Probe]:
    """Plan and embed the query. If embedding fails, use keyword search only, with a notice."""
    decided = plan(query, unembeddable=unembeddable)
    if decided.keyword and decided.vector and embedder is not None:
        decided = _for_language(decided, query.query, embedder)
    try:
        return decided, await probe(query, decided, where, embedder)
    except ProviderError as fault:
        if not decided.keyword:
            raise
        decided = plan(query, unembeddable=f"the query could not be embedded: {fault}")
        return decided, await probe(query, decided, where, None)


def _for_language(decided: QueryPlan, query: str, embedder: Embedder) -> QueryPlan:
    """Use only keyword scores if the embedding model does not support the language of the query."""
    knows = getattr(embedder, "knows", None)
    if knows is None or knows(query):
        return decided
    model = embedder.space.model
    notice = f"ranked by keywords: {model} does not know the language of the query; another embedder may"
    return replace(decided, words_only=True, notices=(*decided.notices, notice))


def _selected(
    query: Query,
    plan: QueryPlan,
    ranked: Ranked,
    *,
    context: SearchContext,
    also: Sequence[ChunkId],
    timings: dict[str, float],
) -> Retrieval:
    """Return the best hits above the minimum similarity, and the hits below it."""
    places = _in_order(ranked)
    if plan.min_similarity is None:
        ids = ranked.candidates.ids.tolist()
        places = places[: query.limit] + [each for each in places[query.limit :] if ids[each] in also]
    hits = _hits(ranked, places)
    standing = context.standing
    hits = _with_thread_marks(
        hits, plan.min_similarity, keeps_threads=standing is not None and standing.profile.keeps_threads
    )
    above = [hit for hit in hits if KEPT_BY_THREAD in hit.parts or not _below(hit, plan.min_similarity)]
    best = above[: query.limit] + [hit for hit in above[query.limit :] if hit.chunk.id in also]
    read = [Passage(hit.document.title, hit.chunk.text) for hit in best[:READ]]
    rows = chain([ranked.rows[hit.chunk.id] for hit in best], ranked.rows.values())
    seen = (f"{row.document.title} {row.chunk.text}" for row in rows)
    known = signals(query.query, ranked.candidates, read, seen=seen) if best else {}
    return Retrieval(
        outcome="found" if best else "no_match",
        hits=tuple(best),
        below_min_similarity=tuple(
            hit for hit in hits if KEPT_BY_THREAD not in hit.parts and _below(hit, plan.min_similarity)
        ),
        plan={**plan.described(), "keyword_weight": f"{ranked.words_weight:.2f}", **ranked.plan},
        notices=(*plan.notices, *ranked.notices),
        timings=timings,
        confidence=probability(known) if best else 0.0,
        signals=known,
    )


def _in_order(ranked: Ranked) -> list[int]:
    """Return the positions of the candidates, best first. Only returned candidates become hits."""
    ids = ranked.candidates.ids.tolist()
    columns = [values.tolist() for values in ranked.parts.values()]
    scores = [sum(parts) for parts in zip(*columns, strict=True)]
    return sorted(range(len(ids)), key=lambda place: (-scores[place], ids[place]))


def _terms(context: SearchContext, request: Probe, ranked: Ranked) -> QueryTerms:
    space = None if isinstance(context.embedder, str) else context.embedder.space
    vector = None if request.vector is None else tuple(request.vector.tolist())
    idf = {each.term: each.idf for each in ranked.candidates.terms}
    return QueryTerms(context.collection.language, idf, space, vector)


def _with_thread_marks(hits: list[Hit], floor: float | None, *, keeps_threads: bool) -> list[Hit]:
    """Return the hits, with a mark on hits that only their thread keeps."""
    if floor is None or not keeps_threads:
        return hits
    above = [not _below(hit, floor) for hit in hits]
    kept = kept_by_thread([hit.document for hit in hits], above)
    return [
        replace(hit, parts={**hit.parts, KEPT_BY_THREAD: 0.0}) if is_kept else hit
        for hit, is_kept in zip(hits, kept, strict=True)
    ]


def _hits(ranked: Ranked, places: Sequence[int]) -> list[Hit]:
    """Return the hits for these positions of the candidates."""
    union, names = ranked.candidates, list(ranked.parts)
    ids, words, cosine, *columns = (
        values[places].tolist() for values in (union.ids, union.words, union.cosine, *ranked.parts.values())
    )
    rows = [ranked.rows[each] for each in ids]
    return [
        Hit(
            chunk=row.chunk,
            document=row.document,
            score=sum(parts),
            parts=dict(zip(names, parts, strict=True)),
            bm25=by_words or None,
            similarity=None if math.isnan(by_vector) else by_vector,
            through=ranked.through.get(each, ()),
        )
        for row, each, by_words, by_vector, *parts in zip(rows, ids, words, cosine, *columns, strict=True)
    ]


def _below(hit: Hit, floor: float | None) -> bool:
    """Whether a hit is below the minimum similarity. Hits without a vector are never below."""
    return floor is not None and hit.similarity is not None and hit.similarity < floor


READ: Final = 3
"""Number of best passages that are compared with the query."""
MAX_QUERY_WORDS: Final = 64
"""Maximum number of query words that are examined."""
_EMPTY_WORDS: Final = frozenset().union(*STOP_WORDS.values())
_WORD: Final = re.compile(r"\w+")
_IN_BRACKETS: Final = re.compile(r"\([^)]*\)")


class Passage(NamedTuple):
    """The document title and the text of a hit."""

    title: str
    text: str


class Weight(NamedTuple):
    """The weight of a signal in the log odds, per unit above its `mean`."""

    weight: float
    mean: float


INTERCEPT: Final = -0.174
WEIGHTS: Final[Mapping[str, Weight]] = {
    "best_cosine": Weight(2.138, 0.567),
    "bm25_reached": Weight(1.111, -0.315),
    "terms_covered": Weight(0.497, 0.628),
    "pairs": Weight(0.381, 0.270),
    "pairs_with_one_stop_word": Weight(0.792, 0.216),
    "names": Weight(0.590, 0.680),
    "titles": Weight(0.640, 0.085),
}
"""Learned by `scripts/train_confidence.py` on public sets, with each query once without its answers."""


def probability(values: Mapping[str, float]) -> float:
    """Return the probability that hits answer the query. Missing signals count as their mean."""
    odds = INTERCEPT + sum(
        each.weight * (values[name] - each.mean) for name, each in WEIGHTS.items() if name in values
    )
    return 1.0 / (1.0 + math.exp(min(max(-odds, -50.0), 50.0)))


def signals(query: str, found: Candidates, best: Sequence[Passage], seen: Iterable[str]) -> dict[str, float]:
    """Return the available signals of a search by name.

    A term that is in no text that was `seen` counts as if no chunk had it: otherwise the confidence
    would show whether hidden texts hold a word.
    """
    cosine = float(np.fmax.reduce(found.cosine, initial=-1.0))
    # No phrase and no term reaches over the end of a line.
    texts = "\n".join(_normalized(_WORD.findall(f"{each.title} {each.text}")) for each in best[:READ])
    words = _WORD.findall(query)[:MAX_QUERY_WORDS]
    return {
        **({"best_cosine": cosine} if cosine > -1.0 else {}),
        **_covered(_limited_to_texts(found, seen), float(found.words.max(initial=0.0)), texts),
        **_held("pairs", _pairs(words, maximum=0), texts),
        **_held("pairs_with_one_stop_word", _pairs(words, maximum=1), texts),
        **_held("names", _names(words), texts),
        "titles": float(_titles(words, best[:READ])),
    }


def _limited_to_texts(found: Candidates, seen: Iterable[str]) -> list[TermStatistic]:
    absent = math.log(1.0 + (found.total + 0.5) / 0.5)
    missing = {each.term for each in found.terms if each.documents}
    for text in seen:
        folded = _folded(text)
        missing = {each for each in missing if each not in folded}
        if not missing:
            break
    return [replace(each, documents=0, idf=absent) if each.term in missing else each for each in found.terms]


def _covered(terms: Sequence[TermStatistic], best: float, texts: str) -> dict[str, float]:
    """Return the reached share of the possible BM25 score, and the share of idf found in the texts."""
    whole = sum(each.idf for each in terms)
    if not whole:
        return {}
    reached = best / sum(each.weight for each in terms)
    covered = sum(each.idf for each in terms if each.term in texts)
    return {
        "bm25_reached": math.log(0.05 + reached),
        "terms_covered": covered / whole,
    }


def _held(name: str, phrases: Set[str], texts: str) -> dict[str, float]:
    """Return the share of the wanted phrases found in any text; empty if none are wanted."""
    held = sum(f" {each} " in texts for each in phrases)
    return {name: held / len(phrases)} if phrases else {}


def _pairs(words: Sequence[str], *, maximum: int) -> set[str]:
    """Return pairs of adjacent words with at most `maximum` stop words."""
    folded = [word.casefold() for word in words]
    return {
        f"{one} {two}"
        for one, two in pairwise(folded)
        if (one in _EMPTY_WORDS) + (two in _EMPTY_WORDS) <= maximum
    }


def _names(words: Sequence[str]) -> set[str]:
    """Return sequences of capitalized words after the first word."""
    runs = (
        " ".join(run).casefold()
        for is_name, run in groupby(words[1:], lambda word: word[0].isupper())
        if is_name
    )
    return {run for run in runs if run not in _EMPTY_WORDS}


def _titles(words: Sequence[str], best: Sequence[Passage]) -> int:
    """Count passages whose title, without parentheses, is part of the query; at most 2."""
    request = _normalized(words)
    titles = (_WORD.findall(_IN_BRACKETS.sub("", each.title)) for each in best)
    return min(sum(bool(title) and _normalized(title) in request for title in titles), 2)


def _normalized(words: Sequence[str]) -> str:
    return _folded(f" {' '.join(words)} ")


def _folded(text: str) -> str:
    # `casefold` is slower even where it does the same.
    return text.lower() if text.isascii() else text.casefold()


CONSTANT = 60
"""Constant of reciprocal rank fusion: Cormack, Clarke and Buettcher, SIGIR 2009."""


def merged(query: Query, answers: Sequence[Retrieval], *, comparable: bool) -> Retrieval:
    """Merge the hits of several collections.

    If all collections use the same embedding model, the raw scores of all hits are fused again. Otherwise
    only ranks are comparable, and the score of a hit is 1 / (60 + its rank).
    """
    ranked = _compared(query, answers) if comparable else _by_rank(answers)
    hits = tuple(sorted(ranked, key=lambda hit: (-hit.score, hit.chunk.id))[: query.limit])
    steps = {name for answer in answers for name in answer.timings}
    surest = max(answers, key=lambda answer: answer.confidence, default=Retrieval("no_match", ()))
    return Retrieval(
        outcome="found" if hits else "no_match",
        hits=hits,
        below_min_similarity=tuple(hit for answer in answers for hit in answer.below_min_similarity),
        plan={
            "collections": str(len(answers)),
            "merged by": "raw scores" if comparable else "rank",
            **_graph_plan(answers),
        },
        notices=tuple(dict.fromkeys(notice for answer in answers for notice in answer.notices)),
        terms={name: terms for answer in answers for name, terms in answer.terms.items()},
        timings={name: sum(answer.timings.get(name, 0.0) for answer in answers) for name in sorted(steps)},
        confidence=surest.confidence,
        signals=surest.signals,
    )


def _compared(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    """Products of raw similarities are comparable across collections. Sums need a common base."""
    situation = query.query_context
    if situation is not None and isinstance(profile_by_name(situation.profile), Product):
        return [hit for answer in answers for hit in answer.hits]
    return _fused(query, answers)


def _fused(query: Query, answers: Sequence[Retrieval]) -> list[Hit]:
    hits = [hit for answer in answers for hit in answer.hits]
    words = np.array([hit.bm25 or 0.0 for hit in hits], dtype=np.float64)
    cosine = np.array([np.nan if hit.similarity is None else hit.similarity for hit in hits])
    words_only = any(FUSION in answer.plan for answer in answers)
    terms = len(set(Analyzer(language=None).terms(query.query)))
    spaces = {each.space for answer in answers for each in answer.terms.values()}
    profile = WORDS_ONLY if words_only else learnt_for(spaces.pop() if len(spaces) == 1 else None)
    again = fuse(words, cosine, terms=terms, profile=profile)
    shares = [_share(query, hit) for hit in hits]
    return [
        _scored(hit, {**hit.parts, "keyword": share * float(by_words), "vector": share * float(by_vectors)})
        for hit, share, by_words, by_vectors in zip(hits, shares, again.words, again.vectors, strict=True)
    ]


def _share(query: Query, hit: Hit) -> float:
    """Return the weight of keyword and vector scores, which is lower if a graph was used."""
    return 1.0 if query.graph is None or GRAPH not in hit.parts else 1.0 - query.graph.alpha


def _graph_plan(answers: Sequence[Retrieval]) -> dict[str, str]:
    """Return the graph entries of the plans of all collections."""
    plans: dict[str, dict[str, None]] = {}
    for answer in answers:
        for name in GRAPH_PLAN:
            if name in answer.plan:
                plans.setdefault(name, {})[answer.plan[name]] = None
    return {name: "; ".join(each) for name, each in plans.items()}


def _by_rank(answers: Sequence[Retrieval]) -> list[Hit]:
    return [
        _scored(hit, {"rank": 1.0 / (CONSTANT + rank)})
        for answer in answers
        for rank, hit in enumerate(answer.hits, start=1)
    ]


def _scored(hit: Hit, parts: dict[str, float]) -> Hit:
    return replace(hit, parts=parts, score=sum(parts.values()))
