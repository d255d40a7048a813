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
from conspectus.ports import Candidates
from conspectus.text.analyzer import STOP_WORDS

READ: Final = 3
"""Number of best passages that are compared with the query."""
MAX_QUERY_WORDS: Final = 64
"""Maximum number of query words that are examined."""
_EMPTY_WORDS: Final = frozenset().union(*STOP_WORDS.values())
_WORD: Final = re.compile(r"\w+")
_IN_BRACKETS: Final = re.compile(r"\([^)]*\)")


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


def probability(values: Mapping[str, float]) -> float:
    """Return the probability that hits answer the query. Missing signals count as their mean."""
    odds = INTERCEPT + sum(
        each.weight * (values[name] - each.mean) for name, each in WEIGHTS.items() if name in values
    )
    return 1.0 / (1.0 + math.exp(min(max(-odds, -50.0), 50.0)))


def signals(query: str, found: Candidates, best: Sequence[Passage], seen: Iterable[str]) -> dict[str, float]:
    """Return the available signals of a search by name.

    A term that is in no text that was `seen` counts as if no chunk had it: otherwise the confidence
    would show whether hidden texts hold a word.
    """
    cosine = float(np.fmax.reduce(found.cosine, initial=-1.0))
    # No phrase and no term reaches over the end of a line.
    texts = "\n".join(_normalized(_WORD.findall(f"{each.title} {each.text}")) for each in best[:READ])
    words = _WORD.findall(query)[:MAX_QUERY_WORDS]
    return {
        **({"best_cosine": cosine} if cosine > -1.0 else {}),
        **_covered(_limited_to_texts(found, seen), float(found.words.max(initial=0.0)), texts),
        **_held("pairs", _pairs(words, maximum=0), texts),
        **_held("pairs_with_one_stop_word", _pairs(words, maximum=1), texts),
        **_held("names", _names(words), texts),
        "titles": float(_titles(words, best[:READ])),
    }


def _limited_to_texts(found: Candidates, seen: Iterable[str]) -> list[TermStatistic]:
    absent = math.log(1.0 + (found.total + 0.5) / 0.5)
    missing = {each.term for each in found.terms if each.documents}
    for text in seen:
        folded = _folded(text)
        missing = {each for each in missing if each not in folded}
        if not missing:
            break
    return [replace(each, documents=0, idf=absent) if each.term in missing else each for each in found.terms]


def _covered(terms: Sequence[TermStatistic], best: float, texts: str) -> dict[str, float]:
    """Return the reached share of the possible BM25 score, and the share of idf found in the texts."""
    whole = sum(each.idf for each in terms)
    if not whole:
        return {}
    reached = best / sum(each.weight for each in terms)
    covered = sum(each.idf for each in terms if each.term in texts)
    return {
        "bm25_reached": math.log(0.05 + reached),
        "terms_covered": covered / whole,
    }


def _held(name: str, phrases: Set[str], texts: str) -> dict[str, float]:
    """Return the share of the wanted phrases found in any text; empty if none are wanted."""
    held = sum(f" {each} " in texts for each in phrases)
    return {name: held / len(phrases)} if phrases else {}


def _pairs(words: Sequence[str], *, maximum: int) -> set[str]:
    """Return pairs of adjacent words with at most `maximum` stop words."""
    folded = [word.casefold() for word in words]
    return {
        f"{one} {two}"
        for one, two in pairwise(folded)
        if (one in _EMPTY_WORDS) + (two in _EMPTY_WORDS) <= maximum
    }


def _names(words: Sequence[str]) -> set[str]:
    """Return sequences of capitalized words after the first word."""
    runs = (
        " ".join(run).casefold()
        for is_name, run in groupby(words[1:], lambda word: word[0].isupper())
        if is_name
    )
    return {run for run in runs if run not in _EMPTY_WORDS}


def _titles(words: Sequence[str], best: Sequence[Passage]) -> int:
    """Count passages whose title, without parentheses, is part of the query; at most 2."""
    request = _normalized(words)
    titles = (_WORD.findall(_IN_BRACKETS.sub("", each.title)) for each in best)
    return min(sum(bool(title) and _normalized(title) in request for title in titles), 2)


def _normalized(words: Sequence[str]) -> str:
    return _folded(f" {' '.join(words)} ")


def _folded(text: str) -> str:
    # `casefold` is slower even where it does the same.
    return text.lower() if text.isascii() else text.casefold()
