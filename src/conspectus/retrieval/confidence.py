"""The confidence of a search: the probability that its hits answer the query.

It is a logistic regression over available signals: the best cosine, how far the best cosine and BM25 score
lead, how well the best passages cover the query, and whether they are by the person whom the query names.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from conspectus.model.index import AUTHORED, TermStatistic
from conspectus.model.records import Document
from conspectus.retrieval.arrays import Floats
from conspectus.retrieval.confidence_weights import INTERCEPT, WEIGHTS
from conspectus.retrieval.fusion import MAX_LEAD_HITS
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.text.analyzer import ALL_STOP_WORDS

MAX_READ_PASSAGES: Final = 3
"""Number of best passages that are compared with the query."""
MAX_WEIGHED_HITS: Final = 10
"""Number of best hits whose authors are compared with those whom the query names."""
SCORE_SPREAD: Final = 0.1
"""A hit whose score is lower by this much weighs e times less."""
MAX_NEAREST: Final = 100
"""Number of nearest texts over which the best cosine has its lead; the depth of every search."""
MAX_QUERY_WORDS: Final = 64
"""Maximum number of query words that are examined."""
_WORD: Final = re.compile(r"\w+")
_IN_PARENTHESES: Final = re.compile(r"\([^)]*\)")


class Passage(NamedTuple):
    """The document title, the text, the author and the score of a hit; only messages have an author."""

    title: str
    text: str
    author: str = ""
    score: float = 0.0


def author_of(document: Document) -> str:
    """Return who wrote a message or a memory; empty for other documents."""
    return document.author or "" if document.kind in AUTHORED else ""


def confidence_of(signals: Mapping[str, float]) -> float:
    """Return the probability that hits answer the query. Missing signals count as their mean."""
    log_odds = INTERCEPT + sum(log_odds_of(signals).values())
    return 1.0 / (1.0 + math.exp(min(max(-log_odds, -50.0), 50.0)))


def log_odds_of(signals: Mapping[str, float]) -> dict[str, float]:
    """Return what each signal adds to the log odds of the confidence; below 0 it lowers the confidence."""
    return {
        name: weight.weight * (signals[name] - weight.mean)
        for name, weight in WEIGHTS.items()
        if name in signals
    }


def describe_confidence(signals: Mapping[str, float]) -> str:
    """Return what the confidence rests on: what each signal adds to its log odds, most first."""
    parts = sorted(log_odds_of(signals).items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{name} {log_odds:+.2f}" for name, log_odds in parts)


def confidence_signals(
    query: str, ranked: RankedCandidates, best: Sequence[Passage], readable_texts: Iterable[str]
) -> dict[str, float]:
    """Return the available signals of a search by name, from its best passages.

    A term that is in none of the readable texts counts as if no chunk had it: otherwise the confidence
    would show whether hidden texts hold a word.
    """
    passages = best[:MAX_READ_PASSAGES]
    # No phrase and no term reaches over the end of a line.
    texts = "\n".join(_normalize(_WORD.findall(f"{passage.title} {passage.text}")) for passage in passages)
    words = _WORD.findall(query)[:MAX_QUERY_WORDS]
    return {
        **_cosines(ranked.all_cosine),
        **_terms_reached(_terms_without_hidden(ranked, readable_texts), ranked.all_bm25, passages[:1]),
        **_phrase_coverage("pairs", _word_pairs(words), texts),
        **_phrase_coverage("names", _find_capitalized_runs(words), texts),
        "titles": float(_count_titles(words, passages)),
        **_share_of_author(words, best, {author_of(row.document) for row in ranked.rows.values()}),
    }


def _cosines(all_cosine: Floats) -> dict[str, float]:
    """Return the best cosine, and its lead over the mean of the next nearest texts, if there are any."""
    nearest = -np.sort(-all_cosine[~np.isnan(all_cosine)])[:MAX_NEAREST]
    if not len(nearest):
        return {}
    best = float(nearest[0])
    lead = {"cosine_lead": best - float(nearest[1:].mean())} if len(nearest) > 1 else {}
    return {"best_cosine": best, **lead}


def _terms_reached(
    terms: Sequence[TermStatistic], all_bm25: Floats, passages: Sequence[Passage]
) -> dict[str, float]:
    """Return the lead of the best BM25 score over the mean of the next nine, and the covered share of idf.

    The lead is a share of the possible score. Texts that do not exist have a score of 0.
    """
    total_idf = sum(term.idf for term in terms)
    if not total_idf:
        return {}
    highest = -np.sort(-all_bm25)[:MAX_LEAD_HITS]
    lead = float(highest[:1].sum() - highest[1:].sum() / (MAX_LEAD_HITS - 1))
    text = "\n".join(_fold(f"{passage.title} {passage.author} {passage.text}") for passage in passages)
    covered_idf = sum(term.idf for term in terms if term.term in text)
    possible = sum(term.weight for term in terms)
    return {"bm25_lead": lead / possible, "terms_covered": covered_idf / total_idf}


def _share_of_author(words: Sequence[str], hits: Sequence[Passage], authors: Set[str]) -> dict[str, float]:
    """Return how much of the best hits is by the author whom the query names, by their scores.

    The signal is missing if the query names no author, or all of them.
    """
    spoken = {word for word in words if len(word) > 1 and word.casefold() not in ALL_STOP_WORDS}
    named_words = {author: len(spoken.intersection(_WORD.findall(author))) for author in authors if author}
    most = max(named_words.values(), default=0)
    named = {author for author, number in named_words.items() if number == most}
    if not most or len(named) == len(named_words):
        return {}
    weights = [math.exp((hit.score - hits[0].score) / SCORE_SPREAD) for hit in hits]
    by_named = sum(weight for weight, hit in zip(weights, hits, strict=True) if hit.author in named)
    return {"author": by_named / sum(weights)}


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


def _phrase_coverage(name: str, phrases: Set[str], texts: str) -> dict[str, float]:
    """Return the share of the phrases that any text has; empty without phrases."""
    covered = sum(f" {phrase} " in texts for phrase in phrases)
    return {name: covered / len(phrases)} if phrases else {}


def _word_pairs(words: Sequence[str]) -> set[str]:
    """Return pairs of adjacent words, of which at most one is a stop word."""
    folded = [word.casefold() for word in words]
    return {
        f"{first} {second}" for first, second in pairwise(folded) if not {first, second} <= ALL_STOP_WORDS
    }


def _find_capitalized_runs(words: Sequence[str]) -> set[str]:
    """Return sequences of capitalized words after the first word."""
    runs = (
        " ".join(run).casefold()
        for is_name, run in groupby(words[1:], lambda word: word[0].isupper())
        if is_name
    )
    return {run for run in runs if run not in ALL_STOP_WORDS}


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
