"""Rows of the Milvus index: chunks with terms and sparse weights, and the layout of the collections."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymilvus import CollectionSchema, DataType, FieldSchema, MilvusClient
from pymilvus.milvus_client.index import IndexParams

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse, Bm25, occurrences
from conspectus.index.filter_terms import (
    TEXTS,
    compute_signed_checksum,
)
from conspectus.index.milvus.connection import MAX_TEXT_LENGTH, tenant
from conspectus.index.milvus.facts import (
    ABSENT,
    MAX_NAME_LENGTH,
    Facts,
    encode_hex,
    fact_word,
    facts_of,
    is_odd,
)
from conspectus.model.filter import (
    Row,
)
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.ports import Floats
from conspectus.text.times import to_microseconds

DIMENSIONS = 2**32 - 2
_NO_TERM = 0
"""The dimension of rows without terms, which no query has."""
_EXACT_UP_TO = 500
"""Larger counts of a term are stored beside the weights, from which they cannot be computed exactly."""


def dimension(term: str) -> int:
    """Return the sparse dimension of a term. Of a million terms, one in 4,000 shares its dimension."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % (DIMENSIONS - 1)


def source_number(tenant: str) -> int:
    """Return the number of a source in the statistics, from its tenant. No dimension is as large."""
    return 2**63 | int(tenant[:15], 16)


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of BM25, and the mean chunk length that the stored weights were computed with."""

    bm25: Bm25
    average: float

    def encode_terms(self, counts: Mapping[int, int], length: int) -> dict[str, Any]:
        """Return the columns for the term counts of a row. A row without terms gets one that no query has."""
        norm = self._norm(float(length))
        terms = {number: float(np.float32(count / (count + norm))) for number, count in counts.items()}
        large = {str(number): count for number, count in counts.items() if count > _EXACT_UP_TO}
        return {"terms": terms or {_NO_TERM: 1.0}, "large": large}

    def counts(self, rows: Sequence[Mapping[str, Any]], number: int) -> Floats:
        """Return the count of a term in each of the rows."""
        weights = np.array([row["terms"].get(number, 0.0) for row in rows], np.float64)
        norms = np.array([self._norm(float(row["length"])) for row in rows], np.float64)
        counts = np.rint(norms * weights / (1.0 - np.minimum(weights, 0.999_999)))
        for position, row in enumerate(rows):
            if row["large"]:
                counts[position] = row["large"].get(str(number), counts[position])
        return np.asarray(counts, np.float64)

    def max_score_ratio(self, average: float) -> float:
        """Return the largest ratio of an exact score to one computed with the stored mean length."""
        return max(1.0, average / self.average) * (1.0 + 1e-5)

    def _norm(self, length: float) -> float:
        return self.bm25.k1 * (1.0 - self.bm25.b) + self.bm25.k1 * self.bm25.b * length / self.average


ROWS, NOTES = "rows", "notes"
_MAX_KEY_LENGTH = 64
_TEXT_SIZE = 2 * MAX_NAME_LENGTH + 2
_CAPACITY = 4_096


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be sent, and its contribution to the statistics: its terms and its source."""

    columns: dict[str, Any]
    facts: Facts
    terms: NDArray[np.uint64]
    length: int
    size: int


