"""Fusion of keyword and vector scores: a weight for each query, from signals of its raw scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.index import TermStatistic
from conspectus.model.records import EmbeddingSpace
from conspectus.retrieval.arrays import Floats

MAX_LEAD_HITS = 10
"""Number of best candidates of a retriever over which its lead is measured."""
MAX_COMMON_UNKNOWN_SHARE = 0.5
"""The share of unknown terms that few queries in the language of the texts exceed."""
MIN_VECTOR_TERMS = 4
"""Queries with fewer terms say too little for a vector."""
MIN_REACHED_SHARE = 0.25
"""If no text reaches this share of the summed term weights, texts share too few words with the query."""
FULLY_REACHED_SHARE = 0.5
"""A text that reaches more of the summed term weights has most of several query terms."""
MIN_DIGITS_SHARE = 0.5
"""If terms with digits have a larger share of the summed term weights, the query asks for a number."""


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of the raw scores of a query that decide how much to trust each retriever.

    `words_lead` is the lead of the best BM25 score over the tenth, as a share of the best (0 to 1).
    `cosine_lead` is the same difference of cosines. `best_cosine` is the highest cosine. `cosine_apart` is
    the mean cosine of the ten nearest minus that of the ten best by keywords. `words_apart` is the share of
    the best BM25 score that the nearest text lacks (0 to 1). `terms` is the number of distinct query terms.
    """

    words_lead: float
    cosine_lead: float
    best_cosine: float
    cosine_apart: float
    words_apart: float
    terms: int


@dataclass(frozen=True, slots=True)
class FusionProfile:
    """Weights of the signals in the log odds of keywords against vectors.

    `scripts/train_fusion.py` learned the defaults on public sets; docs/adr/0002 has the figures. `unknown` is
    for the share of query terms beyond `MAX_COMMON_UNKNOWN_SHARE` that no text has. `short` is for each term
    that a query lacks to `MIN_VECTOR_TERMS`; with `unknown`, only if texts have all of its terms. `unreached`
    is for the share that the best text lacks to `MIN_REACHED_SHARE`, `reached` for what it has beyond
    `FULLY_REACHED_SHARE`, if the query has several terms. `digits` is for the share of terms with digits
    beyond `MIN_DIGITS_SHARE`.
    """

    intercept: float = -1.82
    words_lead: float = 3.47
    cosine_lead: float = -1.79
    best_cosine: float = -1.55
    cosine_apart: float = -5.47
    words_apart: float = 0.14
    terms: float = 0.63
    unknown: float = 0.0
    short: float = 0.0
    unreached: float = 0.0
    reached: float = 0.0
    digits: float = 0.0

    def with_unknown(self, share: float) -> "FusionProfile":
        """Return the weights for a query of whose terms no text has this share."""
        beyond = max(share - MAX_COMMON_UNKNOWN_SHARE, 0.0)
        if share:
            return replace(self, intercept=self.intercept + self.unknown * beyond, short=0.0)
        return self

    def with_terms(self, terms: Sequence[TermStatistic], best_bm25: float) -> "FusionProfile":
        """Return the weights for a query with these terms, of which the best text has this BM25 score."""
        possible = sum(term.weight for term in terms)
        if not possible:
            return self
        reached = best_bm25 / possible
        beyond = max(min(reached, 1.0) - FULLY_REACHED_SHARE, 0.0) if len(terms) > 1 else 0.0
        with_digits = sum(term.weight for term in terms if term.documents and _has_digit(term.term))
        log_odds = (
            self.unreached * max(MIN_REACHED_SHARE - reached, 0.0)
            + self.reached * beyond
            + self.digits * max(with_digits / possible - MIN_DIGITS_SHARE, 0.0)
        )
        profile = replace(self, intercept=self.intercept + log_odds)
        if self.unknown:
            return profile.with_unknown(sum(not term.documents for term in terms) / len(terms))
        return profile

    def log_odds(self, signals: Signals) -> float:
        """Return log odds: above 0 keywords weigh more than vectors, below 0 less."""
        return (
            self.intercept
            + self.words_lead * signals.words_lead
            + self.cosine_lead * signals.cosine_lead
            + self.best_cosine * signals.best_cosine
            + self.cosine_apart * signals.cosine_apart
            + self.words_apart * signals.words_apart
            + self.terms * math.log(max(signals.terms, 1))
            + self.short * max(MIN_VECTOR_TERMS - signals.terms, 0)
        )


