"""Embeds with any vendor that pydantic-ai-slim can reach, named `vendor:model`."""

import asyncio
import importlib
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Final, Literal

from conspectus.errors import InvalidInput, MissingExtra, ProviderError, ProviderUnavailable
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.providers.request_logging import Calls, Note, drop
from conspectus.providers.vendor_api import refusal, sendable, unit_rows

SHORTENING: Final = (
    "text-embedding-3",
    "gemini-embedding",
    "embed-v4",
    "voyage-3",
    "voyage-4",
    "titan-embed-text-v2",
)
"""Names of models whose vectors the vendor makes as long as it is asked to."""
MOST: Final = {"bedrock": 96, "cohere": 96, "google": 100, "google-cloud": 100, "voyageai": 128}
"""How many texts these vendors take in one request."""
MOST_ELSEWHERE: Final = 2048


class HostedEmbedder:
    """A vendor's embedding model, asked once for each batch; keys are found where its own library looks.

    `model` is `vendor:name` (`openai:text-embedding-3-small`) or an embedding model of pydantic-ai. The
    vectors that come back must have `dimensions` components; the vendor is asked for that many where the
    model is known to be able to. Texts go out whole: one that is too long is the vendor's to refuse. A blank
    text is sent as a full stop, because vendors refuse empty ones.

    Raises `MissingExtra` where the vendor's library is not installed, `ProviderError` for what asking again
    cannot help, `ProviderUnavailable` for what it may.
    """

    def __init__(self, model: Any, dimensions: int, *, timeout: float = 60.0, note: Note = drop) -> None:
        self._errors = _library("exceptions")
        self._connection: Any = None
        self._open = AsyncExitStack()
        self._model = self._find(model) if isinstance(model, str) else model
        self._provider = model.partition(":")[0] if isinstance(model, str) else str(model.system)
        name = str(self._model.model_name)
        self._space = EmbeddingSpace(f"{self._provider}:{name}", dimensions)
        self._settings = {"dimensions": dimensions} if any(each in name for each in SHORTENING) else {}
        self._timeout = timeout
        self._calls = Calls(note, self._space.model)

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""
        return self._space

    @property
    def most(self) -> int:
        """How many texts one request may carry."""
        return MOST.get(self._provider, MOST_ELSEWHERE)

    async def embed_batch(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions), from one request."""
        with self._calls.one("embed", texts) as call:
            result = await self._ask([sendable(text) for text in texts], kind)
            call.tokens = result.usage.input_tokens or None
            return unit_rows(self._provider, result.embeddings, (len(texts), self._space.dimensions))

    async def close(self) -> None:
        """Release the connections, unless the model was handed in."""
        await self._open.aclose()

    def _find(self, name: str) -> Any:
        vendor, separator, model = name.partition(":")
        if not (separator and vendor and model):
            raise InvalidInput("embedder", f"{name!r} is not of the form vendor:model")
        embeddings = _library("embeddings")
        try:
            self._connection = _asking_once(vendor)
            return embeddings.infer_embedding_model(name, provider_factory=lambda _: self._connection)
        except ImportError as error:
            raise MissingExtra(vendor, f"pydantic-ai-slim[{vendor}]") from error
        except (ValueError, self._errors.UserError) as error:
            raise ProviderError(vendor, str(error)) from error

    async def _connect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._open.enter_async_context(connection)

    async def _ask(self, inputs: Sequence[str], kind: str) -> Any:
        """One request; the library's errors leave as ours."""
        errors = self._errors
        try:
            async with asyncio.timeout(self._timeout):
                await self._connect()
                return await self._model.embed(inputs, input_type=kind, settings=self._settings)
        except TimeoutError as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(self._provider, reason) from error
        except errors.ModelHTTPError as error:
            words = _words(error.body)
            raise refusal(self._provider, error.status_code, words, retry_after=error.retry_after) from error
        except errors.ModelConnectionError as error:
            raise ProviderUnavailable(self._provider, str(error)) from error
        except (errors.AgentRunError, errors.UserError, ValueError) as error:
            raise ProviderError(self._provider, str(error)) from error


def _asking_once(vendor: str) -> Any:
    """The vendor's connection, without the retries that its library would make unseen."""
    provider = _library("providers").infer_provider(vendor)
    client: Any = getattr(provider, "client", None)
    if hasattr(client, "max_retries"):
        client.max_retries = 0
    return provider


def _words(body: Any) -> str:
    """The vendor's reason in the body of an error, from the field where vendors put it."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    found = inner.get("message") if isinstance(inner, dict) else inner
    return found if isinstance(found, str) else ""


def _library(module: str) -> Any:
    try:
        return importlib.import_module(f"pydantic_ai.{module}")
    except ImportError as error:
        raise MissingExtra("hosted", "pydantic-ai-slim") from error
