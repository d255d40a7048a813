"""The read pipeline, step by step; each step leaves its share in the hits' parts."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from conspectus.errors import StorageBusy
from conspectus.model.filter import Filter
from conspectus.model.ids import ChunkId
from conspectus.model.query import Query
from conspectus.model.records import StoredChunk
from conspectus.model.results import Hit, Retrieval
from conspectus.ports import Candidates, Embedder, Floats, Ids, Index, Probe
from conspectus.retrieval.arms import look, probe
from conspectus.retrieval.plan import DEPTH, Plan, plan

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Looking:
    """Where a search looks: an index brought up to the records each time it is asked for, the rows behind
    chunk ids, the embedder of the space that answers (or why there is none), and the filter, what the
    person may see included.
    """

    index: Callable[[], Awaitable[Index]]
    hydrate: Callable[[Sequence[ChunkId]], Awaitable[Sequence[StoredChunk]]]
    embedder: Embedder | str
    where: Filter


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their rows, best first, and the named parts that add up to their scores."""

    candidates: Candidates
    parts: dict[str, Floats]
    rows: dict[int, StoredChunk]


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
    decided = plan(query, blind=blind)
    asked = await probe(query, decided, looking.where, embedder)
    watch.lap("embed the question")
    for _ in range(ATTEMPTS):
        index = await looking.index()
        watch.lap("follow the records")
        union = await look(index, asked, also)
        watch.lap("look in the index")
        ranked = await _rank(query, looking, index, asked, union)
        watch.lap("rank and read")
        if ranked is not None:
            return _selected(query, decided, ranked, watch.times)
    raise StorageBusy("documents were replaced faster than they could be read; ask again")


async def _rank(
    query: Query, looking: Looking, index: Index, asked: Probe, union: Candidates
) -> Ranked | None:
    """Fuse, read the rows of the best, and let threads speak; None when a row vanished meanwhile."""
    first = _best(union, _blend(union), max(query.limit, DEPTH))
    rows = {int(row.chunk.id): row for row in await looking.hydrate([ChunkId(int(i)) for i in first])}
    if len(rows) < len(first):
        return None
    parts = _blend(union)
    kept = np.isin(union.ids, first)
    union = Candidates(union.ids[kept], union.words[kept], union.cosine[kept], union.terms, union.total)
    return Ranked(union, {name: values[kept] for name, values in parts.items()}, rows)


def _blend(union: Candidates) -> dict[str, Floats]:
    mass = sum(term.idf for term in union.terms) * 2.2
    return {
        "words": 0.6 * union.words / max(mass, 1e-9),
        "vectors": np.nan_to_num(union.cosine, nan=0.0),
    }


def _best(union: Candidates, parts: dict[str, Floats], limit: int) -> Ids:
    total = sum(parts.values(), np.zeros(len(union.ids)))
    return union.ids[np.lexsort((union.ids, -total))[:limit]]


def _selected(query: Query, plan: Plan, ranked: Ranked, timings: dict[str, float]) -> Retrieval:
    """The best hits above the floor, which looks at raw similarity only, and those it kept out."""
    hits = [_hit(ranked, place) for place in range(len(ranked.candidates.ids))]
    hits.sort(key=lambda hit: (-hit.score, hit.chunk.id))
    above = [hit for hit in hits if not _below(hit, query.floor)]
    return Retrieval(
        outcome="found" if above[: query.limit] else "nothing_relevant",
        hits=tuple(above[: query.limit]),
        below_floor=tuple(hit for hit in hits if _below(hit, query.floor)),
        plan=plan.described(),
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