DEFAULT_FUSION = FusionProfile(short=0.5, unreached=-30.0, digits=10.0)
MULTILINGUAL_FUSION = FusionProfile(
    intercept=-1.32,
    words_lead=0.54,
    cosine_lead=-2.13,
    best_cosine=-0.74,
    cosine_apart=-2.94,
    words_apart=-1.57,
    terms=0.33,
    unknown=-10.0,
    short=0.5,
    unreached=-30.0,
    reached=4.0,
    digits=10.0,
)
"""Learned with multilingual-e5-small, also on queries in another language than the texts: docs/adr/0033.

Most terms of a query in another language are unknown. Then names and numbers must not decide. A text that has
most words of a query is in its language.
"""
_FUSION_BY_MODEL: Mapping[str, FusionProfile] = {"multilingual-e5-small": MULTILINGUAL_FUSION}
CONVERSATION_FUSION = FusionProfile(
    intercept=-0.22,
    words_lead=0.0,
    cosine_lead=0.0,
    best_cosine=0.0,
    cosine_apart=0.0,
    words_apart=0.0,
    terms=0.0,
    unreached=-30.0,
)
"""For conversations between people in threads: keywords weigh 0.45 if texts share words with the query.

A statement shares only common words with what was said about it before, and these must not decide.
"""
VECTORS_ONLY_FUSION = FusionProfile(intercept=-50.0)
WORDS_ONLY_FUSION = FusionProfile(intercept=50.0)
"""Use keywords alone if any match: for a query in a language that the embedding model does not support."""


def fusion_for_model(space: EmbeddingSpace | None) -> FusionProfile:
    """Return the weights that were learned with an embedding model, or those of all-MiniLM-L6-v2."""
    if space is None:
        return DEFAULT_FUSION
    return _FUSION_BY_MODEL.get(space.model, DEFAULT_FUSION)


@dataclass(frozen=True, slots=True)
class Fused:
    """Both parts of each candidate's score, and the weight of keywords for this query (0 to 1)."""

    words: Floats
    vectors: Floats
    words_weight: float

    @property
    def score(self) -> Floats:
        """The sum of both parts, from -1 to 1."""
        return self.words + self.vectors


def fuse(words: Floats, cosine: Floats, *, terms: int, profile: FusionProfile = DEFAULT_FUSION) -> Fused:
    """Fuse the raw scores of a query's candidates, in any order.

    `words` is raw BM25 (at least 0), `cosine` is NaN for a candidate without a vector, and `terms` is the
    number of distinct query terms. BM25 scores are divided by the best one, so the best is 1. A candidate
    without a vector gets the median cosine of the others. If one retriever has no scores, the other decides
    alone.
    """
    best = float(words.max(initial=0.0))
    shares = words / best if best > 0.0 else np.zeros(len(words))
    has_vector = ~np.isnan(cosine)
    if has_vector.all():
        weight = _words_weight(words, cosine, best, terms, profile)
    else:
        weight = _words_weight(words[has_vector], cosine[has_vector], best, terms, profile)
        typical = float(np.median(cosine[has_vector])) if has_vector.any() else 0.0
        cosine = np.where(has_vector, cosine, typical)
    return Fused(weight * shares, (1.0 - weight) * cosine, weight)


def fusion_signals(words: Floats, cosine: Floats, *, terms: int) -> Signals:
    """Return the signals of at least one candidate with a vector. The order of equal scores has no effect."""
    count = min(MAX_LEAD_HITS, len(words))
    fewest, farthest = -words, -cosine
    by_words = np.lexsort((farthest, fewest))[:count]
    by_cosine = np.lexsort((fewest, farthest))[:count]
    best = max(float(words[by_words[0]]), np.finfo(np.float64).tiny)
    nearest = cosine[by_cosine]
    return Signals(
        words_lead=float(words[by_words[0]] - words[by_words[-1]]) / best,
        cosine_lead=float(nearest[0] - nearest[-1]),
        best_cosine=float(nearest[0]),
        cosine_apart=float(nearest.sum() / count - cosine[by_words].sum() / count),
        words_apart=1.0 - float(words[by_cosine[0]]) / best,
        terms=terms,
    )


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)


def _words_weight(words: Floats, cosine: Floats, best: float, terms: int, profile: FusionProfile) -> float:
    """Return the weight of keywords, from candidates that all have a vector.

    `best` is the highest BM25 score of all candidates.
    """
    if not len(words):
        return 1.0
    if not words.any():
        return 0.5 if best > 0.0 else 0.0
    log_odds = profile.log_odds(fusion_signals(words, cosine, terms=terms))
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))
