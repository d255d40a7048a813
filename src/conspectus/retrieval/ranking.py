"""Rank candidates by fused scores, threads and phrases. Each reason is a named part of the score."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, TypeAlias

import numpy as np

from conspectus.deferred import dataclass
from conspectus.graph.expansion import GraphCandidates
from conspectus.model.filter import Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.ids import ChunkId, SourceId
from conspectus.model.index import passage
from conspectus.model.records import Collection, StoredChunk
from conspectus.ports import Candidates, Embedder, Floats, Ids, Index, Probe
from conspectus.retrieval.boosts import from_identifiers
from conspectus.retrieval.candidates import CandidateSelection, widened
from conspectus.retrieval.feedback import FEEDBACK, PastFeedback
from conspectus.retrieval.fusion import CONVERSATION, Fused, FusionProfile, fuse, learnt_for
from conspectus.retrieval.phrases import PHRASE, from_phrases, phrase_words
from conspectus.retrieval.profiles import PLAIN, Product, Sum, Weights
from conspectus.retrieval.ranking_context import RankingContext, added, multiplied, weights_for
from conspectus.retrieval.thread_parts import exchange_parts, thread_parts

_Rows: TypeAlias = dict[int, StoredChunk]
EXACT = "identifier"
QUOTED = "phrase"
QUOTING = 10
"""Number of best keyword hits that are read to find sequences of query words."""
MAX_QUOTING: Final = 60
ALL_TERMS: Final = 0.7
"""Share of the maximum BM25 score that a text with all terms and up to twice the mean length reaches."""
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
