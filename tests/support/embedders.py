"""Embedders that fail, one whose vectors texts state, and whether the multilingual one is installed."""

import os
import re
from collections.abc import Sequence
from importlib import util

import numpy as np
import pytest

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder

SIMILARITY = re.compile(r"cosine ([01]\.\d+)")
POISON = "poison"
needs_multilingual = pytest.mark.skipif(
    util.find_spec("conspectus_multilingual") is None and not os.environ.get("CI"),
    reason="conspectus-multilingual is not installed: make multilingual",
)


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
        cosines = [float(similarity[1]) if (similarity := SIMILARITY.search(text)) else 0.0 for text in texts]
        return np.array([[cosine, (1 - cosine**2) ** 0.5] for cosine in cosines], dtype=np.float32).reshape(
            -1, 2
        )

    async def embed_query(self, text: str) -> Vectors:
        """The first axis, whatever is asked."""
        return np.array([1.0, 0.0], dtype=np.float32)

    async def close(self) -> None:
        """Nothing to release."""
