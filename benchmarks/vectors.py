"""Vectors for the benchmarks: the shipped model's own for 100,000 texts, predictions from them for more.

Embedding a million texts takes an hour on two cores. For more than 100,000, a text's vector is what a linear
map, learnt on real vectors, makes of the words that it holds: the same directions, the same crowding, which
is what the speed and recall of an index depend on. Files are kept and used again.
"""

import asyncio
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from corpus import paragraphs
from numpy.typing import NDArray

from conspectus.providers.onnx_embedder import OnnxEmbedder

REAL = 100_000
FEATURES = 4_096
BLOCK = 4_096
RIDGE = 10.0
WORD = re.compile(r"\w+")
Matrix = NDArray[np.float32]


def vectors(texts: Sequence[str], folder: Path) -> Matrix:
    """A unit vector for each text, as float16 values in float32; made once for each set of texts."""
    saved = folder / f"vectors-{len(texts)}-{zlib.crc32(texts[0].encode()):08x}.npy"
    if not saved.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if len(texts) > REAL:
            sample = paragraphs(REAL)
            matrix = _predicted(texts, sample, vectors(sample, folder))
        else:
            matrix = asyncio.run(_real(texts))
        np.save(saved, matrix.astype(np.float16))
    stored: Matrix = np.load(saved).astype(np.float32)
    return stored


async def _real(texts: Sequence[str]) -> Matrix:
    model = OnnxEmbedder()
    parts = []
    for start in range(0, len(texts), BLOCK):
        parts.append(await model.embed_documents(texts[start : start + BLOCK]))
        print(f"embedded {start + len(parts[-1]):,} of {len(texts):,}", file=sys.stderr, flush=True)
    await model.close()
    return np.concatenate(parts)


def _predicted(texts: Sequence[str], sample: Sequence[str], real: Matrix) -> Matrix:
    """Unit vectors of the texts by ridge regression on a sample whose real vectors are given."""
    gram = np.eye(FEATURES, dtype=np.float32) * RIDGE
    target = np.zeros((FEATURES, real.shape[1]), dtype=np.float32)
    for start in range(0, len(sample), BLOCK):
        block = _features(sample[start : start + BLOCK])
        gram += block.T @ block
        target += block.T @ real[start : start + BLOCK]
    weights = np.linalg.solve(gram, target)
    parts = []
    for start in range(0, len(texts), BLOCK):
        block = _features(texts[start : start + BLOCK]) @ weights
        block[~block.any(axis=1), 0] = 1.0
        parts.append(block / np.linalg.norm(block, axis=1, keepdims=True))
    return np.concatenate(parts)


def _features(texts: Sequence[str]) -> Matrix:
    block = np.zeros((len(texts), FEATURES), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in set(WORD.findall(text.lower())):
            block[row, zlib.crc32(word.encode("utf-8", "replace")) % FEATURES] = 1.0
    lengths = np.sqrt(np.maximum(block.sum(axis=1, keepdims=True), 1.0))
    features: Matrix = block / lengths
    return features
