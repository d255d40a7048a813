"""Embedders for tests and benchmarks: small, honest, deterministic, without a model."""

import re
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

WORD = re.compile(r"\w+")
STATED = re.compile(r"cosine ([01]\.\d+)")
ROWS = 1 << 15
POISON = "poison"


@cache
def _random_rows(dimensions: int, version: str) -> Vectors:
    chance = np.random.default_rng(zlib.crc32(version.encode()))
    rows: Vectors = chance.standard_normal((ROWS, dimensions), dtype=np.float32)
    rows.setflags(write=False)
    return rows


class HashedEmbedder:
    """Texts that share words are similar: the normalised sum of a fixed random vector for each word."""

    def __init__(self, dimensions: int = 64, *, version: str = "1") -> None:
        self._space = EmbeddingSpace("hashed", dimensions, version)
        self._table = _random_rows(dimensions, version)
        self.calls = 0

    @property
    def space(self) -> EmbeddingSpace:
        """The space; another version is another space with other vectors."""
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows; a text without words points along the first axis."""
        self.calls += 1
        return np.stack([self._one(text) for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector."""
        return self._one(text)

    async def close(self) -> None:
        """Nothing to release."""

    def _one(self, text: str) -> Vectors:
        rows = [zlib.crc32(word.encode("utf-8", "replace")) % ROWS for word in WORD.findall(text.lower())]
        total: Vectors = self._table[rows].sum(axis=0) if rows else np.eye(1, self._space.dimensions)[0]
        unit: Vectors = (total / np.linalg.norm(total)).astype(np.float32)
        return unit


class LockedEmbedder(HashedEmbedder):
    """Refuses everything until it has a valid key."""

    locked = True

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows. Raises ProviderError without the key."""
        vectors = await super().embed_documents(texts)
        if self.locked:
            raise ProviderError("hashed", "does not know the key", status=401)
        return vectors


class PickyEmbedder(HashedEmbedder):
    """Refuses any text that holds POISON, and is away for the first `away` calls."""

    def __init__(self, *, away: int = 0) -> None:
        super().__init__()
        self._away = away

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows. Raises ProviderUnavailable while away, ProviderError for a poisoned batch."""
        if self._away > 0:
            self._away -= 1
            raise ProviderUnavailable("picky", "is away", retry_after=0.01)
        if any(POISON in text for text in texts):
            raise ProviderError("picky", "refused a text")
        return await super().embed_documents(texts)


class StatedEmbedder:
    """Texts say themselves how similar they are to every question, as `cosine 0.9`; others are not at all."""

    space = EmbeddingSpace("stated", 2)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, each at the angle that its text states from the vector of every question."""
        cosines = [float(found[1]) if (found := STATED.search(text)) else 0.0 for text in texts]
        return np.array([[each, (1 - each**2) ** 0.5] for each in cosines], dtype=np.float32).reshape(-1, 2)

    async def embed_query(self, text: str) -> Vectors:
        """The first axis, whatever is asked."""
        return np.array([1.0, 0.0], dtype=np.float32)

    async def close(self) -> None:
        """Nothing to release."""
