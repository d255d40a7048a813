"""Moments: the time ranges of streams that best answer a query, from scored captions.

Scores belong to captions, but an answer is a time range. A good caption shows where to look: an answer mostly
starts shortly before the most similar caption and continues after it. The captions around it show whether
they are about the same subject: by their mean similarity to the query, and by how many query terms any of
them contains. benchmarks/NOTES.md documents how lengths, weights and the method were selected, and which
alternatives scored worse.
"""

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.retrieval.arrays import Floats

Positions = NDArray[np.intp]

TYPICAL_SECONDS = 36.0
"""Typical length of a moment. A longer caption is a moment of its own."""
SHARE_BEFORE = 1.0 / 3.0
"""Share of the missing length that is taken from before the best caption."""
CAPTIONS_AROUND = 3
"""Number of captions on each side that contribute to the score of a caption."""
SIMILARITY_WEIGHT = 0.65
TERMS_WEIGHT = 0.25
GOOD_WEIGHT = 0.4
MAX_GOOD_CAPTIONS = 10
"""Maximum number of good captions. A caption gains at most its lead over the next best caption."""
MAX_OVERLAP = 0.3
"""Moments with at least this overlap (intersection over union) are the same answer."""


@dataclass(frozen=True, slots=True)
class ScoredCaption:
    """A caption with its fused keyword and vector score, NaN if it has none.

    `similarity` is its cosine with the query, NaN without a vector. `words` are the query terms in its text.
    `first_mention` is what it gets as the first one that mentions the subject.
    """

    stream: str
    start: float
    end: float
    score: float
    similarity: float = nan
    words: frozenset[str] = frozenset()
    first_mention: float = 0.0


@dataclass(frozen=True, slots=True)
class MomentSpan:
    """Adjacent captions of one stream in order of time, by their positions in the input.

    `score` is the sum of `parts`: the score of the best caption, the similarity of the captions around it to
    the query, the share of query terms in them, the good captions beside it, and what the best caption gets
    as a first mention.
    """

    stream: str
    start: float
    end: float
    members: tuple[int, ...]
    score: float
    parts: Mapping[str, float]


def find_moments(captions: Sequence[ScoredCaption], *, limit: int) -> list[MomentSpan]:
    """Return the best moments, at most `limit`. None overlaps a better moment of its stream by much.

    Captions may be in any order and from several streams. Results improve with more captions around the good
    ones, with or without a score. A caption without a score gets the lowest score.
    """
    ordered = _order_captions(captions)
    if not ordered.scored.any():
        return []
    parts = _parts(ordered, _term_matrix(ordered, captions))
    first_mentions = np.array([captions[position].first_mention for position in ordered.inputs.tolist()])
    if first_mentions.any():
        parts["first mention"] = first_mentions
    best: list[MomentSpan] = []
    order = np.argsort(-sum(parts.values()), kind="stable")
    for position in order[ordered.scored[order]].tolist():
        if len(best) >= limit:
            break
        stream = captions[ordered.inputs[position]].stream
        parts_here = {name: float(shares[position]) for name, shares in parts.items()}
        moment = _moment_around(ordered, position, stream, parts_here)
        if not any(_are_same(moment, other) for other in best):
            best.append(moment)
    return best


@dataclass(frozen=True, slots=True)
class _OrderedCaptions:
    """All captions, grouped by stream and sorted by the middle of their time ranges.

    `inputs` are their positions in the input. The captions of the same stream are from `first` up to `after`.
    """

    inputs: Positions
    starts: Floats
    ends: Floats
    scores: Floats
    similarities: Floats
    scored: NDArray[np.bool_]
    first: Positions
    after: Positions


def _order_captions(captions: Sequence[ScoredCaption]) -> _OrderedCaptions:
    numbers = np.array(
        [(caption.start, caption.end, caption.score, caption.similarity) for caption in captions],
        dtype=np.float64,
    ).reshape(-1, 4)
    _, streams = np.unique([caption.stream for caption in captions], return_inverse=True)
    order = np.lexsort((numbers[:, 2], numbers[:, 0], numbers[:, 0] + numbers[:, 1], streams))
    streams, (starts, ends, scores, similarities) = streams[order], numbers[order].T
    scored = ~np.isnan(scores)
    return _OrderedCaptions(
        inputs=order,
        starts=starts,
        ends=ends,
        scores=_fill_gaps(scores, scored),
        similarities=_fill_gaps(similarities, scored),
        scored=scored,
        first=np.searchsorted(streams, streams, side="left"),
        after=np.searchsorted(streams, streams, side="right"),
    )


