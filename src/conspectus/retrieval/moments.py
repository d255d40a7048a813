"""Moments: the time ranges of streams that best answer a query, from scored captions.

Scores belong to captions, but an answer is a time range. A good caption shows where to look: an answer mostly
starts shortly before the most similar caption and continues after it. The captions around it show whether
they are about the same subject: by their mean similarity to the query, and by how many query terms any of
them contains. docs/benchmarks/index.md documents how lengths, weights and the method were selected, and which
alternatives scored worse.
"""

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

TYPICAL_SECONDS = 36.0
"""Typical length of a moment. A longer caption is a moment of its own."""
BEFORE = 1.0 / 3.0
"""Share of the missing length that is taken from before the best caption."""
AROUND = 3
"""Number of captions on each side that contribute to the score of a caption."""
LIKENESS_WEIGHT = 0.65
WORDS_WEIGHT = 0.25
GOOD_WEIGHT = 0.4
BEST = 10
"""Maximum number of good captions. A caption gains at most its lead over the next best caption."""
MAX_OVERLAP = 0.3
"""Moments with at least this overlap (intersection over union) are the same answer."""


@dataclass(frozen=True, slots=True)
class ScoredCaption:
    """A caption with its fused keyword and vector score, NaN if it has none.

    `similarity` is its cosine with the query, NaN without a vector. `words` are the query terms in its text.
    """

    stream: str
    start: float
    end: float
    score: float
    similarity: float = nan
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MomentSpan:
    """Adjacent captions of one stream in order of time, by their positions in the input.

    `score` is the sum of `parts`: the score of the best caption, the similarity of the captions around it to
    the query, the share of query terms in them, and the good captions beside it.
    """

    stream: str
    start: float
    end: float
    members: tuple[int, ...]
    score: float
    parts: Mapping[str, float]


def moments(captions: Sequence[ScoredCaption], *, limit: int) -> list[MomentSpan]:
    """Return the best moments, at most `limit`. None overlaps a better moment of its stream by much.

    Captions may be in any order and from several streams. Results improve with more captions around the good
    ones, with or without a score. A caption without a score gets the lowest score.
    """
    row = _in_a_row(captions)
    if not row.scored.any():
        return []
    parts = _parts(row, _term_matrix(row, captions))
    chosen: list[MomentSpan] = []
    order = np.argsort(-sum(parts.values()), kind="stable")
    for place in order[row.scored[order]].tolist():
        if len(chosen) >= limit:
            break
        own = {name: float(shares[place]) for name, shares in parts.items()}
        stretch = _stretch(row, place, captions[row.seen[place]].stream, own)
        if not any(_same(stretch, other) for other in chosen):
            chosen.append(stretch)
    return chosen


@dataclass(frozen=True, slots=True)
class _Row:
    """All captions, grouped by stream and sorted by the middle of their time ranges.

    `seen` has their positions in the input. The captions of the same stream are from `first` up to `after`.
    """

    seen: Places
    starts: Floats
    ends: Floats
    scores: Floats
    similarities: Floats
    scored: NDArray[np.bool_]
    first: Places
    after: Places


def _in_a_row(captions: Sequence[ScoredCaption]) -> _Row:
    given = np.array(
        [(each.start, each.end, each.score, each.similarity) for each in captions], dtype=np.float64
    ).reshape(-1, 4)
    _, streams = np.unique([each.stream for each in captions], return_inverse=True)
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
    """Fill missing values: the minimum if the caption was not found, the median if its vector is pending."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    return np.where(np.isnan(values), np.where(scored, np.median(known), known.min()), values)


def _term_matrix(row: _Row, captions: Sequence[ScoredCaption]) -> NDArray[np.bool_]:
    """Return a matrix with a row for each caption and a column for each term."""
    columns: dict[str, int] = {}
    places = [
        (place, columns.setdefault(term, len(columns)))
        for place, given in enumerate(row.seen.tolist())
        for term in sorted(captions[given].words)
    ]
    said = np.zeros((len(captions), len(columns)), dtype=np.bool_)
    said[tuple(np.array(places, dtype=np.intp).reshape(-1, 2).T)] = True
    return said


def _parts(row: _Row, said: NDArray[np.bool_]) -> dict[str, Floats]:
    """Return the parts of a moment's score, for each caption as its best."""
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
    """Return the share of query terms around each caption, with more weight for rare terms."""
    saying = said[row.scored].sum(axis=0)
    weights = np.log1p((row.scored.sum() - saying + 0.5) / (saying + 0.5))
    around, _ = _around(row, said.astype(np.float64))
    shares: Floats = (around > 0.0) @ weights / max(weights.sum(), np.finfo(np.float64).tiny)
    return shares


def _around(row: _Row, values: Floats) -> tuple[Floats, Places]:
    """Return the sums of values over each caption and its neighbors, and the numbers of summands."""
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    places = np.arange(len(values))
    first = np.maximum(places - AROUND, row.first)
    after = np.minimum(places + AROUND + 1, row.after)
    return sums[after] - sums[first], after - first


def _stretch(row: _Row, place: int, stream: str, parts: Mapping[str, float]) -> MomentSpan:
    """Return a moment: the captions whose middle is in the typical time around the best caption."""
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
    """Return whether two moments overlap so much that they are the same answer."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    together = max(one.end, other.end) - min(one.start, other.start)
    return one.stream == other.stream and shared >= MAX_OVERLAP * together
