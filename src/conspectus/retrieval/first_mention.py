"""Questions for a first mention: `When does he introduce eigenvectors?` asks for the first text about them.

Keywords and vectors prefer the text that says most about a subject, which mostly is a later one. So of the
texts of a stream, a document or a conversation that name the subject, the first one gets a part of its score.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.index import TermStatistic
from conspectus.model.records import StoredChunk
from conspectus.retrieval.arrays import Floats
from conspectus.retrieval.first_mention_words import FIRST_MENTION_WORDS, SUBJECT
from conspectus.retrieval.ranked_candidates import RankedCandidates
from conspectus.text.analyzer import Analyzer
from conspectus.text.late_patterns import re_pattern

FIRST_MENTION_PART: Final = "first_mention"
FIRST_MENTION_WEIGHT: Final = 1.0
"""More than the base of a score: of texts that name the subject, the first one comes first."""
INTRODUCTION_WEIGHT: Final = 0.1
"""An introduction need not be the first mention, so it only decides between texts of about the same score."""
REPEAT_FACTOR: Final = 0.5
"""A mention gets so much of what the mention before it gets."""
FIRST_MENTION_CANDIDATES: Final = 300
"""Number of candidates that are read, as the first mention of a subject can rank low."""
MIN_SUBJECT_SHARE: Final = 0.5
"""Share of the subject's idf that a text has at least if it mentions the subject."""
MAX_QUESTION_CHARACTERS: Final = 300
_SEQUENCE_KINDS: Final = frozenset({"caption", "event", "message", "memory"})
"""Kinds of documents that follow each other in their source."""


@dataclass(frozen=True, slots=True)
class FirstMentionQuestion:
    """A question for the first mention of a subject, and what that mention gets of its score at most."""

    subject: str
    weight: float


def _question_pattern(expressions: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for whole questions, with a group for the subject of each expression."""
    return re_pattern("|".join(map(_with_subject, expressions)), re.IGNORECASE)


def _with_subject(expression: str) -> str:
    return rf"\s*¿?{expression.replace(SUBJECT, '(.+?)')}[\s.?!]*"


_QUESTIONS: Final = tuple(
    (_question_pattern(expressions), weight)
    for words in FIRST_MENTION_WORDS.values()
    for expressions, weight in (
        (words.mentions, FIRST_MENTION_WEIGHT),
        (words.introductions, INTRODUCTION_WEIGHT),
    )
)


def first_mention_question(query: str) -> FirstMentionQuestion | None:
    """Return what a question for a first mention or an introduction asks for; None for other texts."""
    if len(query) > MAX_QUESTION_CHARACTERS:
        return None
    text = query.replace("\u2019", "'")
    for pattern, weight in _QUESTIONS:
        if question := pattern.fullmatch(text):
            subject = next(filter(None, question.groups()), "").strip()
            return FirstMentionQuestion(subject, weight) if subject else None
    return None


def with_first_mention_part(
    question: FirstMentionQuestion, ranked: RankedCandidates, analyzer: Analyzer
) -> RankedCandidates:
    """Return the candidates with a part for the first mentions of the subject."""
    rows = ranked.rows_in_order
    shares = np.array([_subject_share(row, ranked.terms, analyzer) for row in rows], dtype=np.float64)
    order = sorted(range(len(rows)), key=lambda position: _reading_order(rows[position]))
    sequences = [_sequence_key(row) for row in rows]
    boost = first_mention_boost(shares, sequences, order, weight=question.weight)
    return ranked.with_parts({FIRST_MENTION_PART: boost}) if boost.any() else ranked


def first_mention_boost(
    shares: Floats, sequences: Sequence[str], order: Sequence[int], *, weight: float
) -> Floats:
    """Return what each text gets, from the share of the subject that it has.

    `order` has the positions of the texts by time. In each sequence the texts with the largest share mention
    the subject: the first gets the weight, each one after it half of the one before.
    """
    largest: dict[str, float] = {}
    for share, sequence in zip(shares.tolist(), sequences, strict=True):
        largest[sequence] = max(share, largest.get(sequence, MIN_SUBJECT_SHARE))
    boost = np.zeros(len(shares))
    factors: dict[str, float] = {}
    for position in order:
        sequence = sequences[position]
        if shares[position] >= largest[sequence]:
            factor = factors.get(sequence, 1.0)
            boost[position] = weight * factor * shares[position]
            factors[sequence] = factor * REPEAT_FACTOR
    return boost


def _subject_share(row: StoredChunk, terms: Sequence[TermStatistic], analyzer: Analyzer) -> float:
    """Return the share of the terms' idf that a text has."""
    total = sum(term.idf for term in terms)
    if not total:
        return 0.0
    text_terms = set(analyzer.terms(row.chunk.text))
    return sum(term.idf for term in terms if term.term in text_terms) / total


def _sequence_key(row: StoredChunk) -> str:
    """Return the stream, conversation or document whose texts follow each other."""
    document = row.document
    if document.kind in _SEQUENCE_KINDS:
        return document.source
    return document.id if document.thread is None else f"{document.source}\n{document.thread}"


def _reading_order(row: StoredChunk) -> tuple[float, int, int, int]:
    """Return the time of a text, and its position where times are equal."""
    document = row.document
    time = 0.0
    if document.kind in _SEQUENCE_KINDS:
        time = document.time.timestamp()
    return (time, document.sequence or 0, document.number, row.chunk.position)
