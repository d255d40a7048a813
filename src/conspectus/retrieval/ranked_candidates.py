"""Ranked candidates: the named parts of their scores, with the rows that were read."""

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from conspectus.deferred import dataclass
from conspectus.model.index import TermStatistic
from conspectus.model.records import StoredChunk
from conspectus.retrieval.arrays import Floats, Ids


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """Candidates by ascending id, with their rows and the named parts of their scores.

    `bm25` is 0 where no term matches, `cosine` is NaN without a vector. `all_bm25` and `all_cosine` are those
    of all candidates, also of those whose rows were not read. `terms` are the terms of the query, and `total`
    is the number of chunks in the index. `keyword_weight` is the weight of keywords in fusion.
    `through` has the entities that led to candidates. `plan` and `notices` describe how a graph was used.
    """

    ids: Ids
    bm25: Floats
    cosine: Floats
    terms: tuple[TermStatistic, ...]
    total: int
    parts: Mapping[str, Floats]
    rows: Mapping[int, StoredChunk]
    keyword_weight: float
    through: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    plan: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    all_bm25: Floats = field(default_factory=lambda: np.zeros(0))
    all_cosine: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def rows_in_order(self) -> list[StoredChunk]:
        """The rows in the order of the candidates."""
        return [self.rows[chunk] for chunk in self.ids.tolist()]

    @property
    def fused_scores(self) -> Floats:
        """The fused keyword and vector scores."""
        return self.parts["keyword"] + self.parts["vector"]

    @property
    def total_scores(self) -> Floats:
        """The sum of all parts."""
        return np.asarray(np.sum([*self.parts.values()], axis=0), dtype=np.float64)

    def with_parts(self, parts: Mapping[str, Floats]) -> "RankedCandidates":
        """Return the candidates with more parts of their scores."""
        return replace(self, parts={**self.parts, **parts})

    def with_part_of(self, name: str, shares: Mapping[int, float]) -> "RankedCandidates":
        """Return the candidates with a part that some chunks have, if any of these is a candidate."""
        if not any(shares.values()):
            return self
        part = np.array([shares.get(chunk, 0.0) for chunk in self.ids.tolist()], dtype=np.float64)
        return self.with_parts({name: part}) if part.any() else self
