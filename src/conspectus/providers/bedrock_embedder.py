"""Cohere's embed-v4 on Amazon Bedrock."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from conspectus.errors import InvalidInput, ProviderError
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors
from conspectus.providers.bedrock import PROVIDER, Bedrock
from conspectus.providers.request_logging import Calls, Note, drop
from conspectus.providers.vendor_api import sendable, unit_rows

DIMENSIONS: Final = (256, 512, 1024, 1536)
DEFAULT_DIMENSIONS: Final = 1024
TEXTS_A_REQUEST: Final = 96
_INPUT_TYPES: Final = {"document": "search_document", "query": "search_query"}


class BedrockEmbedder:
    """Embeds batches of up to 96 texts with a model such as `us.cohere.embed-v4:0`, asking once for each.

    What is longer than the model reads is cut at its end by the vendor. Raises `InvalidInput` for a size of
    vector that the model does not have.
    """

    def __init__(
        self,
        model: str,
        dimensions: int = DEFAULT_DIMENSIONS,
        *,
        endpoint_url: str | None = None,
        timeout: float = 60.0,
        note: Note = drop,
    ) -> None:
        if dimensions not in DIMENSIONS:
            raise InvalidInput("embedder", f"{model} makes vectors of {DIMENSIONS} dimensions")
        self._space = EmbeddingSpace(f"{PROVIDER}:{model}", dimensions)
        self._bedrock = Bedrock(model, endpoint_url=endpoint_url, timeout=timeout)
        self._calls = Calls(note, self._space.model)

    @property
    def space(self) -> EmbeddingSpace:
        """The space of all its vectors."""
        return self._space

    @property
    def most(self) -> int:
        """How many texts one request may carry."""
        return TEXTS_A_REQUEST

    async def embed_batch(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions), from one request."""
        body = {
            "texts": [sendable(text) for text in texts],
            "input_type": _INPUT_TYPES[kind],
            "embedding_types": ["float"],
            "output_dimension": self._space.dimensions,
            "truncate": "RIGHT",
        }
        with self._calls.one("embed", texts) as call:
            answer = await self._bedrock.invoke(body)
            call.tokens = answer.tokens
            return unit_rows(PROVIDER, _rows(answer.body), (len(texts), self._space.dimensions))

    async def close(self) -> None:
        """Release the connections."""
        await self._bedrock.close()


def _rows(answer: Any) -> list[list[float]]:
    """The vectors, which stand under the name of their type or, as older models answer, alone."""
    found = answer.get("embeddings") if isinstance(answer, dict) else None
    rows = found.get("float") if isinstance(found, dict) else found
    if not isinstance(rows, list) or not all(_is_vector(row) for row in rows):
        raise ProviderError(PROVIDER, "sent no vectors")
    return rows


def _is_vector(row: Any) -> bool:
    return isinstance(row, list) and all(isinstance(each, int | float) for each in row)
