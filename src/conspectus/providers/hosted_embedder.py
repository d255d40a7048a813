"""Embeds with any vendor that pydantic-ai-slim can reach, named `vendor:model`."""

import asyncio
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from conspectus.errors import InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_BLANK = "."

_Kind = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a hosted model is asked: all times in seconds, `attempts` in total for one batch."""

    attempts: int = 4
    first_wait: float = 0.5
    longest_wait: float = 60.0
    timeout: float = 60.0

    def wait(self, attempt: int, asked: float | None) -> float:
        """The vendor's own wish, else twice as long as after the attempt before (0 is the first)."""
        return asked if asked is not None else min(self.longest_wait, self.first_wait * 2**attempt)


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The most that one request carries; a single longer text still goes alone, whole."""

    texts: int = 64
    characters: int = 100_000


class HostedEmbedder:
    """A vendor's embedding model; keys are found where the vendor's own library looks for them.

    `model` is `vendor:name` (`openai:text-embedding-3-small`) or an embedding model of pydantic-ai. The
    vectors that come back must have `dimensions` components; `shorten` asks the vendor for that many, which
    not every model can do. Texts go out whole: one that is too long is the vendor's to refuse. A blank text
    is sent as a full stop, because vendors refuse empty ones.

    Raises `MissingExtra` where the vendor's library is not installed, `ProviderError` for what asking again
    cannot help, `ProviderUnavailable` when the attempts are used up.
    """

    def __init__(
        self,
        model: Any,
        dimensions: int,
        *,
        shorten: bool = False,
        patience: Patience | None = None,
        limit: BatchLimit | None = None,
    ) -> None:
        self._errors = _library("exceptions")
        self._model = self._find(model) if isinstance(model, str) else model
        self._provider = model.partition(":")[0] if isinstance(model, str) else str(model.system)
        self._space = EmbeddingSpace(f"{self._provider}:{self._model.model_name}", dimensions)
        self._settings = {"dimensions": dimensions} if shorten else {}
        self._patience = patience or Patience()
        self._limit = limit or BatchLimit()

    @property
    def space(self) -> EmbeddingSpace:
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions)."""
        batches = [await self._embed(batch, "document") for batch in _batches(texts, self._limit)]
        empty = np.empty((0, self._space.dimensions), dtype=np.float32)
        return np.concatenate([empty, *batches])

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector of shape (dimensions,)."""
        rows = await self._embed([text], "query")
        return np.asarray(rows[0], dtype=np.float32)

    async def close(self) -> None:
        """The vendor's library owns its connections."""

    def _find(self, name: str) -> Any:
        vendor, separator, model = name.partition(":")
        if not (separator and vendor and model):
            raise InvalidInput("embedder", f"{name!r} is not of the form vendor:model")
        embeddings = _library("embeddings")
        try:
            return embeddings.infer_embedding_model(name)
        except ImportError as error:
            raise MissingExtra(vendor, f"pydantic-ai-slim[{vendor}]") from error
        except (ValueError, self._errors.UserError) as error:
            raise ProviderError(vendor, str(error)) from error

    async def _embed(self, texts: Sequence[str], kind: _Kind) -> Vectors:
        attempt = 0
        while True:
            try:
                return self._checked(await self._ask(texts, kind), len(texts))
            except ProviderUnavailable as error:
                wait = self._patience.wait(attempt, error.retry_after)
                attempt += 1
                if attempt >= self._patience.attempts or wait > self._patience.longest_wait:
                    raise
            await asyncio.sleep(wait)

    async def _ask(self, texts: Sequence[str], kind: _Kind) -> Any:
        """One request; the library's errors leave as ours."""
        inputs = [text.encode("utf-8", "replace").decode() if text.strip() else _BLANK for text in texts]
        errors = self._errors
        try:
            async with asyncio.timeout(self._patience.timeout):
                return await self._model.embed(inputs, input_type=kind, settings=self._settings)
        except TimeoutError as error:
            reason = f"no answer within {self._patience.timeout:g} s"
            raise ProviderUnavailable(self._provider, reason) from error
        except errors.ModelHTTPError as error:
            raise self._translated(error) from error
        except errors.ModelConnectionError as error:
            raise ProviderUnavailable(self._provider, str(error)) from error
        except (errors.AgentRunError, errors.UserError, ValueError) as error:
            raise ProviderError(self._provider, str(error)) from error

    def _translated(self, error: Any) -> ProviderError:
        if error.status_code in _BUSY:
            return ProviderUnavailable(self._provider, str(error), retry_after=error.retry_after)
        return ProviderError(self._provider, str(error))

    def _checked(self, result: Any, count: int) -> Vectors:
        """Unit rows, or an error that says what the vendor sent instead."""
        widths = {len(row) for row in result.embeddings}
        if len(result.embeddings) != count or widths != {self._space.dimensions}:
            got = f"{len(result.embeddings)} vectors of {sorted(widths)} dimensions"
            raise ProviderError(self._provider, f"sent {got}, not {count} of {self._space.dimensions}")
        rows = np.asarray(result.embeddings, dtype=np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (np.isfinite(norms) & (norms > 0)).all():
            raise ProviderError(self._provider, "sent a vector that has no direction")
        units: Vectors = (rows / norms).astype(np.float32)
        return units


def _batches(texts: Sequence[str], limit: BatchLimit) -> Iterator[Sequence[str]]:
    start = size = 0
    for position, text in enumerate(texts):
        if position > start and (position - start == limit.texts or size + len(text) > limit.characters):
            yield texts[start:position]
            start, size = position, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def _library(module: str) -> Any:
    try:
        return importlib.import_module(f"pydantic_ai.{module}")
    except ImportError as error:
        raise MissingExtra("hosted", "pydantic-ai-slim") from error
