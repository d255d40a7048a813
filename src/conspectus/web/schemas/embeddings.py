"""Embeddings in the form that clients of OpenAI speak."""

import base64
from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from conspectus.errors import InvalidInput
from conspectus.ports import Embedder
from conspectus.web.schemas.base import Count, ResponseModel

MAX_INPUTS: Final = 2_048
"""The limit of OpenAI, whose clients send as many; the size of a request bounds them together."""
MAX_INPUT_LENGTH: Final = 50_000

Input = Annotated[str, Field(min_length=1, max_length=MAX_INPUT_LENGTH)]
Vector = list[float] | str


class EmbeddingsBody(BaseModel):
    """Texts to embed. `model` may be anything: the server has one."""

    model_config = ConfigDict(strict=True)

    input: Input | Annotated[list[Input], Field(min_length=1, max_length=MAX_INPUTS)]
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)

    async def vectors(self, embedder: Embedder | None) -> list[Vector]:
        """The vectors as they are sent. Raises InvalidInput."""
        if embedder is None:
            raise InvalidInput(
                "model", "is not available: no embedding model is set; set CONSPECTUS_EMBEDDER"
            )
        size = embedder.space.dimensions
        if self.dimensions not in {None, size}:
            raise InvalidInput("dimensions", f"cannot be chosen; the model makes {size}")
        found = await embedder.embed_documents(self.texts)
        if self.encoding_format == "float":
            return [list(map(float, each)) for each in found]
        return [base64.b64encode(np.asarray(each, "<f4").tobytes()).decode() for each in found]

    @property
    def texts(self) -> Sequence[str]:
        """The texts."""
        return [self.input] if isinstance(self.input, str) else self.input


class EmbeddingAnswer(ResponseModel):
    """A vector of unit length: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: Count
    embedding: Vector


class EmbeddingUsageAnswer(ResponseModel):
    """Tokens of all texts."""

    prompt_tokens: Count
    total_tokens: Count


class EmbeddingsAnswer(ResponseModel):
    """The vectors in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingAnswer]
    model: str
    usage: EmbeddingUsageAnswer
