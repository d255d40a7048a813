"""Chunks as rows of the index, and what the statistics must know of them."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conspectus.index.bm25 import Analyse, occurrences
from conspectus.index.filter_terms import TEXTS
from conspectus.index.filter_values import content_checksum
from conspectus.index.pgvector.row_terms import LARGEST, Facts, encoded, facts_of
from conspectus.model.filter import Row
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.text.times import from_microseconds, to_microseconds

LONGEST_NAME = 1_000
"""Bytes of a text in a column that has an index, which takes up to 2,700."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be written; it has no number yet."""

    chunk: int
    columns: Mapping[str, Any]
    counts: Mapping[bytes, int]
    length: int
    facts: Facts
    vector: bytes | None


class Preparing:
    """Makes rows; the facts of a document are worked out once for its chunks."""

    def __init__(self, analyse: Analyse) -> None:
        self._analyse = analyse
        self._document: object = None
        self._facts = Facts()

    def prepared(self, chunk: IndexedChunk) -> Prepared:
        """The row of a chunk."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk, self._analyse)
        known = {encoded(term): count for term, count in counts.items()}
        columns = {
            "chunk": chunk.chunk.id,
            "length": length,
            "checksum": signed_checksum(chunk),
            "words": _number_of(chunk.passage.encode("utf-8", "surrogatepass")),
            "vector": None if chunk.vector is None else _number_of(chunk.vector),
            **_filtered(chunk, row, self._facts),
        }
        return Prepared(chunk.chunk.id, columns, known, length, self._facts, chunk.vector)


def signed_checksum(chunk: IndexedChunk) -> int:
    """The checksum as a number that the database can hold."""
    return content_checksum(chunk) >> 1


def sent(vector: bytes) -> bytes:
    """A stored vector as pgvector takes it in its binary form."""
    swapped = np.frombuffer(vector, "<f2").astype(">f2")
    return struct.pack(">HH", len(swapped), 0) + swapped.tobytes()


def as_literal(vector: np.ndarray[Any, Any]) -> str:
    """A question's vector as pgvector reads it in a statement."""
    return "[" + ",".join(map(repr, vector.astype(np.float16).astype(float).tolist())) + "]"


def odd_row(body: bytes) -> Row:
    """What a filter sees of a row that SQL cannot judge."""
    row: dict[str, Any] = json.loads(body)
    occurred = row["occurred"]
    if occurred is not None:
        row["occurred"] = Period(*map(from_microseconds, occurred))
    row["recorded"] = from_microseconds(row["recorded"])
    return row


def _filtered(chunk: IndexedChunk, row: Row, facts: Facts) -> dict[str, Any]:
    """The columns that filters read; of an odd row only its whole content."""
    document = chunk.document
    period = document.occurred
    starts, ends = (None, None) if period is None else map(to_microseconds, (period.start, period.end))
    recorded = to_microseconds(document.recorded)
    texts: dict[str, Any] = {name: None if row[name] is None else encoded(str(row[name])) for name in TEXTS}
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
        (isinstance(value, bytes) and len(value) > LONGEST_NAME)
        or (isinstance(value, int) and abs(value) > LARGEST)
        for value in columns.values()
    )


def _number_of(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 1
