"""An embedder of a caller, whose vectors pass the same gate as those of services."""

from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from conspectus.errors import ConspectusError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Embedder, Vectors
from conspectus.providers.answers import attempt
from conspectus.text.vectors import check_rows


class CheckedEmbedder:
    """Passes on the vectors of an embedder, if they have its space's shape and are finite and not zero.

    Anything else raises ProviderUnavailable, and so does whatever the embedder raises that is no error of
    this program: a document stays pending, and a query uses keywords.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    @property
    def space(self) -> EmbeddingSpace:
        """The space of the embedder."""
        return self._inner.space

    @property
    def knows(self) -> Callable[[str], bool] | None:
        """The optional method of the embedder; None if it has none."""
        return getattr(self._inner, "knows", None)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows, one for each text. Raises ProviderUnavailable."""
        rows = await self._outcome(self._inner.embed_documents(texts))
        return check_rows(rows, self.space, len(texts))

    async def embed_query(self, text: str) -> Vectors:
        """Return a unit vector. Raises ProviderUnavailable."""
        vector = await self._outcome(self._inner.embed_query(text))
        rows = vector[np.newaxis] if isinstance(vector, np.ndarray) else vector
        row: Vectors = check_rows(rows, self.space, 1)[0]
        return row

    async def _outcome(self, work: Awaitable[Vectors]) -> Vectors:
        """Return what the embedder makes. Raises ProviderUnavailable for foreign errors."""
        outcome = await attempt(work)
        if isinstance(outcome, ConspectusError):
            raise outcome
        if isinstance(outcome, Exception):
            reason = f"raised {type(outcome).__name__}: {outcome}"
            raise ProviderUnavailable(self.space.model, reason, verdict="answer") from outcome
        return outcome

    async def close(self) -> None:
        """Release what the embedder holds."""
        await self._inner.close()
