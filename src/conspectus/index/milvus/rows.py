"""Rows of the Milvus index: chunks with terms and sparse weights, and filters compiled to expressions."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pymilvus import CollectionSchema, DataType, FieldSchema, MilvusClient
from pymilvus.milvus_client.index import IndexParams

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse, Bm25, occurrences
from conspectus.index.filter_compiler import ColumnValue, FilterCompiler, by_value
from conspectus.index.filter_terms import (
    NUMBERS,
    TEXTS,
    entries,
    exists,
    is_moment,
    is_value,
    path_name,
    signed_checksum,
    spelled_moment,
    stand_in,
)
from conspectus.index.milvus.connection import MAX_TEXT_LENGTH, tenant
from conspectus.model.filter import (
    Between,
    Field,
    FieldName,
    Filter,
    Row,
    holds,
    leaves,
)
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.ports import Floats
from conspectus.text.times import to_microseconds

DIMENSIONS = 2**32 - 2
_NO_TERM = 0
_EXACT_UP_TO = 500


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

    def encoded(self, counts: Mapping[int, int], length: int) -> dict[str, Any]:
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
            counts[position] = (
                row["large"].get(str(number), counts[position]) if row["large"] else counts[position]
            )
        return np.asarray(counts, np.float64)

    def slack(self, average: float) -> float:
        """Return the largest ratio of an exact score to one computed with the stored mean length."""
        return max(1.0, average / self.average) * (1.0 + 1e-5)

    def _norm(self, length: float) -> float:
        return self.bm25.k1 * (1.0 - self.bm25.b) + self.bm25.k1 * self.bm25.b * length / self.average


MAX_FACTS = 3_500
"""Milvus accepts arrays of at most 4,096 elements; text fields are sized for as many facts."""
MAX_VALUE_LENGTH = 10_000
"""Maximum characters of a text, or bits of a number, of which ranges can be searched."""
MAX_NAME_LENGTH = 1_000
"""Maximum bytes of a text in a column of its own."""
ABSENT: Final = -(2**62)
MAX_NUMBER: Final = 2**62


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, as JSON, with its fact."""

    path: str
    fact: int
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row. If `odd`, the facts do not fit into Milvus, and filters are evaluated here."""

    numbers: tuple[int, ...]
    values: tuple[Value, ...]
    odd: bool


def fact_word(number: int) -> str:
    """Return a fact as a word of fixed length."""
    return f"{number:016x}"


def path_key(field: Field) -> str:
    """Return a path as text of fixed length."""
    return hashlib.blake2b(path_name(field).encode(), digest_size=16).hexdigest()


def facts_of(row: Row) -> Facts:
    """Return the facts of a row's metadata, and of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    for field, value in entries((), row["metadata"]):
        numbers[exists(field)] = None
        odd |= _add(field, value, numbers, values)
    for name in TEXTS:
        if spelled_moment(row[name]) is not None:
            odd |= _add(name, row[name], numbers, values)
    return Facts(tuple(numbers)[:MAX_FACTS], tuple(values.values()), odd or len(numbers) > MAX_FACTS)


def hexed(text: str) -> str:
    """Return a text in hexadecimal, which needs no escaping and sorts by code points."""
    return "=" + text.encode("utf-8", "surrogatepass").hex()


def is_odd(row: Row) -> bool:
    """Return whether a field does not fit into its column."""
    named = (row[name] for name in TEXTS)
    numbers = (row[name] for name in ("sequence", "position"))
    return any(isinstance(text, str) and len(hexed(text)) > 2 * MAX_NAME_LENGTH for text in named) or any(
        isinstance(number, int) and abs(number) >= MAX_NUMBER for number in numbers
    )


