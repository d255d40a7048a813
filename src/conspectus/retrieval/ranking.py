"""Rank candidates by fused scores, threads and graph. Each reason is a named part of the score."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import ProviderError
from conspectus.graph.expansion import GraphCandidates, Reached, Way, reached
from conspectus.model.filter import Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId, SourceId
from conspectus.model.index import passage
from conspectus.model.query import Query
from conspectus.model.records import Collection, Document, StoredChunk
from conspectus.model.results import Hit, RankedHit, Reranking, Retrieval
from conspectus.ports import Candidates, Embedder, Floats, Ids, Index, Probe
from conspectus.ports.web import Reranker
from conspectus.retrieval.dates import from_dates
from conspectus.retrieval.feedback import FEEDBACK, PastFeedback
from conspectus.retrieval.scoring import (
    CONVERSATION,
    PLAIN,
    Fused,
    FusionProfile,
    Product,
    RankingContext,
    Sum,
    Weights,
    added,
    from_chain,
    from_exchange,
    from_identifiers,
    from_neighbors,
    from_question_before,
    from_role,
    from_speaker,
    from_thread,
    fuse,
    learnt_for,
    multiplied,
    question_penalty,
    weights_for,
)
from conspectus.text.analyzer import STOP_WORDS

_Rows: TypeAlias = dict[int, StoredChunk]
DEPTH = 100
"""Minimum number of candidates per retriever; twice the limit if that is more."""
EXACT = "identifier"
QUOTED = "phrase"
PHRASE: Final = 1.0
QUOTING = 10
"""Number of best keyword hits that are read to find sequences of query words."""
MAX_QUOTING: Final = 60
ALL_TERMS: Final = 0.7
"""Share of the maximum BM25 score that a text with all terms and up to twice the mean length reaches."""
SHORTEST: Final = 5
"""Minimum words of a quotation. A complete query of at least three words also counts."""
MIN_PHRASE_WORDS, MAX_PHRASE_WORDS = 3, 64
_EMPTY: Final = frozenset().union(*STOP_WORDS.values())
_WORD: Final = re.compile(r"\w{2,}")
"""Words of one character, such as articles or line numbers, are ignored in sequences."""
_MESSAGE_KINDS: Final = frozenset({"message", "memory"})


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The context of a search in one collection.

    `index` holds all records of the collection, `refreshed` updates it, and `hydrate` reads the rows of
    chunk ids. `embedder` embeds queries, or is the reason why they cannot be embedded. `filter` includes
    the permissions of the user. The term frequencies of `sources` count beside those of the collection.
    `standing` has the place and time of the query, if given. `fusion` replaces the default weights of
    keywords and vectors. `alone` disables the scores from neighbors in threads. With `graph`, connections
    of the `query` and of the hits add to the scores. `feedback` is that of the collection, and `judged` are
    the parts of chunks that follow from it.
    """

    collection: Collection
    index: Index
    refreshed: Callable[[], Awaitable[Index]]
    hydrate: Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]
    embedder: Embedder | str
    filter: Filter
    sources: tuple[SourceId, ...] = ()
    standing: RankingContext | None = None
    fusion: FusionProfile | None = None
    alone: bool = False
    query: str = ""
    graph: GraphExpansion | None = None
    connections: GraphCandidates | None = None
    feedback: PastFeedback | None = None
    judged: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Ranked candidates with their rows and the named parts of their scores.

    `through` has the entities that led to candidates. `plan` and `notices` describe how a graph was used.
    """

    candidates: Candidates
    parts: dict[str, Floats]
    rows: _Rows
    words_weight: float
    through: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()

    @property
    def in_order(self) -> list[StoredChunk]:
        """The rows in the order of the candidates."""
        return [self.rows[each] for each in self.candidates.ids.tolist()]


@dataclass(frozen=True, slots=True)
class CandidateSelection:
    """Selects the candidates whose rows are read: the best ones and those requested by id."""

    limit: int
    also: tuple[ChunkId, ...]
    more: bool

    def of(self, union: Candidates, scores: Floats) -> set[int]:
        """Return the ids to rank further: more than the limit only if later parts can change the order."""
        number = max(self.limit, DEPTH) if union.threads or self.more else self.limit
        best = set(union.ids[np.argsort(-scores, kind="stable")[:number]].tolist())
        return best | ({*self.also} & {*union.ids.tolist()}) if self.also else best

    def with_those(self, ids: Iterable[int]) -> "CandidateSelection":
        """Also keep these ids."""
        return replace(self, also=(*self.also, *map(ChunkId, ids)))


async def widened(index: Index, probe: Probe, found: Candidates, ids: Iterable[int]) -> Candidates:
    """Add chunks that match the filter to the candidates."""
    new = sorted({*ids} - {*found.ids.tolist()})
    if not new:
        return found
    more = await index.score(np.array(new, dtype=np.int64), probe)
    together = np.concatenate([found.ids, more.ids])
    order = np.argsort(together, kind="stable")
    return replace(
        found,
        ids=together[order],
        words=np.concatenate([found.words, more.words])[order],
        cosine=np.concatenate([found.cosine, more.cosine])[order],
    )


async def rank(
    context: SearchContext, index: Index, probe: Probe, union: Candidates, *, keep: CandidateSelection
) -> Ranked | None:
    """Fuse the scores, read the rows of the best, and add the parts for threads and query context.

    Returns None if a row was deleted meanwhile.
    """
    standing = context.standing
    fused = _fused(union, context)
    quoting = _quoting(probe, union)
    scores = fused.score + from_identifiers(union.ids, union.exact) if len(union.exact) else fused.score
    best = sorted(keep.of(union, scores) | {*quoting})
    rows = await _rows(context, best)
    if len(rows) < len(best):
        return None
    quoted = _quoted(probe, [rows[each] for each in quoting])
    if max(quoted.values(), default=PHRASE) < PHRASE:
        further = _quoting(probe, union, further=True)
        read = rows | await _rows(context, [each for each in further if each not in rows])
        held = _quoted(probe, [read[each] for each in further if each in read])
        late = {each: share for each, share in held.items() if share}
        quoted, rows = quoted | late, rows | {each: read[each] for each in late}
    if standing is not None and isinstance(standing.profile, Product):
        ranked: Ranked | None = _multiplied(_ranked(union, fused, rows), standing)
    else:
        links = _links([row for row in rows.values() if row.document.thread is not None])
        if len(links) and not context.alone:
            ranked = await _rank_threads(context, index, probe, union, rows=rows, links=links)
        else:
            ranked = _added(_ranked(union, fused, rows), standing)
    if ranked is None:
        return None
    return _with_part(_with_part(ranked, QUOTED, quoted), FEEDBACK, context.judged)


def phrase_words(question: str) -> tuple[str, ...]:
    """Return the words of a query for phrase matching; empty if the query is too short or too long."""
    words = tuple(_WORD.findall(question.casefold()))
    return words if MIN_PHRASE_WORDS <= len(words) <= MAX_PHRASE_WORDS else ()


def from_phrases(words: Sequence[str], texts: Sequence[str], *, weight: float = PHRASE) -> Floats:
    """Return, for each text, the cubed share of the query in its longest sequence of query words.

    Stop words are not counted. The cube raises quotations and hardly affects common phrases.
    """
    saying = [word not in _EMPTY for word in words]
    shares = []
    for text in texts:
        start, end = longest_run(words, text)
        shares.append(sum(saying[start:end]) / max(sum(saying), 1))
    return weight * np.array(shares, dtype=np.float64) ** 3


def longest_run(words: Sequence[str], text: str) -> tuple[int, int]:
    """Return the start and end of the longest sequence of query words in a text.

    Both are equal if no sequence is long enough.
    """
    least = min(SHORTEST, len(words))
    folded = text.casefold()
    # Splitting a text into words is slow, and most texts have too few query words in a row, even as
    # substrings. A search for a run of marks in a string is faster than a loop over all starts.
    marks = "".join(["x" if word in folded else " " for word in words])
    if "x" * least not in marks:
        return 0, 0
    spoken = f" {' '.join(_WORD.findall(folded))} "
    found = 0, 0
    start = 0
    for end in range(1, len(words) + 1):
        while start < end and f" {' '.join(words[start:end])} " not in spoken:
            start += 1
        found = max(found, (start, end), key=lambda run: run[1] - run[0])
    return found if found[1] - found[0] >= least else (0, 0)


def _quoting(probe: Probe, union: Candidates, *, further: bool = False) -> list[int]:
    """Return the candidates that may quote the query: the best keyword hits.

    With `further`, return the following hits that have all terms: a quotation of common words can rank low.
    """
    if not phrase_words(probe.words or ""):
        return []
    first, end = (QUOTING, MAX_QUOTING) if further else (0, QUOTING)
    best = np.lexsort((union.ids, -union.words))[first:end]
    least = ALL_TERMS * sum(term.weight for term in union.terms) if further else 0.0
    held = union.words[best]
    return sorted(union.ids[best][(held > 0.0) & (held >= least)].tolist())


def _quoted(probe: Probe, rows: Sequence[StoredChunk]) -> dict[int, float]:
    """Return the phrase score of each text by chunk id."""
    texts = [passage(row.document, row.chunk.text) for row in rows]
    shares = from_phrases(phrase_words(probe.words or ""), texts).tolist()
    return dict(zip((row.chunk.id for row in rows), shares, strict=True))


def _with_part(ranked: Ranked, name: str, values: Mapping[int, float]) -> Ranked:
    """Add a part with the values of some candidates, if any of these is ranked and has one."""
    if not any(values.values()):
        return ranked
    part = np.array([values.get(each, 0.0) for each in ranked.candidates.ids.tolist()], dtype=np.float64)
    return replace(ranked, parts={**ranked.parts, name: part}) if part.any() else ranked


async def _rank_threads(
    context: SearchContext,
    index: Index,
    probe: Probe,
    union: Candidates,
    *,
    rows: _Rows,
    links: Ids,
) -> Ranked | None:
    """Rank with the neighbors of the best candidates, and add the parts for threads."""
    linked = set(links.ravel().tolist())
    union = await widened(index, probe, union, linked)
    neighbors = sorted((linked & {*union.ids.tolist()}) - {*rows})
    read = await _rows(context, neighbors)
    if len(read) < len(neighbors):
        return None
    rows = rows | read
    people = CONVERSATION if _people_talk(rows.values()) else None
    ranked = _ranked(union, _fused(union, context, people), rows)
    ids, in_order = ranked.candidates.ids, ranked.in_order
    score = ranked.parts["keyword"] + ranked.parts["vector"]
    weights = _weights(context.standing, ranked)
    spoken = thread_parts(probe.words or "", score, ids, links, rows=in_order, weights=weights)
    if context.standing is not None:
        spoken |= exchange_parts(score, ids, links, rows=in_order, weights=weights)
    return _added(replace(ranked, parts=ranked.parts | spoken), context.standing)


def _fused(union: Candidates, context: SearchContext, usual: FusionProfile | None = None) -> Fused:
    own = context.standing.profile.fusion if context.standing is not None else None
    space = None if isinstance(context.embedder, str) else context.embedder.space
    profile = own or context.fusion or usual or learnt_for(space)
    unknown = sum(not each.documents for each in union.terms) / max(len(union.terms), 1)
    profile = profile.with_unknown(unknown) if profile.unknown else profile
    return fuse(union.words, union.cosine, terms=len(union.terms), profile=profile)


def _weights(standing: RankingContext | None, ranked: Ranked) -> Weights:
    profile = PLAIN if standing is None else standing.profile
    if not isinstance(profile, Sum):
        return PLAIN.people
    return weights_for(profile, [row.document for row in ranked.in_order])


def _added(ranked: Ranked, standing: RankingContext | None) -> Ranked:
    """Add the parts for the place and time of the query, if given."""
    if standing is None:
        return ranked
    documents = [row.document for row in ranked.in_order]
    return replace(ranked, parts=ranked.parts | added(standing, documents, _weights(standing, ranked)))


def _multiplied(ranked: Ranked, standing: RankingContext) -> Ranked:
    documents = [row.document for row in ranked.in_order]
    base = ranked.parts["keyword"] + ranked.parts["vector"]
    return replace(ranked, parts=ranked.parts | multiplied(standing, documents, base))


def _ranked(union: Candidates, fused: Fused, rows: _Rows) -> Ranked:
    """Return the candidates whose rows were read."""
    places = np.searchsorted(union.ids, sorted(rows))
    pool = replace(union, ids=union.ids[places], words=union.words[places], cosine=union.cosine[places])
    parts = {"keyword": fused.words[places], "vector": fused.vectors[places]}
    if len(union.exact):
        parts[EXACT] = from_identifiers(pool.ids, union.exact)
    return Ranked(pool, parts, rows, fused.words_weight)


async def _rows(context: SearchContext, ids: Sequence[int]) -> _Rows:
    return {row.chunk.id: row for row in await context.hydrate([*map(ChunkId, ids)])} if ids else {}


def _people_talk(rows: Iterable[StoredChunk]) -> bool:
    """Return whether all candidates are conversations between people, not with an assistant."""
    documents = [row.document for row in rows]
    return all(each.kind in _MESSAGE_KINDS and each.role is None for each in documents) and bool(documents)


def _links(rows: Sequence[StoredChunk]) -> Ids:
    """Return pairs of chunks that directly follow each other in a thread."""
    before = [(row.previous, row.chunk.id) for row in rows if row.previous is not None]
    after = [(row.chunk.id, row.next) for row in rows if row.next is not None]
    return np.asarray(before + after, dtype=np.int64).reshape(-1, 2)


def thread_parts(
    question: str,
    scores: Floats,
    ids: Ids,
    links: Ids,
    *,
    rows: Sequence[StoredChunk],
    weights: Weights = PLAIN.people,
) -> dict[str, Floats]:
    """Return score parts from threads for ascending `ids` and their rows; 0 outside of threads."""
    documents = [row.document for row in rows]
    inside = np.array([float(each.thread is not None) for each in documents])
    threads = [None if each.thread is None else f"{each.source} {each.thread}" for each in documents]
    authors = [each.author if each.thread is not None else None for each in documents]
    roles = [each.role for each in documents]
    texts = [row.chunk.text for row in rows]
    return {
        "neighbors": from_neighbors(scores, ids, links, weight=weights.neighbors),
        "thread": from_thread(scores, threads, weight=weights.thread),
        "speaker": from_speaker(question, authors, weight=weights.speaker),
        "role": inside * from_role(roles, weight=weights.role),
        "question": inside * question_penalty(texts, weight=weights.question),
        "reply": from_question_before(scores, ids, links, authors=authors, texts=texts, weight=weights.reply),
        "date": inside * from_dates(question, [each.occurred for each in documents], weight=weights.date),
    }


def exchange_parts(
    scores: Floats, ids: Ids, links: Ids, *, rows: Sequence[StoredChunk], weights: Weights
) -> dict[str, Floats]:
    """Return score parts from the messages before and after, for the same candidates."""
    authors = [row.document.author for row in rows]
    hours = np.array([_hour(row.document) for row in rows])
    return {
        "conversation_flow": from_exchange(
            scores, ids, links, authors=authors, hours=hours, weight=weights.conversation_flow
        ),
        "thread_completeness": from_chain(scores, ids, links, weight=weights.thread_completeness),
    }


def _hour(document: Document) -> float:
    return np.nan if document.occurred is None else document.occurred.start.timestamp() / 3_600


GRAPH = "graph"
QUESTION_NAMES = "query_entities"
REACHED = "graph_entities"
GRAPH_PLAN = (GRAPH, QUESTION_NAMES, REACHED)
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


MAX_RERANKED = 50
"""Maximum number of hits that are passed to a reranker."""


async def reranked(query: str, hits: Sequence[Hit], reranker: Reranker | None, *, limit: int) -> Reranking:
    """Rerank hits and return the best `limit`.

    If no reranker is set or it fails, the first hits are returned in their order, without relevance and with
    a notice. Without hits, the reranker is not called.
    """
    if not hits or limit < 1:
        return Reranking(())
    if reranker is None:
        return _in_input_order(hits, limit, "not reranked: no reranker is set")
    texts = [passage(hit.document, hit.chunk.text) for hit in hits]
    try:
        judged = await reranker.rerank(query, texts, limit=limit)
    except ProviderError as fault:
        return _in_input_order(hits, limit, f"not reranked: {fault}")
    results = tuple(RankedHit(hits[place], relevance) for place, relevance in judged)
    return Reranking(results, model=reranker.model)


async def reordered(query: str, found: Retrieval, reranker: Reranker | None) -> Retrieval:
    """Order the best hits by relevance. The part `reranked` lifts them above the other hits.

    The score of a reranked hit is 1 plus its relevance.
    """
    best = found.hits[:MAX_RERANKED]
    if reranker is None or not best:
        return found
    answer = await reranked(query, best, reranker, limit=len(best))
    if answer.notice is not None:
        return replace(found, notices=(*found.notices, answer.notice))
    lifted = {each.hit.chunk.id: _lifted(each) for each in answer.results}
    rest = [hit for hit in found.hits if hit.chunk.id not in lifted]
    return replace(
        found,
        hits=(*lifted.values(), *rest),
        plan={**found.plan, "reranker": answer.model or ""},
    )


def _lifted(judged: RankedHit) -> Hit:
    hit = judged.hit
    parts = {**hit.parts, "reranked": 1.0 + (judged.relevance or 0.0) - hit.score}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _in_input_order(hits: Sequence[Hit], limit: int, notice: str) -> Reranking:
    return Reranking(tuple(RankedHit(hit, None) for hit in hits[:limit]), notice=notice)


def sure_enough(query: Query, found: Retrieval) -> Retrieval:
    """Return the hits if their confidence reaches the minimum; else none, with a notice of both."""
    if not query.min_confidence:
        return found
    plan = {**found.plan, "min_confidence": f"{query.min_confidence:.2f}"}
    if not found.hits or found.confidence >= query.min_confidence:
        return replace(found, plan=plan)
    notice = (
        f"the stored texts probably do not answer the query: the confidence {found.confidence:.2f}"
        f" is below the minimum {query.min_confidence:.2f}"
    )
    notices = (*found.notices, notice)
    return replace(
        found, outcome="no_match", hits=(), below_min_confidence=found.hits, plan=plan, notices=notices
    )


def with_highest(query: Query, found: Retrieval) -> Retrieval:
    """Add a notice of the highest similarity if all hits are below the minimum."""
    known = [hit.similarity for hit in found.below_min_similarity if hit.similarity is not None]
    if found.hits or not known:
        return found
    lowest = found.plan.get("min_similarity", query.min_similarity)
    notice = f"everything is below the minimum similarity {lowest}; the highest is {max(known):.2f}"
    return replace(found, notices=(*found.notices, notice))
