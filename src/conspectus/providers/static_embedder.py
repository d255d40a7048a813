"""Embeds with any model2vec model on disk: one vector a token, averaged; much faster and less exact."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conspectus.errors import InvalidInput, optional
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

_WEIGHTS = "model.safetensors"


class StaticEmbedder:
    """A model2vec model in a folder that the user points at; nothing is ever downloaded.

    The space's version is the start of the weights' SHA-256, so another model in the same folder is another
    space. Texts are never cut. A text in which the model knows no token (an empty one, too) has the vector
    with all components equal. Lone surrogates count as question marks.

    Raises `MissingExtra` without model2vec, `InvalidInput` where the folder holds no such model.
    """

    def __init__(self, folder: Path) -> None:
        self._model = _load(folder)
        version = hashlib.sha256((folder / _WEIGHTS).read_bytes()).hexdigest()[:12]
        self._space = EmbeddingSpace(f"static:{folder.resolve()}", int(self._model.dim), version)

    @property
    def space(self) -> EmbeddingSpace:
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows of shape (len(texts), dimensions)."""
        return await asyncio.to_thread(self._embed, texts)

    async def embed_query(self, text: str) -> Vectors:
        """A unit vector of shape (dimensions,)."""
        rows = await asyncio.to_thread(self._embed, [text])
        return np.asarray(rows[0], dtype=np.float32)

    async def close(self) -> None:
        """Do nothing: nothing is held open."""

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self._space.dimensions), dtype=np.float32)
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        rows = self._model.encode(clean, normalize=False, use_multiprocessing=False)
        rows = np.asarray(rows, dtype=np.float64)
        rows[~rows.any(axis=1)] = 1
        units: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return units


def _load(folder: Path) -> Any:
    library = optional("model2vec", "static", "model2vec")
    damaged = optional("safetensors", "static", "model2vec").SafetensorError
    if not (folder / _WEIGHTS).is_file():
        raise InvalidInput("embedder", f"{folder} holds no model2vec model ({_WEIGHTS} is missing)")
    try:
        # The limit is lifted here, not per call: a call would set it in the tokenizer all threads share.
        return library.StaticModel.from_pretrained(folder, max_length=None)
    except (OSError, ValueError, KeyError, damaged) as error:
        raise InvalidInput("embedder", f"{folder} holds no model2vec model: {error}") from error