def _add(field: Field, value: object, numbers: dict[int, None], values: dict[int, Value]) -> bool:
    """Add a value. Returns whether it exceeds what can be stored."""
    if (moment := spelled_moment(value)) is not None:
        numbers[is_moment(field, moment)] = None
    if isinstance(value, int) and value.bit_length() > MAX_VALUE_LENGTH:
        return True
    number = is_value(field, value)
    numbers[number] = None
    stored = json.dumps(stand_in(value))
    if len(stored) > MAX_VALUE_LENGTH:
        return True
    values[number] = Value(path_key(field), number, stored)
    return False


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

    def prepared(self, chunk: IndexedChunk) -> Prepared:
        """Return the row of a chunk. Zeros stand for a missing vector; no search looks at them."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk.term_text, self._analyse)
        by_dimension: dict[int, int] = {}
        for term, count in counts.items():
            by_dimension[dimension(term)] = by_dimension.get(dimension(term), 0) + count
        columns = self._common(chunk, row) | self._weights.encoded(by_dimension, length)
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
    return hexed(value)[: 2 * MAX_NAME_LENGTH + 1] if isinstance(value, str) else ""


def _number(value: int | None, *, odd: bool) -> int:
    return ABSENT if value is None or odd else value


EVERY, NONE = "version >= 0", "version < 0"
FieldValues: TypeAlias = Mapping[Field, Sequence[tuple[int, object]]]
"""The distinct values of a field, each with its fact."""


def ranged(condition: Filter) -> set[Field]:
    """Return the fields whose distinct values are needed to compile a filter."""
    return {leaf.field for leaf in leaves(condition) if isinstance(leaf, Between) and by_value(leaf)}


@dataclass(frozen=True, slots=True)
class Compiler(FilterCompiler):
    """Compiles filters to Milvus expressions. `distinct_values` holds the fields of `ranged`.

    Milvus Lite scans arrays 200 times slower than texts. With `facts_as_text`, facts are one text of
    hexadecimal words that is searched with LIKE.
    """

    every, none, largest = EVERY, NONE, MAX_NUMBER - 1
    distinct_values: FieldValues
    facts_as_text: bool = False

    def present(self, field: FieldName) -> str:
        """Return the condition: the column is not null."""
        if field in TEXTS:
            return f'{field} != ""'
        return f"{field if field in NUMBERS else 'ends'} > {ABSENT}"

    def any_fact(self, facts: Sequence[int]) -> str:
        """Return the condition: the row has at least one of these facts."""
        if self.facts_as_text:
            return " or ".join(f'facts like "%{fact_word(number)}%"' for number in facts)
        return f"array_contains_any(facts, [{','.join(map(str, facts))}])"

    def among(self, field: FieldName, values: Sequence[str] | Sequence[int]) -> str:
        """Return the condition: the column has one of these values."""
        listed = [f'"{hexed(operand)}"' if isinstance(operand, str) else str(operand) for operand in values]
        return f"{field} in [{','.join(listed)}]"

    def compared(self, column: str, sign: str, value: ColumnValue) -> str:
        """Return the condition: the value of the column compares so with the bound."""
        return f"{column} {sign} {_literal(value)}"

    def values_between(self, leaf: Between) -> str:
        """Return the condition: the row has a value at the path within the bounds."""
        facts = [number for number, value in self.distinct_values[leaf.field] if holds(leaf, value)]
        return self.any_fact(facts) if facts else self.none


def either(ids: Iterable[int]) -> str:
    """Return the expression of the rows of these chunks."""
    listed = ",".join(map(str, ids))
    return f"chunk in [{listed}]" if listed else NONE


def one_of(keys: Iterable[str]) -> str:
    """Return the expression of rows by key, which Milvus looks up without a scan."""
    listed = ",".join(f'"{key}"' for key in keys)
    return f"key in [{listed}]"


def _literal(value: ColumnValue) -> str:
    """Return a value as a literal; a number is rounded up to an integer."""
    if isinstance(value, str):
        return f'"{hexed(value)}"'
    if isinstance(value, float) and math.isinf(value):
        return str(MAX_NUMBER if value > 0 else ABSENT)
    return str(max(ABSENT, min(MAX_NUMBER, math.ceil(value))))
