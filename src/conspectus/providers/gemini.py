"""Google's embeddings for programs that ask by themselves: documents and questions, each in its own way."""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Literal, Self

import numpy as np

from conspectus.errors import InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.model.retry_policy import BUSY, RetryPolicy
from conspectus.ports import Vectors
from conspectus.providers.hosted_embedder import HostedEmbedder
from conspectus.settings import vendor_variable
from conspectus.text.splitter import SplitOptions, split
from conspectus.text.vectors import unit

MODEL: Final = "gemini-embedding-001"
BATCH: Final = 100
PIECE: Final = 2_000
"""Characters of a text that are embedded at once: the model reads 2,048 tokens and forgets the rest."""
PATIENCE: Final = RetryPolicy(busy=BUSY | {500, 502, 504})
KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")

Task = Literal["document", "query"]


class GeminiEmbeddings:
    """Vectors of length 1 from the Gemini API, for documents and for questions.

    A text too long for the model is embedded in pieces, and its vector is their mean by length: nothing is
    cut off. A busy service is asked again with `patience`. Without `api_key` it is that of the environment
    (GOOGLE_API_KEY). Connections last as long as the event loop, or until `close`.

    Raises MissingExtra without the library, ProviderError for a refusal, and ProviderUnavailable for what may
    be answered later; no message has the key.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = MODEL,
        dimensions: int = 768,
        *,
        base_url: str | None = None,
        patience: RetryPolicy = PATIENCE,
        timeout: float = 60.0,
    ) -> None:
        found = api_key or next(filter(None, map(vendor_variable, KEYS)), None)
        if found is None:
            raise ProviderError("google", "no key is set; give api_key, or put it into GOOGLE_API_KEY")
        if dimensions < 1:
            raise InvalidInput("dimensions", "must be 1 or more")
        self._key = found
        self._model = model.removeprefix("models/")
        self._dimensions = dimensions
        self._base_url = base_url or vendor_variable("GOOGLE_GEMINI_BASE_URL")
        self._patience = patience
        self._timeout = timeout
        self._open = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inner: HostedEmbedder | None = None

    async def __aenter__(self) -> Self:
        """The same object."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""
        return EmbeddingSpace(f"google:{self._model}", self._dimensions)

    async def embed_document(self, text: str) -> list[float]:
        """The vector of one text that is to be found."""
        return (await self._lists([text], "document"))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts that are to be found, at most 100 in a request."""
        return await self._lists(texts, "document")

    async def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return (await self._lists([text], "query"))[0]

    async def close(self) -> None:
        """Release the connections; it can be used again."""
        self._inner = None
        if self._loop is asyncio.get_running_loop():
            await self._open.aclose()

    async def _lists(self, texts: Sequence[str], task: Task) -> list[list[float]]:
        pieces = [_pieces(text) for text in texts]
        rows = await self._rows([piece for each in pieces for piece in each], task)
        vectors: list[list[float]] = []
        for each in pieces:
            own, rows = rows[: len(each)], rows[len(each) :]
            weights = np.array([max(1, len(piece)) for piece in each], dtype=np.float64)
            vectors.append([float(number) for number in unit((weights @ own).tolist())])
        return vectors

    async def _rows(self, texts: Sequence[str], task: Task) -> Vectors:
        rows: list[Vectors] = [np.empty((0, self._dimensions), dtype=np.float32)]
        for start in range(0, len(texts), BATCH):
            rows.append(await self._batch(texts[start : start + BATCH], task))
        return np.concatenate(rows)

    async def _batch(self, texts: Sequence[str], task: Task) -> Vectors:
        try:
            inner = await self._connected()
            return await self._patience.retry(lambda: inner.embed_batch(texts, task))
        except ProviderError as fault:
            if self._key in str(fault):
                raise _without(self._key, fault) from None
            raise

    async def _connected(self) -> HostedEmbedder:
        """The embedder on this event loop; connections of an earlier one went with it."""
        loop = asyncio.get_running_loop()
        if self._inner is None or self._loop is not loop:
            vendor = _library("pydantic_ai.providers.google")
            models = _library("pydantic_ai.embeddings.google")
            provider = vendor.GoogleProvider(api_key=self._key, base_url=self._base_url)
            self._open, self._loop = AsyncExitStack(), loop
            await self._open.enter_async_context(provider)
            model = models.GoogleEmbeddingModel(self._model, provider=provider)
            self._inner = HostedEmbedder(model, self._dimensions, timeout=self._timeout)
        return self._inner


def _pieces(text: str) -> list[str]:
    if len(text) <= PIECE or not text.strip():
        return [text[:PIECE]]
    return [each.text for each in split(text, SplitOptions(size=PIECE, overlap=0))]


def _without(key: str, fault: ProviderError) -> ProviderError:
    reason = fault.reason.replace(key, "…")
    if isinstance(fault, ProviderUnavailable):
        again = fault.retry_after
        return ProviderUnavailable(fault.provider, reason, status=fault.status, retry_after=again)
    return ProviderError(fault.provider, reason, status=fault.status)


def _library(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra("google", "pydantic-ai-slim[google]") from error
