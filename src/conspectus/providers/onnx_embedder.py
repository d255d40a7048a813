"""Embedding models as int8 ONNX, packaged with Conspectus or beside it, on the CPU.

`minilm` (all-MiniLM-L6-v2, English) is part of Conspectus; `multilingual` (multilingual-e5-small, about 100
languages) is the distribution `conspectus-multilingual`.
"""

import asyncio
import gzip
import json
import os
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from importlib import resources, util
from importlib.resources.abc import Traversable
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from conspectus.deferred import dataclass
from conspectus.errors import MissingExtra, optional
from conspectus.model.records import EmbeddingSpace
from conspectus.ports import Vectors

MINILM = "minilm"
MULTILINGUAL = "multilingual"
WINDOW = 256
"""Tokens per window, two special tokens included. 512 improves recall little, at three quarters the speed."""
BATCH_TOKENS = 512
"""Maximum tokens of a batch. From 64 tokens on, single texts are as fast; over 1,000, batches are slower."""
_MARKERS = 2
_PIECES = "tokenizer.model.gz"
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]")
_SPACES = re.compile(r"[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]")
_PASSAGE = "passage"
_QUERY = "query"
_BEGINNING = 1_000
"""Number of characters of a query that determine its script."""
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]")
_TEXTS_A_SLICE = 256

_Ids = NDArray[np.int32]
_Encode = Callable[[list[str]], list[list[int]]]


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

    def __init__(self, model: str = MINILM, *, threads: int | None = None, cached_queries: int = 0) -> None:
        """`model` is `minilm` or `multilingual`; raises MissingExtra where its package is not installed.

        `threads` is the number of concurrent batches; by default the CPU cores that this process may use. The
        vectors of the last `cached_queries` queries are cached under a digest of their texts.
        """
        with resources.as_file(_locate_model(model)) as folder:
            manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            self._encode, self._start, self._end = _tokenizer(folder)
            self._session = _open_session(folder / "model.onnx")
        self.space = EmbeddingSpace(manifest["model"], manifest["dimensions"], manifest["version"])
        self._prefixes: dict[str, str] = manifest.get("prefixes", {})
        self._means = {kind: np.array(mean) for kind, mean in manifest.get("means", {}).items()}
        self._any_script = model == MULTILINGUAL
        self._threads = threads or _count_cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="embedder")
        self._maximum = cached_queries
        self._recent: OrderedDict[bytes, Vectors] = OrderedDict()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows of shape (len(texts), 384). A cancelled call stops after its current batches."""
        loop = asyncio.get_running_loop()
        windows: list[_Window] = []
        for start in range(0, len(texts), _TEXTS_A_SLICE):
            part = texts[start : start + _TEXTS_A_SLICE]
            windows += await loop.run_in_executor(self._pool, self._windows, part, start, _PASSAGE)
        batches = list(_batches(windows))
        vectors: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(batches)
        waiting = iter(range(len(batches)))

        async def work() -> None:
            for batch in waiting:
                vectors[batch] = await loop.run_in_executor(self._pool, self._run, batches[batch])

        await asyncio.gather(*(work() for _ in range(self._threads)))
        return self._collect(batches, vectors, len(texts), _PASSAGE)

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
        """Return whether the model knows its script: `minilm` needs half of the first letters Latin."""
        if self._any_script or text.isascii():
            return True
        letters = _LETTER.findall(text[:_BEGINNING])
        return 2 * len(_LATIN.findall("".join(letters))) >= len(letters)

    async def close(self) -> None:
        """Wait for the running batches, and start no others."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    def _embed_one(self, text: str) -> Vectors:
        batches = list(_batches(self._windows([text], 0, _QUERY)))
        vector: Vectors = self._collect(batches, [self._run(batch) for batch in batches], 1, _QUERY)[0]
        return vector

    def _windows(self, texts: Sequence[str], first: int, kind: str) -> list[_Window]:
        prefix = self._prefixes.get(kind, "")
        encoded = self._encode([prefix + text.encode("utf-8", "replace").decode() for text in texts])
        windows: list[_Window] = []
        for text, ids in enumerate(encoded, first):
            count = max(1, -(-len(ids) // (WINDOW - _MARKERS)))
            parts = np.array_split(np.array(ids, dtype=np.int32), count)
            markers = (self._start, self._end)
            windows += [_Window(text, np.pad(part, 1, constant_values=markers)) for part in parts]
        return windows

    def _run(self, batch: list[_Window]) -> Vectors:
        ids = np.stack([window.ids for window in batch]).astype(np.int64)
        return self._session.run(None, {"ids": ids})[0]

    def _collect(
        self, batches: list[list[_Window]], vectors: list[Vectors], count: int, kind: str
    ) -> Vectors:
        """Return the unit row of each text: the mean of its windows, weighted by length, summed in order.

        Vectors of E5 have a common direction; without it, similarities use the whole range.
        """
        sums = np.zeros((count, self.space.dimensions), dtype=np.float64)
        for batch, means in zip(batches, vectors, strict=True):
            lengths = np.array([[max(1, len(window.ids) - _MARKERS)] for window in batch])
            np.add.at(sums, [window.text for window in batch], means * lengths)
        units = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        if kind in self._means:
            units -= self._means[kind]
            units /= np.linalg.norm(units, axis=1, keepdims=True)
        rows: Vectors = units.astype(np.float32)
        return rows


def _batches(windows: list[_Window]) -> Iterator[list[_Window]]:
    """Group windows of one length, longest first, up to `BATCH_TOKENS` per batch."""
    ordered = sorted(windows, key=lambda window: -len(window.ids))
    for length, group in groupby(ordered, key=lambda window: len(window.ids)):
        alike = list(group)
        size = max(1, BATCH_TOKENS // length)
        for start in range(0, len(alike), size):
            yield alike[start : start + size]


def _locate_model(model: str) -> Traversable:
    if model == MINILM:
        return resources.files("conspectus.providers") / MINILM
    package = f"conspectus_{model}"
    if util.find_spec(package) is None:
        raise MissingExtra(model, f"conspectus-{model}")
    return resources.files(package)


def _tokenizer(folder: Path) -> tuple[_Encode, int, int]:
    """Returns the tokens of texts, without markers, and the markers before and after."""
    if (folder / _PIECES).is_file():
        return _sentence_pieces(gzip.decompress((folder / _PIECES).read_bytes()))
    tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    start, end = tokenizer.encode("").ids

    def encode(texts: list[str]) -> list[list[int]]:
        return [encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    return encode, start, end


def _sentence_pieces(model: bytes) -> tuple[_Encode, int, int]:
    """XLM-RoBERTa's tokens; its own table of characters is NFKC but for the two classes replaced first."""
    processor = optional("sentencepiece", MULTILINGUAL, "conspectus-multilingual").SentencePieceProcessor(
        model_proto=model
    )

    def encode(texts: list[str]) -> list[list[int]]:
        clean = [_SPACES.sub(" ", _CONTROLS.sub("", text)) for text in texts]
        token_ids: list[list[int]] = processor.encode([unicodedata.normalize("NFKC", text) for text in clean])
        return token_ids

    return encode, processor.bos_id(), processor.eos_id()


def _open_session(model: Path) -> _Session:
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Higher levels fuse operators into slower ones for this model (SkipLayerNormalization).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session: _Session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session


def _count_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
