"""A space whose vectors nobody here can make: they are handed in with documents and with questions."""

from collections.abc import Sequence
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.text.vectors import MOST_DIMENSIONS

VECTORS: Final = "vectors:"
"""The setting `vectors:768` names the space of vectors of 768 numbers that callers have already."""


class GivenVectors:
    """What stands for the embedder of such a space; it embeds nothing."""

    def __init__(self, setting: str) -> None:
        size = setting.removeprefix(VECTORS)
        digits = size.isascii() and size.isdecimal() and len(size) <= len(str(MOST_DIMENSIONS))
        if not (digits and 1 <= int(size) <= MOST_DIMENSIONS):
            raise InvalidInput("embedder", f"{setting!r} needs a size from 1 to {MOST_DIMENSIONS}")
        self._space = EmbeddingSpace(VECTORS.removesuffix(":"), int(size))

    @property
    def space(self) -> EmbeddingSpace:
        """The space."""
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Raises InvalidInput."""
        raise self._refusal()

    async def embed_query(self, text: str) -> Vectors:
        """Raises InvalidInput."""
        raise self._refusal()

    async def close(self) -> None:
        """Nothing to release."""

    def _refusal(self) -> InvalidInput:
        return InvalidInput("vector", "must be handed in: the collection has no embedder of its own")
