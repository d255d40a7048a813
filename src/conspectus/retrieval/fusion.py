"""One score out of two: BM25 and cosine, weighted by what both lists say about the question.

Neither arm is the better one everywhere, and a fixed weight loses up to nine points of nDCG@10 on some
kind of text. So the weight is learnt per question, from six signals of the raw scores; all of them look
at the ten best of each arm only, so the answer does not depend on how deep the arms look.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BEST = 10


@dataclass(frozen=True, slots=True)
class Signals:
    """What the raw scores of one question say about which arm to trust.

    `words_lead` is how far the best BM25 score stands above the tenth, as a share of the best (0 to 1);
    `cosine_lead` the same difference of cosines; `best_cosine` the highest cosine; `cosine_apart` how
    much higher the mean cosine of the ten nearest is than that of the ten best by words; `words_apart`
    the share of the best BM25 score that the nearest text lacks (0 to 1); `terms` the number of distinct
    terms in the question.
    """

    words_lead: float
    cosine_lead: float
    best_cosine: float
    cosine_apart: float
    words_apart: float
    terms: int


@dataclass(frozen=True, slots=True)
class FusionProfile:
    """Weights of the signals in the logarithm of the odds that words deserve against vectors.

    The defaults were learnt by `scripts/train_fusion.py` on public sets; docs/adr/0002 has the figures.
    """

    intercept: float = -1.82
    words_lead: float = 3.47
    cosine_lead: float = -1.79
    best_cosine: float = -1.55
    cosine_apart: float = -5.47
    words_apart: float = 0.14
    terms: float = 0.63

    def log_odds(self, signals: Signals) -> float:
        """Above 0 words weigh more than vectors, below 0 less."""
        return (
            self.intercept
            + self.words_lead * signals.words_lead
            + self.cosine_lead * signals.cosine_lead
            + self.best_cosine * signals.best_cosine
            + self.cosine_apart * signals.cosine_apart
            + self.words_apart * signals.words_apart
            + self.terms * math.log(max(signals.terms, 1))
        )


LEARNT = FusionProfile()
CONVERSATION = FusionProfile(
    intercept=-0.22,
    words_lead=0.0,
    cosine_lead=0.0,
    best_cosine=0.0,
    cosine_apart=0.0,
    words_apart=0.0,
    terms=0.0,
)
"""For people talking to each other in threads: words weigh 0.45, whatever the signals say."""


@dataclass(frozen=True, slots=True)
class Fused:
    """The two parts of each candidate's score, and the weight of words for this question (0 to 1)."""

    words: Floats
    vectors: Floats
    words_weight: float

    @property
    def score(self) -> Floats:
        """The sum of both parts, from -1 to 1."""
        return self.words + self.vectors


def fuse(words: Floats, cosine: Floats, *, terms: int, profile: FusionProfile = LEARNT) -> Fused:
    """Fuse the raw scores of one question's candidates, in any order.

    `words` is raw BM25 (at least 0), `cosine` is NaN where a candidate has no vector, `terms` counts the
    question's distinct terms. Words count as a share of the question's best BM25 score, so the best is 1.
    A candidate without a vector is given the median cosine of the others: neither punished nor favoured.
    Where one arm says nothing, the other decides alone.
    """
    best = float(words.max(initial=0.0))
    known = ~np.isnan(cosine)
    weight = _words_weight(words, cosine, known, terms, profile)
    shares = words / best if best > 0.0 else np.zeros(len(words))
    typical = float(np.median(cosine[known])) if known.any() else 0.0
    return Fused(weight * shares, (1.0 - weight) * np.where(known, cosine, typical), weight)


def signals(words: Floats, cosine: Floats, *, terms: int) -> Signals:
    """The signals of at least one candidate, all of which have a vector; equal scores in any order."""
    count = min(BEST, len(words))
    by_words = np.lexsort((-cosine, -words))[:count]
    by_cosine = np.lexsort((-words, -cosine))[:count]
    best = max(float(words[by_words[0]]), np.finfo(np.float64).tiny)
    nearest = cosine[by_cosine]
    return Signals(
        words_lead=float(words[by_words[0]] - words[by_words[-1]]) / best,
        cosine_lead=float(nearest[0] - nearest[-1]),
        best_cosine=float(nearest[0]),
        cosine_apart=float(np.mean(nearest) - np.mean(cosine[by_words])),
        words_apart=1.0 - float(words[by_cosine[0]]) / best,
        terms=terms,
    )


def _words_weight(
    words: Floats, cosine: Floats, known: NDArray[np.bool_], terms: int, profile: FusionProfile
) -> float:
    if not known.any():
        return 1.0
    if not words[known].any():
        return 0.5 if words.any() else 0.0
    log_odds = profile.log_odds(signals(words[known], cosine[known], terms=terms))
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))
