"""Chunks as rows of Milvus: one with the terms, and one with the vector where there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymilvus import CollectionSchema, DataType, FieldSchema, MilvusClient
from pymilvus.milvus_client.index import IndexParams

from conspectus.index.bm25 import Analyse, occurrences
from conspectus.index.filter_terms import TEXTS
from conspectus.index.filter_values import content_checksum
from conspectus.index.milvus.connection import LONGEST_TEXT
from conspectus.index.milvus.partitions import tenant
from conspectus.index.milvus.row_terms import ABSENT, LONGEST_NAME, Facts, fact_word, facts_of, hexed, is_odd
from conspectus.index.milvus.sparse_weights import Weights, dimension
from conspectus.model.filter import Row
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.text.times import to_microseconds

WORDS, VECTORS, NOTES = "words", "vectors", "notes"
_LONGEST_KEY = 64
_TEXT_SIZE = 2 * LONGEST_NAME + 2
_CAPACITY = 4_096


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be sent, and what the statistics must know of it."""

    words: dict[str, Any]
    vector: dict[str, Any] | None
    facts: Facts
    terms: NDArray[np.uint32]
    length: int
    size: int


class Preparing:
    """Makes rows of one version; the facts of a document are worked out once for its chunks."""

    def __init__(self, analyse: Analyse, weights: Weights, version: int, *, facts_as_text: bool) -> None:
        self._facts_as_text = facts_as_text
        self._analyse = analyse
        self._weights = weights
        self._version = version
        self._document: object = None
        self._facts = Facts((), (), odd=False)

    def prepared(self, chunk: IndexedChunk) -> Prepared:
        """The rows of a chunk."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk, self._analyse)
        by_dimension: dict[int, int] = {}
        for term, count in counts.items():
            by_dimension[dimension(term)] = by_dimension.get(dimension(term), 0) + count
        common = self._common(chunk, row)
        words = common | self._weights.encoded(by_dimension, length) | {"length": length}
        words |= {"has_vector": chunk.vector is not None, "in_thread": chunk.document.thread is not None}
        vector = None
        if chunk.vector is not None:
            vector = common | {"vector": np.frombuffer(chunk.vector, "<f2").astype(np.float32)}
        size = 12 * len(by_dimension) + 2 * (8 * len(self._facts.numbers) + 1_000)
        size += 0 if vector is None else vector["vector"].nbytes
        return Prepared(words, vector, self._facts, np.array(list(by_dimension), np.uint32), length, size)

    def _common(self, chunk: IndexedChunk, row: Row) -> dict[str, Any]:
        number = chunk.chunk.id
        odd = self._facts.odd or is_odd(row)
        fields: dict[str, Any] = {"key": key_of(number, self._version), "chunk": number}
        numbers = self._facts.numbers
        facts = " ".join(map(fact_word, numbers)) if self._facts_as_text else list(numbers)
        fields |= {"version": self._version, "odd": odd, "facts": facts, "tenant": tenant(row["source"])}
        fields |= {"checksum": signed_checksum(chunk)}
        fields |= {name: _text(row[name]) for name in TEXTS}
        period = chunk.document.occurred
        return fields | {
            "sequence": _number(chunk.document.sequence, odd=odd),
            "position": _number(chunk.chunk.position, odd=odd),
            "recorded": to_microseconds(chunk.document.recorded),
            "starts": ABSENT if not isinstance(period, Period) else to_microseconds(period.start),
            "ends": ABSENT if not isinstance(period, Period) else to_microseconds(period.end),
        }


def collection_name(index: str, generation: str, what: str) -> str:
    """The name of a collection of an index."""
    return f"{index}_{generation}_{what}"


def key_of(chunk: int, version: int) -> str:
    """The key of a row: a chunk at a version of the index."""
    return f"{chunk}.{version}"


def signed_checksum(chunk: IndexedChunk) -> int:
    """The checksum as a number that Milvus can hold."""
    return content_checksum(chunk) >> 1


def words_layout(*, facts_as_text: bool) -> tuple[CollectionSchema, IndexParams]:
    """Fields and indexes of the collection of terms."""
    fields = [
        FieldSchema("length", DataType.INT64),
        FieldSchema("large", DataType.JSON),
        FieldSchema("has_vector", DataType.BOOL),
        FieldSchema("in_thread", DataType.BOOL),
        FieldSchema("terms", DataType.SPARSE_FLOAT_VECTOR),
    ]
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("terms", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    return CollectionSchema([*_common_fields(facts_as_text=facts_as_text), *fields]), indexes


def vectors_layout(dimensions: int, *, lite: bool) -> tuple[CollectionSchema, IndexParams]:
    """Fields and indexes of the collection of vectors; Milvus Lite looks at every vector."""
    vector = FieldSchema("vector", DataType.FLOAT_VECTOR, dim=dimensions)
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT" if lite else "AUTOINDEX", metric_type="IP")
    return CollectionSchema([*_common_fields(facts_as_text=lite), vector]), indexes


def notes_layout() -> tuple[CollectionSchema, IndexParams]:
    """Fields and indexes of the collection of the state; every collection must have a vector."""
    fields = [
        FieldSchema("key", DataType.VARCHAR, is_primary=True, max_length=4 * _LONGEST_KEY),
        FieldSchema("kind", DataType.VARCHAR, max_length=_LONGEST_KEY),
        FieldSchema("path", DataType.VARCHAR, max_length=_LONGEST_KEY),
        FieldSchema("version", DataType.INT64),
        FieldSchema("body", DataType.VARCHAR, max_length=LONGEST_TEXT),
        FieldSchema("place", DataType.FLOAT_VECTOR, dim=2),
    ]
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("place", index_type="AUTOINDEX", metric_type="IP")
    return CollectionSchema(fields), indexes


def dense(rows: Sequence[Mapping[str, Any]]) -> NDArray[np.float16]:
    """The vectors of rows as they were stored."""
    return np.array([row["vector"] for row in rows], np.float32).astype(np.float16)


def _common_fields(*, facts_as_text: bool) -> list[FieldSchema]:
    facts = FieldSchema("facts", DataType.ARRAY, element_type=DataType.INT64, max_capacity=_CAPACITY)
    if facts_as_text:
        facts = FieldSchema("facts", DataType.VARCHAR, max_length=LONGEST_TEXT)
    numbers = ("chunk", "version", "sequence", "position", "recorded", "starts", "ends", "checksum")
    return [
        FieldSchema("key", DataType.VARCHAR, is_primary=True, max_length=_LONGEST_KEY),
        FieldSchema("tenant", DataType.VARCHAR, max_length=_LONGEST_KEY, is_partition_key=not facts_as_text),
        *(FieldSchema(name, DataType.INT64) for name in numbers),
        *(FieldSchema(name, DataType.VARCHAR, max_length=_TEXT_SIZE) for name in TEXTS),
        facts,
        FieldSchema("odd", DataType.BOOL),
    ]


def _text(value: object) -> str:
    return hexed(value)[: 2 * LONGEST_NAME + 1] if isinstance(value, str) else ""


def _number(value: int | None, *, odd: bool) -> int:
    return ABSENT if value is None or odd else value
