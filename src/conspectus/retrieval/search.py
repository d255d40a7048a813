"""The read pipeline, step by step; each step leaves its share in the hits' parts."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeAlias

import numpy as np

from conspectus.errors import ProviderError, StorageBusy
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.records import StoredChunk
from conspectus.model.results import Hit, Retrieval
from conspectus.ports import Candidates, Embedder, Floats, Ids, Index, Probe
from conspectus.retrieval.arms import look, probe, widened
from conspectus.retrieval.fuse import CONVERSATION, LEARNT, Fused, fuse
from conspectus.retrieval.plan import DEPTH, Plan, plan
from conspectus.retrieval.threads import thread_parts

ATTEMPTS = 5

_Rows: TypeAlias = dict[int, StoredChunk]


@dataclass(frozen=True, slots=True)
class Looking:
    """Where a search looks: an index that holds all the records, how to bring it up to them again, the rows
    behind chunk ids, the embedder of the space that answers (or why there is none), and the filter, what
    the person may see included.
    """

    index: Index
    refreshed: Callable[[], Awaitable[Index]]
    hydrate: Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]
    embedder: Embedder | str
    where: Filter


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their rows, best first, and the named parts that add up to their scores."""

    candidates: Candidates
    parts: dict[str, Floats]
    rows: _Rows
    words_weight: float


@dataclass(frozen=True, slots=True)
class _Keep:
    """Which candidates are worth reading: the best, and those that were asked for by id."""

    limit: int
    also: tuple[ChunkId, ...]
    floored: bool

    def of(self, union: Candidates, scores: Floats) -> Ids:
        """The ids to go on with: more than the limit only where threads or a floor may change who is in."""
        number = max(self.limit, DEPTH) if union.threads or self.floored else self.limit
        best = union.ids[np.lexsort((union.ids, -scores))[:number]]
        return np.union1d(best, np.intersect1d(union.ids, np.asarray(self.also, dtype=np.int64)))


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


async def search(query: Query, looking: Looking, *, also: Sequence[ChunkId] = ()) -> Retrieval:
    """The hits for a question, best first; the chunks of `also` are ranked even if no arm found them.

    Raises StorageBusy when documents were replaced during every one of several attempts.
    """
    watch = Stopwatch()
    blind = looking.embedder if isinstance(looking.embedder, str) else None
    embedder = None if isinstance(looking.embedder, str) else looking.embedder
    decided, asked = await _asked(query, looking.where, embedder, blind)
    watch.lap("embed the question")
    keep = _Keep(query.limit, tuple(also), floored=query.floor is not None)
    index = looking.index
    for _ in range(ATTEMPTS):
        union = await look(index, asked, also)
        watch.lap("look in the index")
        ranked = await _rank(looking, index, asked, union, keep=keep)
        watch.lap("rank and read")
        if ranked is not None:
            return _selected(query, decided, ranked, also=also, timings=watch.times)
        index = await looking.refreshed()
        watch.lap("follow the records again")
    raise StorageBusy("documents were replaced faster than they could be read; ask again")


async def _asked(
    query: Query, where: Filter, embedder: Embedder | None, blind: str | None
) -> tuple[Plan, Probe]:
    """What to look for; a question that cannot be embedded is still asked by its words, and says so."""
    decided = plan(query, blind=blind)
    try:
        return decided, await probe(query, decided, where, embedder)
    except ProviderError as fault:
        if not decided.words:
            raise
        decided = plan(query, blind=f"the question could not be embedded: {fault}")
        return decided, await probe(query, decided, where, None)


async def _rank(
    looking: Looking, index: Index, asked: Probe, union: Candidates, *, keep: _Keep
) -> Ranked | None:
    """Fuse, read the rows of the best, and let threads speak; None when a row vanished meanwhile."""
    fused = fuse(union.words, union.cosine, terms=len(union.terms))
    best = keep.of(union, fused.score)
    rows = await _rows(looking, best)
    if len(rows) < len(best):
        return None
    links = _links([row for row in rows.values() if row.document.thread is not None])
    if len(links):
        return await _rank_threads(looking, index, asked, union, rows=rows, links=links)
    return _ranked(union, fused, rows)


async def _rank_threads(
    looking: Looking, index: Index, asked: Probe, union: Candidates, *, rows: _Rows, links: Ids
) -> Ranked | None:
    """The same with the turns before and after the best, and with what their threads say for each."""
    union = await widened(index, asked, union, np.setdiff1d(links, union.ids))
    neighbours = np.setdiff1d(np.intersect1d(links, union.ids), list(rows))
    read = await _rows(looking, neighbours)
    if len(read) < len(neighbours):
        return None
    rows = rows | read
    profile = CONVERSATION if _people_talk(rows.values()) else LEARNT
    fused = fuse(union.words, union.cosine, terms=len(union.terms), profile=profile)
    ranked = _ranked(union, fused, rows)
    ids = ranked.candidates.ids
    score = ranked.parts["words"] + ranked.parts["vectors"]
    in_order = [rows[int(each)] for each in ids]
    spoken = thread_parts(asked.words or "", score, ids, links, in_order)
    return replace(ranked, parts=ranked.parts | spoken)


def _ranked(union: Candidates, fused: Fused, rows: _Rows) -> Ranked:
    """The candidates whose rows were read."""
    places = np.searchsorted(union.ids, np.sort(np.fromiter(rows, dtype=np.int64, count=len(rows))))
    pool = replace(union, ids=union.ids[places], words=union.words[places], cosine=union.cosine[places])
    return Ranked(
        pool, {"words": fused.words[places], "vectors": fused.vectors[places]}, rows, fused.words_weight
    )


async def _rows(looking: Looking, ids: Ids) -> _Rows:
    wanted = [ChunkId(int(each)) for each in ids]
    return {int(row.chunk.id): row for row in await looking.hydrate(wanted)} if wanted else {}


def _people_talk(rows: Iterable[StoredChunk]) -> bool:
    """Whether the candidates are what people say to each other, and not to an assistant."""
    documents = [row.document for row in rows]
    return all(each.kind == "message" and each.role is None for each in documents) and bool(documents)


def _links(rows: Sequence[StoredChunk]) -> Ids:
    """Pairs of chunks of which one directly follows the other in its thread."""
    before = [(row.previous, row.chunk.id) for row in rows if row.previous is not None]
    after = [(row.chunk.id, row.next) for row in rows if row.next is not None]
    return np.asarray(before + after, dtype=np.int64).reshape(-1, 2)


def _selected(
    query: Query, plan: Plan, ranked: Ranked, *, also: Sequence[ChunkId], timings: dict[str, float]
) -> Retrieval:
    """The best hits above the floor, which looks at raw similarity only, and those it kept out."""
    hits = [_hit(ranked, place) for place in range(len(ranked.candidates.ids))]
    hits.sort(key=lambda hit: (-hit.score, hit.chunk.id))
    above = [hit for hit in hits if not _below(hit, query.floor)]
    best = above[: query.limit] + [hit for hit in above[query.limit :] if hit.chunk.id in also]
    return Retrieval(
        outcome="found" if best else "nothing_relevant",
        hits=tuple(best),
        below_floor=tuple(hit for hit in hits if _below(hit, query.floor)),
        plan=plan.described() | {"weight of words": f"{ranked.words_weight:.2f}"},
        notices=plan.notices,
        timings=timings,
    )


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
    )


def _below(hit: Hit, floor: float | None) -> bool:
    """A chunk without a vector has no similarity that a floor could judge; its words speak for it."""
    return floor is not None and hit.similarity is not None and hit.similarity < floor
