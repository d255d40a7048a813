"""From scored captions to the stretches of their streams that answer a question best.

A question is answered by a stretch, but a caption is what has a score. A good caption says where to look: an
answer mostly begins shortly before the caption that is most like the question, and goes on after it. What
stands around a caption says whether it is about the same matter: how like the question it is on the whole,
and how many of the question's words are said there, by whichever caption. How the lengths, weights and this
way itself were chosen, and what did worse, is in docs/benchmarks.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

TYPICAL_SECONDS = 36.0
"""A stretch is about so long; a caption that is longer is a stretch by itself."""
BEFORE = 1.0 / 3.0
"""How much of what is missing to that length is taken from before the best caption."""
AROUND = 3
"""So many captions on either side speak for a caption."""
LIKENESS_WEIGHT = 0.65
WORDS_WEIGHT = 0.25
GOOD_WEIGHT = 0.4
BEST = 10
"""So many captions at most are good, by as much as they are better than the next; none gains more."""
MOST_OVERLAP = 0.3
"""Two stretches that share more of the time they cover together are one and the same answer."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A caption with its score: the words' and the vectors' share of it alone, NaN where it has none.

    `similarity` is its cosine with the question, NaN where it has no vector; `words` are those terms of the
    question that it says.
    """

    stream: str
    start: float
    end: float
    score: float
    similarity: float = nan
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MomentSpan:
    """Adjacent captions of one stream in the order of time, by their positions among those seen.

    `score` is the sum of `parts`: that of the best of them, how like the question it is around that one, what
    share of the question's words is said there, and good ones beside it.
    """

    stream: str
    start: float
    end: float
    members: tuple[int, ...]
    score: float
    parts: Mapping[str, float]


def moments(seen: Sequence[Seen], *, limit: int) -> list[MomentSpan]:
    """Return the best moments, at most `limit`; none overlaps a better one of its stream by much.

    Captions may come in any order, of several streams; the more of those around the good ones are among
    them, with or without a score, the better. One without a score counts as the worst that has one.
    """
    row = _in_a_row(seen)
    if not row.scored.any():
        return []
    parts = _parts(row, _said(row, seen))
    chosen: list[MomentSpan] = []
    order = np.argsort(-sum(parts.values()), kind="stable")
    for place in order[row.scored[order]].tolist():
        if len(chosen) >= limit:
            break
        own = {name: float(shares[place]) for name, shares in parts.items()}
        stretch = _stretch(row, place, seen[row.seen[place]].stream, own)
        if not any(_same(stretch, other) for other in chosen):
            chosen.append(stretch)
    return chosen


@dataclass(frozen=True, slots=True)
class _Row:
    """All captions, one stream after the other, each in the order of their middles.

    `seen` are their places as they were given; those of their stream stand from `first` up to `after`.
    """

    seen: Places
    starts: Floats
    ends: Floats
    scores: Floats
    similarities: Floats
    scored: NDArray[np.bool_]
    first: Places
    after: Places


def _in_a_row(seen: Sequence[Seen]) -> _Row:
    given = np.array(
        [(each.start, each.end, each.score, each.similarity) for each in seen], dtype=np.float64
    ).reshape(-1, 4)
    _, streams = np.unique([each.stream for each in seen], return_inverse=True)
    order = np.lexsort((given[:, 2], given[:, 0], given[:, 0] + given[:, 1], streams))
    streams, (starts, ends, scores, similarities) = streams[order], given[order].T
    scored = ~np.isnan(scores)
    return _Row(
        seen=order,
        starts=starts,
        ends=ends,
        scores=_filled(scores, scored),
        similarities=_filled(similarities, scored),
        scored=scored,
        first=np.searchsorted(streams, streams, side="left"),
        after=np.searchsorted(streams, streams, side="right"),
    )


def _filled(values: Floats, scored: NDArray[np.bool_]) -> Floats:
    """What was not found counts as the worst that was; what only waits for its vector, as the typical."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    return np.where(np.isnan(values), np.where(scored, np.median(known), known.min()), values)


def _said(row: _Row, seen: Sequence[Seen]) -> NDArray[np.bool_]:
    """Which captions, one in a row, say which terms, one in a column."""
    columns: dict[str, int] = {}
    places = [
        (place, columns.setdefault(term, len(columns)))
        for place, given in enumerate(row.seen.tolist())
        for term in sorted(seen[given].words)
    ]
    said = np.zeros((len(seen), len(columns)), dtype=np.bool_)
    said[tuple(np.array(places, dtype=np.intp).reshape(-1, 2).T)] = True
    return said


def _parts(row: _Row, said: NDArray[np.bool_]) -> dict[str, Floats]:
    """What adds up to the scores of stretches, for each caption as the best of one."""
    likeness, counts = _around(row, row.similarities)
    next_best = np.sort(row.scores)[::-1][: BEST + 1][-1]
    good = np.maximum(row.scores - next_best, 0.0)
    beside = GOOD_WEIGHT * (_around(row, good)[0] - good)
    return {
        "best caption": row.scores,
        "like it around": LIKENESS_WEIGHT * likeness / counts,
        "words around": WORDS_WEIGHT * _shares(row, said),
        "good beside": np.clip(beside, 0.0, good),
    }


def _shares(row: _Row, said: NDArray[np.bool_]) -> Floats:
    """The share of the words that is said around each caption; a word weighs more where few say it."""
    saying = said[row.scored].sum(axis=0)
    weights = np.log1p((row.scored.sum() - saying + 0.5) / (saying + 0.5))
    around, _ = _around(row, said.astype(np.float64))
    shares: Floats = (around > 0.0) @ weights / max(weights.sum(), np.finfo(np.float64).tiny)
    return shares


def _around(row: _Row, values: Floats) -> tuple[Floats, Places]:
    """The sum of each value, or row of values, and those around it in its stream, and how many these are."""
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    places = np.arange(len(values))
    first = np.maximum(places - AROUND, row.first)
    after = np.minimum(places + AROUND + 1, row.after)
    return sums[after] - sums[first], after - first


def _stretch(row: _Row, place: int, stream: str, parts: Mapping[str, float]) -> MomentSpan:
    """The captions around a place of which at least half is in the typical time around it."""
    own = slice(row.first[place], row.after[place])
    missing = max(TYPICAL_SECONDS - float(row.ends[place] - row.starts[place]), 0.0)
    since = row.starts[place] - BEFORE * missing
    until = row.ends[place] + (1.0 - BEFORE) * missing
    middles = (row.starts[own] + row.ends[own]) / 2.0
    first = own.start + np.searchsorted(middles, since, side="left")
    after = own.start + np.searchsorted(middles, until, side="right")
    inside = slice(min(first, place), max(after, place + 1))
    return MomentSpan(
        stream=stream,
        start=float(row.starts[inside].min()),
        end=float(row.ends[inside].max()),
        members=tuple(row.seen[inside].tolist()),
        score=sum(parts.values()),
        parts=parts,
    )


def _same(one: MomentSpan, other: MomentSpan) -> bool:
    """Whether both share so much of the time they cover together that they are one answer."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    together = max(one.end, other.end) - min(one.start, other.start)
    return one.stream == other.stream and shared >= MOST_OVERLAP * together
