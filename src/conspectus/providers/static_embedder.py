"""Embeds with a model2vec model on disk: the mean of static token vectors; faster and less accurate."""

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
    """A model2vec model in a folder of the user; nothing is ever downloaded.

    The version of the embedding model is a prefix of the weights' SHA-256, so another model in the same
    folder is another embedding model. Texts are never truncated. A text without known tokens (also an empty
    one) has the vector with all components equal. Lone surrogates count as question marks.

    Raises `MissingExtra` without model2vec, and `InvalidInput` if there is no model.
    """

    def __init__(self, folder: Path) -> None:
        self._model = _load(folder)
        version = hashlib.sha256((folder / _WEIGHTS).read_bytes()).hexdigest()[:12]
        self.space = EmbeddingSpace(f"static:{folder.resolve()}", int(self._model.dim), version)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows of shape (len(texts), dimensions)."""
        return await asyncio.to_thread(self._embed, texts)

    async def embed_query(self, text: str) -> Vectors:
        """Return a unit vector of shape (dimensions,)."""
        rows = await asyncio.to_thread(self._embed, [text])
        return np.asarray(rows[0], dtype=np.float32)

    async def close(self) -> None:
        """Do nothing: there are no open resources."""

    def _embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.space.dimensions), dtype=np.float32)
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
        # The limit is removed here, not per call: a call would set it in the tokenizer that all threads
        # share.
        return library.StaticModel.from_pretrained(folder, max_length=None)
    except (OSError, ValueError, KeyError, damaged) as error:
        raise InvalidInput("embedder", f"{folder} holds no model2vec model: {error}") from error
