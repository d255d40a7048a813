"""The confidence of a search: the probability that its hits answer the query.

It is a logistic regression over available signals: the share of the best possible BM25 score that is
reached, the best cosine, and how well the best passages cover the query.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from conspectus.model.index import TermStatistic
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.text.analyzer import STOP_WORDS

MAX_READ_PASSAGES: Final = 3
"""Number of best passages that are compared with the query."""
MAX_QUERY_WORDS: Final = 64
"""Maximum number of query words that are examined."""
_STOP_WORDS: Final = frozenset().union(*STOP_WORDS.values())
_WORD: Final = re.compile(r"\w+")
_IN_PARENTHESES: Final = re.compile(r"\([^)]*\)")


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


def confidence_of(signals: Mapping[str, float]) -> float:
    """Return the probability that hits answer the query. Missing signals count as their mean."""
    log_odds = INTERCEPT + sum(
        weight.weight * (signals[name] - weight.mean) for name, weight in WEIGHTS.items() if name in signals
    )
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))


def confidence_signals(
    query: str, ranked: RankedCandidates, best: Sequence[Passage], readable_texts: Iterable[str]
) -> dict[str, float]:
    """Return the available signals of a search by name.

    A term that is in none of the readable texts counts as if no chunk had it: otherwise the confidence
    would show whether hidden texts hold a word.
    """
    passages = best[:MAX_READ_PASSAGES]
    # No phrase and no term reaches over the end of a line.
    texts = "\n".join(_normalize(_WORD.findall(f"{passage.title} {passage.text}")) for passage in passages)
    words = _WORD.findall(query)[:MAX_QUERY_WORDS]
    terms = _terms_without_hidden(ranked, readable_texts)
    cosine = float(np.fmax.reduce(ranked.cosine, initial=-1.0))
    return {
        **({"best_cosine": cosine} if cosine > -1.0 else {}),
        **_term_coverage(terms, float(ranked.bm25.max(initial=0.0)), texts),
        **_phrase_coverage("pairs", _word_pairs(words, max_stop_words=0), texts),
        **_phrase_coverage("pairs_with_one_stop_word", _word_pairs(words, max_stop_words=1), texts),
        **_phrase_coverage("names", _find_capitalized_runs(words), texts),
        "titles": float(_count_titles(words, passages)),
    }


def _terms_without_hidden(ranked: RankedCandidates, readable_texts: Iterable[str]) -> list[TermStatistic]:
    """Return the terms of the query; those in no readable text are as terms that no chunk has."""
    hidden = {term.term for term in ranked.terms if term.documents}
    for text in readable_texts:
        folded = _fold(text)
        hidden = {term for term in hidden if term not in folded}
        if not hidden:
            break
    idf = math.log(1.0 + (ranked.total + 0.5) / 0.5)
    return [replace(term, documents=0, idf=idf) if term.term in hidden else term for term in ranked.terms]


def _term_coverage(terms: Sequence[TermStatistic], best_bm25: float, texts: str) -> dict[str, float]:
    """Return the reached share of the possible BM25 score, and the share of idf found in the texts."""
    total_idf = sum(term.idf for term in terms)
    if not total_idf:
        return {}
    reached = best_bm25 / sum(term.weight for term in terms)
    covered_idf = sum(term.idf for term in terms if term.term in texts)
    return {"bm25_reached": math.log(0.05 + reached), "terms_covered": covered_idf / total_idf}


def _phrase_coverage(name: str, phrases: Set[str], texts: str) -> dict[str, float]:
    """Return the share of the phrases that any text has; empty without phrases."""
    covered = sum(f" {phrase} " in texts for phrase in phrases)
    return {name: covered / len(phrases)} if phrases else {}


def _word_pairs(words: Sequence[str], *, max_stop_words: int) -> set[str]:
    """Return pairs of adjacent words with at most `max_stop_words` stop words."""
    folded = [word.casefold() for word in words]
    return {
        f"{first} {second}"
        for first, second in pairwise(folded)
        if (first in _STOP_WORDS) + (second in _STOP_WORDS) <= max_stop_words
    }


def _find_capitalized_runs(words: Sequence[str]) -> set[str]:
    """Return sequences of capitalized words after the first word."""
    runs = (
        " ".join(run).casefold()
        for is_name, run in groupby(words[1:], lambda word: word[0].isupper())
        if is_name
    )
    return {run for run in runs if run not in _STOP_WORDS}


def _count_titles(words: Sequence[str], passages: Sequence[Passage]) -> int:
    """Count passages whose title, without parentheses, is part of the query; at most 2."""
    query = _normalize(words)
    titles = (_WORD.findall(_IN_PARENTHESES.sub("", passage.title)) for passage in passages)
    return min(sum(bool(title) and _normalize(title) in query for title in titles), 2)


def _normalize(words: Sequence[str]) -> str:
    return _fold(f" {' '.join(words)} ")


def _fold(text: str) -> str:
    # `casefold` is slower even where it does the same.
    return text.lower() if text.isascii() else text.casefold()
