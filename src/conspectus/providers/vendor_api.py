"""Calls to model providers: requests, errors of responses, the log, and models on Amazon Bedrock."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, InvalidInput, ProviderError, ProviderUnavailable, optional
from conspectus.model.jobs import EmbeddingRequest, RequestKind
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.ports.jobs import CURRENT_USER, RequestLog
from conspectus.providers.answers import invalid_answer, parse_json, unit_rows, vectors_size

PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of requests that may succeed later."""
KEY_REFUSED: Final = frozenset({401, 403})
_BLANK = "."
_MAX_MESSAGE_LENGTH = 300
_MAX_DIGITS = 15
_MAX_WAIT_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The response of a vendor, and its token count of the request."""

    body: Any
    tokens: int | None


def sendable(text: str) -> str:
    """Return a text that vendors accept: lone surrogates become question marks, an empty text a full stop."""
    return text.encode("utf-8", "replace").decode() if text.strip() else _BLANK


def refusal(
    provider: str, status: int, words: str = "", *, retry_after: float | None = None
) -> ProviderError:
    """Return the error for a status. `words` is the vendor's message, dropped if it might quote the key."""
    if status in KEY_REFUSED:
        return ProviderError(
            provider, f"HTTP {status}: authentication failed, or the key has no permission", status=status
        )
    words = " ".join(words.split())[:_MAX_MESSAGE_LENGTH]
    reason = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    if status in PASSING:
        retry_after = None if retry_after is None else min(retry_after, _MAX_WAIT_SECONDS)
        return ProviderUnavailable(provider, reason, status=status, retry_after=retry_after)
    return ProviderError(provider, reason, status=status)


