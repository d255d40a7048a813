"""The default embedder: all-MiniLM-L6-v2 as int8 ONNX, packaged with Conspectus, on the CPU."""

import asyncio
import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from importlib import resources
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

WINDOW = 256
"""Tokens per window, two special tokens included. 512 improves recall little, at three quarters the speed."""
BATCH_TOKENS = 512
"""Maximum tokens of a batch. From 64 tokens on, single texts are as fast; over 1,000, batches are slower."""
_MARKERS = 2
_BEGINNING = 1_000
"""Number of characters of a query that determine its script."""
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]")
_TEXTS_A_SLICE = 256

_Ids = NDArray[np.int32]


class _Session(Protocol):
    def run(self, outputs: None, inputs: dict[str, NDArray[np.int64]]) -> Sequence[Vectors]: ...


@dataclass(frozen=True, slots=True)
class _Window:
    text: int
    ids: _Ids


class OnnxEmbedder:
    """Embeds texts with the packaged model: no network, no GPU, no torch.

    The vector of a text is reproducible to the last bit, whatever it is embedded with and on however many
    threads: only windows of one length share a batch, every batch runs on one thread, and the model's
    activation scales are fixed or per token. (Another CPU may round the last bits differently.)

    A text longer than `WINDOW` tokens is split into windows of equal length; its vector is their mean
    weighted by length, normalized. Nothing is dropped. The vector of an empty or blank text is that of the
    model's two special tokens. Lone surrogates count as question marks.
    """

    def __init__(self, *, threads: int | None = None, cached_queries: int = 0) -> None:
        """`threads` is the number of concurrent batches; by default the CPU cores that this process may use.

        The vectors of the last `cached_queries` queries are cached under a digest of their texts.
        """
        folder = resources.files("conspectus.providers") / "minilm"
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        self._space = EmbeddingSpace(manifest["model"], manifest["dimensions"], manifest["version"])
        self._tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
        self._session = _open_session((folder / "model.onnx").read_bytes())
        self._threads = threads or _available_cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embedder")
        self._maximum = cached_queries
        self._recent: OrderedDict[bytes, Vectors] = OrderedDict()

    @property
    def space(self) -> EmbeddingSpace:
        return self._space

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows of shape (len(texts), 384). A cancelled call stops after its current batches."""
        loop = asyncio.get_running_loop()
        windows: list[_Window] = []
        for start in range(0, len(texts), _TEXTS_A_SLICE):
            part = texts[start : start + _TEXTS_A_SLICE]
            windows += await loop.run_in_executor(self._pool, self._windows, part, start)
        batches = list(_batches(windows))
        vectors: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(batches)
        waiting = iter(range(len(batches)))

        async def work() -> None:
            for batch in waiting:
                vectors[batch] = await loop.run_in_executor(self._pool, self._run, batches[batch])

        await asyncio.gather(*(work() for _ in range(self._threads)))
        return self._collect(batches, vectors, len(texts))

    async def embed_query(self, text: str) -> Vectors:
        """Return a read-only unit vector of shape (384,), without waiting for documents in progress."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        vector = self._recent.get(key)
        if vector is None:
            vector = self._recent[key] = await asyncio.to_thread(self._embed_one, text)
            vector.setflags(write=False)
        self._recent.move_to_end(key)
        if len(self._recent) > self._maximum:
            self._recent.popitem(last=False)
        return vector

    def knows(self, text: str) -> bool:
        """Return whether half of the first letters are Latin: the model was trained on English."""
        if text.isascii():
            return True
        letters = _LETTER.findall(text[:_BEGINNING])
        return 2 * len(_LATIN.findall("".join(letters))) >= len(letters)

    async def close(self) -> None:
        """Wait for the running batches, and start no others."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    def _embed_one(self, text: str) -> Vectors:
        batches = list(_batches(self._windows([text], 0)))
        vector: Vectors = self._collect(batches, [self._run(batch) for batch in batches], 1)[0]
        return vector

    def _windows(self, texts: Sequence[str], first: int) -> list[_Window]:
        start, *_, end = self._tokenizer.encode("").ids
        encodings = self._tokenizer.encode_batch_fast(
            [text.encode("utf-8", "replace").decode() for text in texts], add_special_tokens=False
        )
        windows: list[_Window] = []
        for text, encoding in enumerate(encodings, first):
            count = max(1, -(-len(encoding.ids) // (WINDOW - _MARKERS)))
            parts = np.array_split(np.array(encoding.ids, dtype=np.int32), count)
            windows += [_Window(text, np.pad(part, 1, constant_values=(start, end))) for part in parts]
        return windows

    def _run(self, batch: list[_Window]) -> Vectors:
        ids = np.stack([window.ids for window in batch]).astype(np.int64)
        return self._session.run(None, {"ids": ids})[0]

    def _collect(self, batches: list[list[_Window]], vectors: list[Vectors], count: int) -> Vectors:
        """Return the unit row of each text: the mean of its windows, weighted by length, summed in order."""
        sums = np.zeros((count, self._space.dimensions), dtype=np.float64)
        for batch, rows in zip(batches, vectors, strict=True):
            lengths = np.array([[max(1, len(window.ids) - _MARKERS)] for window in batch])
            np.add.at(sums, [window.text for window in batch], rows * lengths)
        units: Vectors = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)
        return units


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    """Group windows of one length, longest first, up to `BATCH_TOKENS` per batch."""
    ordered = sorted(windows, key=lambda window: -len(window.ids))
    for length, group in groupby(ordered, key=lambda window: len(window.ids)):
        alike = list(group)
        size = max(1, BATCH_TOKENS // length)
        for start in range(0, len(alike), size):
            yield alike[start : start + size]


def _open_session(model: bytes) -> _Session:
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Higher levels fuse operators into slower ones for this model (SkipLayerNormalization).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session: _Session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session


def _available_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
