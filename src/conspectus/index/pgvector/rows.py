"""Rows of the pgvector index: chunks with their terms, facts and vectors."""

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse, occurrences
from conspectus.index.filter_terms import (
    TEXTS,
    comparable,
    compute_signed_checksum,
    encode_text,
)
from conspectus.index.pgvector.facts import LARGEST, Facts, facts_of
from conspectus.model.filter import Row
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.text.times import from_microseconds, to_microseconds

MAX_NAME_LENGTH = 1_000
"""Maximum bytes of a text in an indexed column; PostgreSQL allows up to 2,700."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be written, without a row number."""

    chunk: int
    columns: Mapping[str, Any]
    counts: Mapping[bytes, int]
    length: int
    facts: Facts
    vector: bytes | None


class Preparing:
    """Prepares rows. Facts of a document are computed once for all its chunks."""

    def __init__(self, analyse: Analyse) -> None:
        self._analyse = analyse
        self._document: object = None
        self._facts = Facts()

    def prepare(self, chunk: IndexedChunk) -> Prepared:
        """Return the row of a chunk."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk.term_text, self._analyse)
        encoded_counts = {encode_text(term): count for term, count in counts.items()}
        columns = {
            "chunk": chunk.chunk.id,
            "length": length,
            "checksum": compute_signed_checksum(chunk),
            "words": _number_of(encode_text(chunk.term_text)),
            "vector": None if chunk.vector is None else _number_of(chunk.vector),
            **_filter_columns(chunk, row, self._facts),
        }
        return Prepared(chunk.chunk.id, columns, encoded_counts, length, self._facts, chunk.vector)


def to_binary(vector: bytes) -> bytes:
    """Return a stored vector in the binary format of pgvector."""
    swapped = np.frombuffer(vector, "<f2").astype(">f2")
    return struct.pack(">HH", len(swapped), 0) + swapped.tobytes()


def as_literal(vector: np.ndarray[Any, Any]) -> str:
    """Return a query vector as a literal of pgvector."""
    return "[" + ",".join(map(repr, vector.astype(np.float16).astype(float).tolist())) + "]"


def odd_row(body: bytes) -> Row:
    """Return the fields of a row that filters read, for rows that SQL cannot evaluate."""
    row: dict[str, Any] = json.loads(body)
    occurred = row["occurred"]
    if occurred is not None:
        row["occurred"] = Period(*map(from_microseconds, occurred))
    row["recorded"] = from_microseconds(row["recorded"])
    return row


def _filter_columns(chunk: IndexedChunk, row: Row, facts: Facts) -> dict[str, Any]:
    """Return the columns that filters read; for an odd row only its content as JSON."""
    document = chunk.document
    period = document.occurred
    starts, ends = (None, None) if period is None else map(to_microseconds, (period.start, period.end))
    recorded = to_microseconds(document.recorded)
    texts: dict[str, Any] = {
        name: None if row[name] is None else comparable(str(row[name])) for name in TEXTS
    }
    numbers: dict[str, Any] = {"sequence": document.sequence, "position": chunk.chunk.position}
    columns: dict[str, Any] = {**texts, **numbers, "recorded": recorded, "starts": starts, "ends": ends}
    columns |= {"facts": list(facts.numbers), "odd": None}
    if not (facts.odd or _is_odd(columns)):
        return columns
    seen = {
        **row,
        "metadata": dict(document.metadata),
        "recorded": recorded,
        "occurred": None if period is None else (starts, ends),
    }
    hollow: dict[str, Any] = dict.fromkeys(columns)
    named: dict[str, Any] = {"source": b"", "document": b"", "kind": b"", "recorded": recorded, "facts": []}
    if document.thread is not None:
        named["thread"] = b""
    return {**hollow, **named, "odd": json.dumps(seen).encode()}


def _is_odd(columns: Mapping[str, Any]) -> bool:
    return any(
        (isinstance(value, bytes) and len(value) > MAX_NAME_LENGTH)
        or (isinstance(value, int) and abs(value) > LARGEST)
        for value in columns.values()
    )


def _number_of(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 1
