"""Models on Amazon Bedrock."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final, Literal

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable, optional
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.providers.answers import invalid_answer, parse_json, unit_rows, vectors_size
from conspectus.providers.request_log import Calls, Note, drop
from conspectus.providers.vendor_api import Reply, number_in, parse_retry_after, refusal, sendable

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
            raise _translate(error.response) from error
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
        content = parse_json(PROVIDER, _read_bounded(answer["body"], limit))
        return Reply(content, number_in(answer, "ResponseMetadata", "HTTPHeaders", TOKENS))


def _read_bounded(body: Any, limit: int) -> bytes:
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


def _translate(response: Any) -> ProviderError:
    metadata, error = response.get("ResponseMetadata", {}), response.get("Error", {})
    wait = parse_retry_after(metadata.get("HTTPHeaders", {}).get("retry-after"))
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
