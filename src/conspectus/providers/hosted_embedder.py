"""Embedding models of all vendors that pydantic-ai-slim supports, named `vendor:model`, and Gemini."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, Literal, Self

import numpy as np

from conspectus.errors import (
    ConspectusError,
    InvalidInput,
    MissingExtra,
    ProviderError,
    ProviderUnavailable,
    optional,
)
from conspectus.model.records import EmbeddingSpace
from conspectus.model.retries import BUSY, RetryPolicy
from conspectus.ports import Vectors
from conspectus.providers.answers import (
    attempt,
    entries_by_index,
    invalid_answer,
    limit_answers,
    parse_json,
    read_body,
    unit_rows,
    vectors_size,
)
from conspectus.providers.request_log import Calls, Note, drop
from conspectus.providers.vendor_api import number_in, parse_retry_after, refusal, sendable
from conspectus.settings import vendor_variable
from conspectus.text.splitter import SplitOptions, split
from conspectus.text.vectors import unit

SHORTENING: Final = (
    "text-embedding-3",
    "gemini-embedding",
    "embed-v4",
    "voyage-3",
    "voyage-4",
    "titan-embed-text-v2",
)
"""Models whose vector size can be chosen in the request."""
MAX_TEXTS: Final = {"bedrock": 96, "cohere": 96, "google": 100, "google-cloud": 100, "voyageai": 128}
"""Maximum number of texts in one request, by vendor."""
DEFAULT_MAX_TEXTS: Final = 2048
CONNECTION_ERRORS: Final = frozenset({"APIConnectionError", "TransportError"})
"""Errors of a connection in the libraries of vendors, by the names of their classes."""
_hosted = partial(optional, extra="hosted", package="pydantic-ai-slim")
_google = partial(optional, extra="google", package="pydantic-ai-slim[google]")


class HostedEmbedder:
    """A vendor's embedding model, with one request per batch. Keys are found by the vendor's library.

    `model` is `vendor:name` (`openai:text-embedding-3-small`) or an embedding model of pydantic-ai. Vectors
    must have `dimensions` components; that size is requested if the model supports it. Texts are not
    truncated: the vendor may reject a long one. A blank text is sent as a full stop, because vendors reject
    empty ones.

    Raises `MissingExtra` if the vendor's library is not installed, `ProviderError` for permanent failures,
    and `ProviderUnavailable` for failures that a retry may solve.
    """

    def __init__(self, model: Any, dimensions: int, *, timeout: float = 60.0, note: Note = drop) -> None:
        self._errors = _hosted("pydantic_ai.exceptions")
        self._connection: Any = None
        self._open = AsyncExitStack()
        self._model = self._find(model, dimensions) if isinstance(model, str) else model
        self._provider = model.partition(":")[0] if isinstance(model, str) else str(model.system)
        name = str(self._model.model_name)
        self.space = EmbeddingSpace(f"{self._provider}:{name}", dimensions)
        self._settings = {"dimensions": dimensions} if any(family in name for family in SHORTENING) else {}
        self._timeout = timeout
        self._calls = Calls(note, self.space.model)
        client = getattr(self._model, "_client", None)
        self._speaks_openai = hasattr(client, "embeddings") and hasattr(client, "chat")

    @property
    def max_texts(self) -> int:
        """Maximum number of texts in one request."""
        return MAX_TEXTS.get(self._provider, DEFAULT_MAX_TEXTS)

    async def embed_batch(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Return unit rows of shape (len(texts), dimensions), from one request."""
        shape = (len(texts), self.space.dimensions)
        with self._calls.one("embed", texts) as call:
            rows, call.tokens = await self._ask([sendable(text) for text in texts], kind)
            return unit_rows(self._provider, rows, shape)

    async def close(self) -> None:
        """Close the connections, unless the model was passed in."""
        await self._open.aclose()

    def _find(self, name: str, dimensions: int) -> Any:
        vendor, separator, model = name.partition(":")
        if not (separator and vendor and model):
            raise InvalidInput("embedder", f"{name!r} is not of the form vendor:model")
        embeddings = _hosted("pydantic_ai.embeddings")
        try:
            provider = _hosted("pydantic_ai.providers").infer_provider(vendor)
            client: Any = getattr(provider, "client", None)
            # The library would retry silently.
            if hasattr(client, "max_retries"):
                client.max_retries = 0
            limit_answers(provider, vectors_size(MAX_TEXTS.get(vendor, DEFAULT_MAX_TEXTS), dimensions))
            self._connection = provider
            return embeddings.infer_embedding_model(name, provider_factory=lambda _: self._connection)
        except ImportError as error:
            raise MissingExtra(vendor, f"pydantic-ai-slim[{vendor}]") from error
        except (ValueError, self._errors.UserError) as error:
            raise ProviderError(vendor, str(error), verdict="service") from error

    async def _ask(self, inputs: Sequence[str], kind: str) -> tuple[object, int | None]:
        """Send one request; return the rows in the order of the texts, and the tokens that were counted.

        Whatever the vendor's library raises is converted to our errors.
        """
        try:
            async with asyncio.timeout(self._timeout):
                connection, self._connection = self._connection, None
                if connection is not None:
                    await self._open.enter_async_context(connection)
                received = await attempt(self._request_vectors(inputs, kind))
        except TimeoutError as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(self._provider, reason) from error
        if isinstance(received, Exception):
            raise self._as_ours(received) from received
        return received

    def _as_ours(self, error: Exception) -> Exception:
        """Return our error for one of the vendor's library."""
        provider, status = self._provider, _status_of(error)
        if isinstance(error, ConspectusError):
            return error
        if status is not None:
            wait = getattr(error, "retry_after", None)
            if wait is None and (response := getattr(error, "response", None)) is not None:
                wait = parse_retry_after(response.headers.get("retry-after"))
            return refusal(provider, status, _vendor_message(error), retry_after=wait)
        if isinstance(error, self._errors.UserError):
            return ProviderError(provider, str(error), verdict="service")
        if isinstance(error, OSError | self._errors.ModelConnectionError) or _is_connection_error(error):
            return ProviderUnavailable(provider, str(error) or type(error).__name__)
        return invalid_answer(provider, f"sent an answer that cannot be read ({type(error).__name__})")

    async def _request_vectors(self, inputs: Sequence[str], kind: str) -> tuple[object, int | None]:
        if self._speaks_openai:
            return await self._from_openai(self._model._client, inputs)
        answer = await self._model.embed(inputs, input_type=kind, settings=self._settings)
        return answer.embeddings, answer.usage.input_tokens or None

    async def _from_openai(self, client: Any, inputs: Sequence[str]) -> tuple[object, int | None]:
        """Ask a service with OpenAI's protocol, whose vectors may come in any order.

        The library would take them by their position.
        """
        provider, name = self._provider, self._model.model_name
        size = vectors_size(len(inputs), self.space.dimensions)
        request = client.embeddings.with_streaming_response.create(input=inputs, model=name, **self._settings)
        async with request as response:
            content = parse_json(provider, await read_body(provider, response.iter_bytes(), size))
        members = content if isinstance(content, dict) else {}
        entries = entries_by_index(provider, members.get("data"), len(inputs))
        return [entry.get("embedding") for entry in entries], number_in(content, "usage", "prompt_tokens")


