"""Feedback on earlier queries as a bounded part of the scores of similar ones."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.ids import UserId
from conspectus.model.records import EmbeddingSpace, StoredChunk
from conspectus.model.results import Feedback
from conspectus.ports import Floats, Judgment, Vectors
from conspectus.text.analyzer import analyzer_for
from conspectus.text.hashing import stable_id

FEEDBACK_PART: Final = "feedback"
FEEDBACK_WEIGHT: Final = 0.3
"""Bound of the part, which many people together approach; one person moves a chunk by at most half of it."""
MAX_JUDGMENTS: Final = 2_000
"""Number of newest judgments of a collection that count."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Similarities of two queries with no effect and with full effect."""

    none: float
    full: float

    def effect_of(self, similarity: Floats) -> Floats:
        """Return the effect, from 0 to 1."""
        return np.clip((similarity - self.none) / (self.full - self.none), 0.0, 1.0)


COSINE_RAMP: Final = Ramp(0.85, 1.0)
SHARED_TERMS_RAMP: Final = Ramp(0.7, 1.0)
"""Of the share of common terms among all terms of both queries."""


def feedback_on(row: StoredChunk, query: str, user: UserId, *, used: bool, now: datetime) -> Feedback:
    """Return feedback on a chunk. Its id is that of the earlier feedback of the user on chunk and query."""
    document, chunk = row.document, row.chunk.id
    return Feedback(
        id=stable_id("feedback", str(chunk), user, query),
        collection=document.collection,
        source=document.source,
        document=document.id,
        chunk=chunk,
        user=user,
        query=query,
        used=used,
        created=now,
    )


class PastFeedback:
    """The judgments of a collection, newest first, grouped by their queries.

    Two queries are as similar as the more similar of their vectors and their terms. A vector of another
    embedding model than `space` is ignored.
    """

    def __init__(
        self, judgments: Sequence[Judgment], language: str | None, space: EmbeddingSpace | None
    ) -> None:
        self.judgments, self.space = judgments, space
        self._analyzer = analyzer_for(language)
        self._by_query: dict[str, list[Judgment]] = defaultdict(list)
        for judgment in judgments:
            self._by_query[judgment.query].append(judgment)
        self._with_term: dict[str, list[int]] = defaultdict(list)
        lengths: list[int] = []
        for number, query in enumerate(self._by_query):
            terms = set(self._analyzer.terms(query))
            lengths.append(len(terms))
            for term in terms:
                self._with_term[term].append(number)
        self._lengths = np.array(lengths)
        space_name = space.name if space is not None else None
        vectors = {
            number: np.frombuffer(newest.vector, "<f2")
            for number, (newest, *_) in enumerate(self._by_query.values())
            if newest.vector is not None and newest.space == space_name
        }
        self._numbers = np.array(list(vectors), dtype=np.int64)
        self._vectors = np.array(list(vectors.values()), dtype=np.float32)

    def parts(self, words: str, vector: Vectors | None) -> Mapping[int, float]:
        """Return the parts of chunks for a query, from -`FEEDBACK_WEIGHT` to `FEEDBACK_WEIGHT`.

        Of each person, the judgment of the most similar query counts. The mean of n people is multiplied by
        n / (n + 1).
        """
        opinions: dict[int, dict[UserId, float]] = defaultdict(dict)
        for effect, judgments in self._similar_queries(words, vector):
            for judgment in judgments:
                signed_effect = effect if judgment.used else -effect
                opinions[judgment.chunk].setdefault(judgment.user, signed_effect)
        return {
            chunk: FEEDBACK_WEIGHT * sum(effects.values()) / (len(effects) + 1)
            for chunk, effects in opinions.items()
            if any(effects.values())
        }

    def _similar_queries(
        self, words: str, vector: Vectors | None
    ) -> Iterator[tuple[float, Sequence[Judgment]]]:
        """Yield earlier queries with an effect, the most similar first."""
        effects = np.maximum(self._effects_by_terms(words), self._effects_by_vector(vector))
        judgments = list(self._by_query.values())
        for number in np.argsort(-effects, kind="stable").tolist():
            if effects[number] <= 0.0:
                return
            yield float(effects[number]), judgments[number]

    def _effects_by_terms(self, words: str) -> Floats:
        terms = set(self._analyzer.terms(words))
        shared = np.zeros(len(self._lengths))
        queries = Counter(query for term in terms for query in self._with_term.get(term, ()))
        for query, count in queries.items():
            shared[query] = count
        return SHARED_TERMS_RAMP.effect_of(shared / np.maximum(self._lengths + len(terms) - shared, 1))

    def _effects_by_vector(self, vector: Vectors | None) -> Floats:
        effects = np.zeros(len(self._lengths))
        if vector is not None and len(self._numbers):
            effects[self._numbers] = COSINE_RAMP.effect_of((self._vectors @ vector).astype(np.float64))
        return effects
