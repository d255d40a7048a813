"""Embeddings of the caller, as vectors and as an embedder of an engine."""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from conspectus.errors import ConspectusError, InvalidInput, ProviderError
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.text.vectors import unit

T = TypeVar("T")


class Embeddings:
    """Vectors of documents and queries as lists of numbers.

    The object has `embed_documents` and `embed_query`, and optionally `embed_document` for single texts.
    Functions that are not coroutines run in a thread. Their errors are passed on.
    """

    def __init__(self, embeddings: Any) -> None:
        for name in ("embed_documents", "embed_query"):
            if not callable(getattr(embeddings, name, None)):
                raise InvalidInput("embeddings", f"{type(embeddings).__name__} has no method {name}")
        self._inner = embeddings

    async def document(self, text: str) -> list[float]:
        """Return the vector of one document."""
        if callable(getattr(self._inner, "embed_document", None)):
            return _row(await _call(self._inner.embed_document, text))
        return (await self.documents([text]))[0]

    async def documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of documents. Raises InvalidInput if there is not one for each text."""
        if not texts:
            return []
        rows = [_row(vector) for vector in await _call(self._inner.embed_documents, list(texts))]
        if len(rows) != len(texts):
            raise InvalidInput("embeddings", f"made {len(rows)} vectors of {len(texts)} texts")
        return rows

    async def query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return _row(await _call(self._inner.embed_query, text))


class ContextEmbedder:
    """The same object as an embedder: `conspectus.open(embedder=ContextEmbedder(mine, 768))`."""

    def __init__(self, embeddings: Any, dimensions: int, *, model: str = "context") -> None:
        self._inner = Embeddings(embeddings)
        self._space = EmbeddingSpace(model, dimensions)

    @property
    def space(self) -> EmbeddingSpace:
        """The space of its vectors; each model needs its own name."""
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows of shape (len(texts), dimensions).

        Raises ProviderError for any error of the object.
        """
        return self._units(self._raise_error(await catch_error(self._inner.documents(texts))))

    async def embed_query(self, text: str) -> Vectors:
        """Return a unit vector of shape (dimensions,)."""
        row: Vectors = self._units([self._raise_error(await catch_error(self._inner.query(text)))])[0]
        return row

    async def close(self) -> None:
        """Do nothing: the caller owns the object."""

    def _raise_error(self, answer: T | Exception) -> T:
        if isinstance(answer, ConspectusError):
            raise answer
        if isinstance(answer, Exception):
            raise ProviderError(self._space.model, type(answer).__name__) from answer
        return answer

    def _units(self, rows: Sequence[Sequence[float]]) -> Vectors:
        if any(len(row) != self._space.dimensions for row in rows):
            raise InvalidInput("embeddings", f"must make vectors of {self._space.dimensions} numbers")
        if not rows:
            return np.empty((0, self._space.dimensions), dtype=np.float32)
        return np.stack([unit(row) for row in rows])


async def catch_error(work: Awaitable[T]) -> T | Exception:
    """Return the result or the exception."""
    [answer] = await asyncio.gather(work, return_exceptions=True)
    if isinstance(answer, BaseException) and not isinstance(answer, Exception):
        raise answer
    return answer


async def _call(method: Callable[..., Any], argument: Any) -> Any:
    if inspect.iscoroutinefunction(method):
        return await method(argument)
    answer = await asyncio.to_thread(method, argument)
    return await answer if inspect.isawaitable(answer) else answer


def _row(vector: Any) -> list[float]:
    try:
        row = [float(number) for number in vector]
    except (TypeError, ValueError) as fault:
        raise InvalidInput("embeddings", f"gave {type(vector).__name__} in place of a vector") from fault
    if not row or not all(map(math.isfinite, row)):
        raise InvalidInput("embeddings", "gave a vector that is empty or not finite")
    return row