def _fill_gaps(values: Floats, scored: NDArray[np.bool_]) -> Floats:
    """Fill missing values: the minimum if the caption was not found, the median if its vector is pending."""
    present = values[~np.isnan(values)]
    if not len(present):
        return np.zeros(len(values))
    return np.where(np.isnan(values), np.where(scored, np.median(present), present.min()), values)


def _term_matrix(ordered: _OrderedCaptions, captions: Sequence[ScoredCaption]) -> NDArray[np.bool_]:
    """Return a matrix with a row for each caption and a column for each term."""
    columns: dict[str, int] = {}
    positions = [
        (position, columns.setdefault(term, len(columns)))
        for position, caption in enumerate(ordered.inputs.tolist())
        for term in sorted(captions[caption].words)
    ]
    has_term = np.zeros((len(captions), len(columns)), dtype=np.bool_)
    has_term[tuple(np.array(positions, dtype=np.intp).reshape(-1, 2).T)] = True
    return has_term


def _parts(ordered: _OrderedCaptions, has_term: NDArray[np.bool_]) -> dict[str, Floats]:
    """Return the parts of a moment's score, for each caption as its best."""
    similarities, counts = _sums_around(ordered, ordered.similarities)
    next_best = np.sort(ordered.scores)[::-1][: MAX_GOOD_CAPTIONS + 1][-1]
    good = np.maximum(ordered.scores - next_best, 0.0)
    beside = GOOD_WEIGHT * (_sums_around(ordered, good)[0] - good)
    captions_with = has_term[ordered.scored].sum(axis=0)
    weights = np.log1p((ordered.scored.sum() - captions_with + 0.5) / (captions_with + 0.5))
    around, _ = _sums_around(ordered, has_term.astype(np.float64))
    shares: Floats = (around > 0.0) @ weights / max(weights.sum(), np.finfo(np.float64).tiny)
    return {
        "best caption": ordered.scores,
        "like it around": SIMILARITY_WEIGHT * similarities / counts,
        "words around": TERMS_WEIGHT * shares,
        "good beside": np.clip(beside, 0.0, good),
    }


def _sums_around(ordered: _OrderedCaptions, values: Floats) -> tuple[Floats, Positions]:
    """Return the sums of values over each caption and its neighbors, and the numbers of summands."""
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    positions = np.arange(len(values))
    first = np.maximum(positions - CAPTIONS_AROUND, ordered.first)
    after = np.minimum(positions + CAPTIONS_AROUND + 1, ordered.after)
    return sums[after] - sums[first], after - first


def _moment_around(
    ordered: _OrderedCaptions, position: int, stream: str, parts: Mapping[str, float]
) -> MomentSpan:
    """Return a moment: the captions whose middle is in the typical time around the best caption."""
    same_stream = slice(ordered.first[position], ordered.after[position])
    missing = max(TYPICAL_SECONDS - float(ordered.ends[position] - ordered.starts[position]), 0.0)
    since = ordered.starts[position] - SHARE_BEFORE * missing
    until = ordered.ends[position] + (1.0 - SHARE_BEFORE) * missing
    middles = (ordered.starts[same_stream] + ordered.ends[same_stream]) / 2.0
    first = same_stream.start + np.searchsorted(middles, since, side="left")
    after = same_stream.start + np.searchsorted(middles, until, side="right")
    inside = slice(min(first, position), max(after, position + 1))
    return MomentSpan(
        stream=stream,
        start=float(ordered.starts[inside].min()),
        end=float(ordered.ends[inside].max()),
        members=tuple(ordered.inputs[inside].tolist()),
        score=sum(parts.values()),
        parts=parts,
    )


def _are_same(one: MomentSpan, other: MomentSpan) -> bool:
    """Return whether two moments overlap so much that they are the same answer."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    together = max(one.end, other.end) - min(one.start, other.start)
    return one.stream == other.stream and shared >= MAX_OVERLAP * together
