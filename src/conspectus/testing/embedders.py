"""Embedders for tests and benchmarks: small, honest, deterministic, without a model."""

import re
import zlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

WORD = re.compile(r"\w+")
ROWS = 1 << 15


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