def _status_of(error: Exception) -> int | None:
    """Return the HTTP status that an error of a vendor's library names."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


def _vendor_message(error: Exception) -> str:
    """Return the vendor's message in an error of its library, if it has one."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    words = inner.get("message") if isinstance(inner, dict) else inner
    return words if isinstance(words, str) else ""


def _is_connection_error(error: Exception) -> bool:
    return any(kind.__name__ in CONNECTION_ERRORS for kind in type(error).__mro__)


MODEL: Final = "gemini-embedding-001"
BATCH: Final = 100
PIECE: Final = 2_000
"""Maximum characters that are embedded at once: the model ignores everything after 2,048 tokens."""
RETRY_POLICY: Final = RetryPolicy(busy=BUSY | {500, 502, 504})
KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")

Task = Literal["document", "query"]


class GeminiEmbeddings:
    """Unit vectors from the Gemini API, for documents and for queries.

    A text that is too long for the model is embedded in pieces, and its vector is their mean weighted by
    length; nothing is cut off. Calls to a busy service are retried as `retry_policy` says. `api_key`
    defaults to the environment variable GOOGLE_API_KEY. Connections last as long as the event loop, or
    until `close`.

    Raises MissingExtra without the library, ProviderError for permanent failures, and ProviderUnavailable if
    a retry may succeed. No message contains the key.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = MODEL,
        dimensions: int = 768,
        *,
        base_url: str | None = None,
        retry_policy: RetryPolicy = RETRY_POLICY,
        timeout: float = 60.0,
    ) -> None:
        key = api_key or next(filter(None, map(vendor_variable, KEYS)), None)
        if key is None:
            raise ProviderError("google", "no key is set; give api_key, or put it into GOOGLE_API_KEY")
        if dimensions < 1:
            raise InvalidInput("dimensions", "must be 1 or more")
        self._key = key
        self._model = model.removeprefix("models/")
        self._dimensions = dimensions
        self._base_url = base_url or vendor_variable("GOOGLE_GEMINI_BASE_URL")
        self._retry_policy = retry_policy
        self._timeout = timeout
        self._open = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inner: HostedEmbedder | None = None

    async def __aenter__(self) -> Self:
        """Return the same object."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding model of all its vectors."""
        return EmbeddingSpace(f"google:{self._model}", self._dimensions)

    async def embed_document(self, text: str) -> list[float]:
        """Return the vector of one document text."""
        return (await self._lists([text], "document"))[0]

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of document texts, with at most 100 in a request."""
        return await self._lists(texts, "document")

    async def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return (await self._lists([text], "query"))[0]

    async def close(self) -> None:
        """Close the connections. The object can be used again."""
        self._inner = None
        if self._loop is asyncio.get_running_loop():
            await self._open.aclose()

    async def _lists(self, texts: Sequence[str], task: Task) -> list[list[float]]:
        pieces = [_split_text(text) for text in texts]
        rows = await self._embed_pieces([piece for text_pieces in pieces for piece in text_pieces], task)
        vectors: list[list[float]] = []
        for text_pieces in pieces:
            text_rows, rows = rows[: len(text_pieces)], rows[len(text_pieces) :]
            weights = np.array([max(1, len(piece)) for piece in text_pieces], dtype=np.float64)
            vectors.append([float(number) for number in unit((weights @ text_rows).tolist())])
        return vectors

    async def _embed_pieces(self, texts: Sequence[str], task: Task) -> Vectors:
        rows: list[Vectors] = [np.empty((0, self._dimensions), dtype=np.float32)]
        for start in range(0, len(texts), BATCH):
            rows.append(await self._batch(texts[start : start + BATCH], task))
        return np.concatenate(rows)

    async def _batch(self, texts: Sequence[str], task: Task) -> Vectors:
        try:
            inner = await self._connect()
            return await self._retry_policy.retry(lambda: inner.embed_batch(texts, task))
        except ProviderError as fault:
            if self._key in str(fault):
                raise _remove_secret(self._key, fault) from None
            raise

    async def _connect(self) -> HostedEmbedder:
        """Return the embedder of this event loop. Connections of an earlier loop are gone."""
        loop = asyncio.get_running_loop()
        if self._inner is None or self._loop is not loop:
            vendor = _google("pydantic_ai.providers.google")
            models = _google("pydantic_ai.embeddings.google")
            provider = vendor.GoogleProvider(api_key=self._key, base_url=self._base_url)
            self._open, self._loop = AsyncExitStack(), loop
            await self._open.enter_async_context(provider)
            model = models.GoogleEmbeddingModel(self._model, provider=provider)
            self._inner = HostedEmbedder(model, self._dimensions, timeout=self._timeout)
        return self._inner


def _split_text(text: str) -> list[str]:
    if len(text) <= PIECE or not text.strip():
        return [text[:PIECE]]
    return [piece.text for piece in split(text, SplitOptions(size=PIECE, overlap=0))]


def _remove_secret(key: str, fault: ProviderError) -> ProviderError:
    reason = fault.reason.replace(key, "…")
    if isinstance(fault, ProviderUnavailable):
        again = fault.retry_after
        return ProviderUnavailable(
            fault.provider, reason, status=fault.status, retry_after=again, verdict=fault.verdict
        )
    return ProviderError(fault.provider, reason, status=fault.status, verdict=fault.verdict)