class Preparing:
    """Prepares rows of one version. Facts of a document are computed once for all its chunks."""

    def __init__(
        self, analyse: Analyse, weights: Weights, version: int, *, dimensions: int, facts_as_text: bool
    ) -> None:
        self._facts_as_text = facts_as_text
        self._dimensions = dimensions
        self._analyse = analyse
        self._weights = weights
        self._version = version
        self._document: object = None
        self._facts = Facts((), (), odd=False)

    def prepare(self, chunk: IndexedChunk) -> Prepared:
        """Return the row of a chunk. A missing vector is stored as zeros, which no search reads."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk.term_text, self._analyse)
        by_dimension: dict[int, int] = {}
        for term, count in counts.items():
            by_dimension[dimension(term)] = by_dimension.get(dimension(term), 0) + count
        columns = self._common(chunk, row) | self._weights.encode_terms(by_dimension, length)
        columns |= {"length": length, "in_thread": chunk.document.thread is not None}
        columns |= {"has_vector": chunk.vector is not None}
        if self._dimensions:
            vector = np.frombuffer(chunk.vector or bytes(2 * self._dimensions), "<f2")
            columns |= {"vector": vector.astype(np.float32)}
        size = 12 * len(by_dimension) + 8 * len(self._facts.numbers) + 1_000 + 4 * self._dimensions
        terms = np.array([*by_dimension, source_number(columns["tenant"])], np.uint64)
        return Prepared(columns, self._facts, terms, length, size)

    def _common(self, chunk: IndexedChunk, row: Row) -> dict[str, Any]:
        number = chunk.chunk.id
        odd = self._facts.odd or is_odd(row)
        fields: dict[str, Any] = {"key": key_of(number, self._version), "chunk": number}
        numbers = self._facts.numbers
        facts = " ".join(map(fact_word, numbers)) if self._facts_as_text else list(numbers)
        fields |= {"version": self._version, "odd": odd, "facts": facts, "tenant": tenant(row["source"])}
        fields |= {"checksum": compute_signed_checksum(chunk)}
        fields |= {name: _text(row[name]) for name in TEXTS}
        period = chunk.document.occurred
        return fields | {
            "sequence": _number(chunk.document.sequence, odd=odd),
            "position": _number(chunk.chunk.position, odd=odd),
            "recorded": to_microseconds(chunk.document.recorded),
            "starts": ABSENT if not isinstance(period, Period) else to_microseconds(period.start),
            "ends": ABSENT if not isinstance(period, Period) else to_microseconds(period.end),
        }


def collection_name(index: str, generation: str, content: str) -> str:
    """Return the name of a collection of an index, for its rows or its notes."""
    return f"{index}_{generation}_{content}"


def key_of(chunk: int, version: int) -> str:
    """Return the key of a row: a chunk at a version of the index."""
    return f"{chunk}.{version}"


def rows_layout(dimensions: int, *, lite: bool) -> tuple[CollectionSchema, IndexParams]:
    """Return the fields and indexes of the collection of rows. Milvus Lite scans vectors."""
    fields = [
        *_common_fields(facts_as_text=lite),
        FieldSchema("length", DataType.INT64),
        FieldSchema("large", DataType.JSON),
        FieldSchema("has_vector", DataType.BOOL),
        FieldSchema("in_thread", DataType.BOOL),
        FieldSchema("terms", DataType.SPARSE_FLOAT_VECTOR),
    ]
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("terms", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    if dimensions:
        fields.append(FieldSchema("vector", DataType.FLOAT_VECTOR, dim=dimensions))
        indexes.add_index("vector", index_type="FLAT" if lite else "AUTOINDEX", metric_type="IP")
    return CollectionSchema(fields), indexes


def notes_layout() -> tuple[CollectionSchema, IndexParams]:
    """Return the fields and indexes of the collection of states. Milvus requires a vector field."""
    fields = [
        FieldSchema("key", DataType.VARCHAR, is_primary=True, max_length=4 * _MAX_KEY_LENGTH),
        FieldSchema("kind", DataType.VARCHAR, max_length=_MAX_KEY_LENGTH),
        FieldSchema("path", DataType.VARCHAR, max_length=_MAX_KEY_LENGTH),
        FieldSchema("version", DataType.INT64),
        FieldSchema("body", DataType.VARCHAR, max_length=MAX_TEXT_LENGTH),
        FieldSchema("place", DataType.FLOAT_VECTOR, dim=2),
    ]
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("place", index_type="AUTOINDEX", metric_type="IP")
    return CollectionSchema(fields), indexes


def dense(rows: Sequence[Mapping[str, Any]]) -> NDArray[np.float16]:
    """Return the stored vectors of rows."""
    return np.array([row["vector"] for row in rows], np.float32).astype(np.float16)


def _common_fields(*, facts_as_text: bool) -> list[FieldSchema]:
    facts = FieldSchema("facts", DataType.ARRAY, element_type=DataType.INT64, max_capacity=_CAPACITY)
    if facts_as_text:
        facts = FieldSchema("facts", DataType.VARCHAR, max_length=MAX_TEXT_LENGTH)
    numbers = ("chunk", "version", "sequence", "position", "recorded", "starts", "ends", "checksum")
    return [
        FieldSchema("key", DataType.VARCHAR, is_primary=True, max_length=_MAX_KEY_LENGTH),
        FieldSchema(
            "tenant", DataType.VARCHAR, max_length=_MAX_KEY_LENGTH, is_partition_key=not facts_as_text
        ),
        *(FieldSchema(name, DataType.INT64) for name in numbers),
        *(FieldSchema(name, DataType.VARCHAR, max_length=_TEXT_SIZE) for name in TEXTS),
        facts,
        FieldSchema("odd", DataType.BOOL),
    ]


def _text(value: object) -> str:
    return encode_hex(value)[: 2 * MAX_NAME_LENGTH + 1] if isinstance(value, str) else ""


def _number(value: int | None, *, odd: bool) -> int:
    return ABSENT if value is None or odd else value