def waiting_time(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header, a number or a date; None if it is invalid."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def number_in(answer: Any, *path: str) -> int | None:
    """Return the count at a path of names, a number or digits; None if there is none."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if isinstance(answer, str) and answer.isdecimal() and len(answer) <= _MAX_DIGITS:
        return int(answer)
    return int(answer) if isinstance(answer, int | float) and 0 < answer < 10.0**_MAX_DIGITS else None


Note: TypeAlias = Callable[[EmbeddingRequest], None]
"""Receives the log row of one request; returns at once."""

MAX_LOG_ROWS: Final = 10_000


def drop(request: EmbeddingRequest) -> None:
    """Drop a log row."""


@dataclass(slots=True)
class ProviderRequest:
    """One request in progress. `tokens` is set if the vendor counted them."""

    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Logs the requests to one model."""

    note: Note
    model: str

    @contextmanager
    def one(self, kind: RequestKind, texts: Sequence[str], *, query: str = "") -> Iterator[ProviderRequest]:
        """Log the outcome of the request in the block, however it ends."""
        call, created, start = ProviderRequest(), datetime.now(UTC), perf_counter()
        error: str | None = "failed"
        try:
            yield call
            error = None
        except ConspectusError as fault:
            status = fault.status if isinstance(fault, ProviderError) else None
            error = fault.code if status is None else f"HTTP {status}"
            raise
        except (asyncio.CancelledError, GeneratorExit):
            error = "cancelled"
            raise
        finally:
            latency = round((perf_counter() - start) * 1000, 3)
            tokens = call.tokens if call.tokens is not None else estimated_tokens([query, *texts])
            self.note(
                EmbeddingRequest(
                    kind,
                    "error" if error else "success",
                    self.model,
                    latency,
                    len(texts),
                    tokens,
                    created=created,
                    error=error,
                    user_id=CURRENT_USER.get(),
                )
            )


def estimated_tokens(texts: Sequence[str]) -> int:
    """Estimate tokens as four per three words."""
    return round(sum(len(text.split()) for text in texts) * 4 / 3)


class RequestNotes:
    """Buffers log rows, and writes them in the background.

    Rows are written after `every` seconds, when there are `rows` of them, and on close. If the log is not
    open yet or fails, no caller is affected: the newest rows are kept for the next attempt.
    """

    def __init__(self, *, every: float = 1.0, rows: int = 100) -> None:
        self._log: RequestLog | None = None
        self._every = every
        self._maximum = rows
        self._rows: list[EmbeddingRequest] = []
        self._full = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def write_to(self, log: RequestLog) -> None:
        """Set the target of the log."""
        self._log = log

    def __call__(self, request: EmbeddingRequest) -> None:
        """Add a row; from the event loop only. Rows after closing are dropped."""
        if self._closed:
            return
        self._rows.append(request)
        if len(self._rows) >= self._maximum:
            self._full.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write the remaining rows. Rows that the log rejects are lost, which is logged."""
        self._closed = True
        self._full.set()
        if self._task is not None:
            await self._task
        await self._write()
        self._rows.clear()

    async def _run(self) -> None:
        while self._rows and not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), self._every)
            self._full.clear()
            await self._write()

    async def _write(self) -> None:
        if self._log is None or not self._rows:
            return
        rows, self._rows = self._rows, []
        try:
            await self._log.add(rows)
        except ConspectusError as fault:
            logging.getLogger(__name__).warning("%d requests were not logged: %s", len(rows), fault.code)
            self._rows = (rows + self._rows)[-MAX_LOG_ROWS:]


PROVIDER = "bedrock"
_library = partial(optional, extra="bedrock", package="boto3")
READ_BYTES: Final = 1 << 16
TOKENS = "x-amzn-bedrock-input-token-count"


class Bedrock:
    """One model on Bedrock. Region and credentials are found by boto3.

    Raises `MissingExtra` if boto3 is not installed, and `ProviderError` if no region is set.
    """

    provider = PROVIDER

    def __init__(self, model: str, *, timeout: float = 60.0) -> None:
        self._model = model
        self._timeout = timeout
        self._errors = _library("botocore.exceptions")
        self._client = runtime_client(timeout=timeout)

    async def post(self, body: Any, *, limit: int) -> Reply:
        """Send one request in a thread of its own; its answer has at most `limit` bytes.

        Raises ProviderError or ProviderUnavailable.
        """
        errors = self._errors
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.to_thread(self._invoke, json.dumps(body), limit)
        except errors.ClientError as error:
            raise _translated(error.response) from error
        except (TimeoutError, errors.ReadTimeoutError, errors.ConnectTimeoutError) as error:
            reason = f"no answer within {self._timeout:g} s"
            raise ProviderUnavailable(PROVIDER, reason) from error
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            raise ProviderError(PROVIDER, "no credentials are set") from error
        except (errors.HTTPClientError, errors.ConnectionError, errors.IncompleteReadError) as error:
            reason = f"could not be reached ({type(error).__name__})"
            raise ProviderUnavailable(PROVIDER, reason) from error
        except errors.BotoCoreError as error:
            raise ProviderUnavailable(PROVIDER, f"the request failed ({type(error).__name__})") from error

    async def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _invoke(self, body: str, limit: int) -> Reply:
        answer = self._client.invoke_model(
            modelId=self._model, body=body, contentType="application/json", accept="application/json"
        )
        content = parse_json(PROVIDER, _bounded_read(answer["body"], limit))
        return Reply(content, number_in(answer, "ResponseMetadata", "HTTPHeaders", TOKENS))


def _bounded_read(body: Any, limit: int) -> bytes:
    content = bytearray()
    with closing(body):
        for piece in body.iter_chunks(READ_BYTES):
            content += piece
            if len(content) > limit:
                raise invalid_answer(PROVIDER, f"sent more than {limit:,} bytes")
    return bytes(content)


def runtime_client(*, timeout: float) -> Any:
    """Return a client without retries. Raises MissingExtra without boto3, ProviderError without a region."""
    options = {"connect_timeout": timeout, "read_timeout": timeout, "retries": {"total_max_attempts": 1}}
    config = _library("botocore.config").Config(**options)
    try:
        session = _library("boto3").Session()
        return session.client("bedrock-runtime", config=config)
    except _library("botocore.exceptions").BotoCoreError as error:
        raise ProviderError(PROVIDER, str(error)) from error


def _translated(response: Any) -> ProviderError:
    metadata, error = response.get("ResponseMetadata", {}), response.get("Error", {})
    wait = waiting_time(metadata.get("HTTPHeaders", {}).get("retry-after"))
    words = f"{error.get('Code', '')} {error.get('Message', '')}"
    return refusal(PROVIDER, metadata.get("HTTPStatusCode", 0), words, retry_after=wait)


DIMENSIONS: Final = (256, 512, 1024, 1536)
DEFAULT_DIMENSIONS: Final = 1024
TEXTS_A_REQUEST: Final = 96
_INPUT_TYPES: Final = {"document": "search_document", "query": "search_query"}


class BedrockEmbedder:
    """Embeds batches of up to 96 texts with a model such as `us.cohere.embed-v4:0`, in one request each.

    Texts over the model's limit are truncated by the service. Raises `InvalidInput` for a vector size that
    the model does not have.
    """

    def __init__(
        self,
        model: str,
        dimensions: int = DEFAULT_DIMENSIONS,
        *,
        timeout: float = 60.0,
        note: Note = drop,
    ) -> None:
        if dimensions not in DIMENSIONS:
            raise InvalidInput("embedder", f"{model} makes vectors of {DIMENSIONS} dimensions")
        self.space = EmbeddingSpace(f"{PROVIDER}:{model}", dimensions)
        self._bedrock = Bedrock(model, timeout=timeout)
        self._calls = Calls(note, self.space.model)

    @property
    def max_texts(self) -> int:
        """Maximum number of texts in one request."""
        return TEXTS_A_REQUEST

    async def embed_batch(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Return unit rows of shape (len(texts), dimensions), from one request."""
        body = {
            "texts": [sendable(text) for text in texts],
            "input_type": _INPUT_TYPES[kind],
            "embedding_types": ["float"],
            "output_dimension": self.space.dimensions,
            "truncate": "RIGHT",
        }
        with self._calls.one("embed", texts) as call:
            shape = (len(texts), self.space.dimensions)
            answer = await self._bedrock.post(body, limit=vectors_size(*shape))
            call.tokens = answer.tokens
            by_type = answer.body.get("embeddings") if isinstance(answer.body, dict) else None
            rows = by_type.get("float") if isinstance(by_type, dict) else by_type
            return unit_rows(PROVIDER, rows, shape)

    async def close(self) -> None:
        """Close the connections."""
        await self._bedrock.close()
