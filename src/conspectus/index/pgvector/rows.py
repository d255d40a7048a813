"""Rows of the pgvector index: chunks with their terms, facts and vectors, and postings for BM25."""

import hashlib
import json
import struct
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.index.bm25 import Analyse, occurrences
from conspectus.index.filter_terms import (
    TEXTS,
    encoded,
    entries,
    exists,
    is_moment,
    is_value,
    signed_checksum,
    spelled_moment,
)
from conspectus.index.pgvector.database import Rows, Tables
from conspectus.model.filter import Field, FieldName, Row
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Period
from conspectus.text.times import from_microseconds, to_microseconds

ALWAYS: Final[frozenset[FieldName]] = frozenset({"source", "document", "kind", "position", "recorded"})
LARGEST: Final = 2**63 - 1
MAX_BITS: Final = 10_000
"""Maximum bits of an integer that is stored for range comparisons."""


@dataclass(frozen=True, slots=True)
class Value:
    """A distinct value at a path, in each type that it can be compared as. All None: it only exists."""

    fact: int
    path: int
    number: Decimal | None = None
    text: bytes | None = None
    moment: int | None = None
    truth: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a row. If `odd`, they do not fit into the database, and filters are evaluated here."""

    numbers: tuple[int, ...] = ()
    values: tuple[Value, ...] = ()
    odd: bool = False


def facts_of(row: Row) -> Facts:
    """Return the facts of a row's metadata, and of its names that spell instants."""
    numbers: dict[int, None] = {}
    values: dict[int, Value] = {}
    odd = False
    pairs = list(entries((), row["metadata"]))
    pairs += [(name, row[name]) for name in TEXTS if spelled_moment(row[name]) is not None]
    for field, value in pairs:
        path = exists(field)
        numbers[path] = None
        odd |= isinstance(value, int) and value.bit_length() > MAX_BITS
        if not odd:
            numbers |= _add(field, path, value, values)
    return Facts(tuple(numbers), tuple(values.values()), odd)


def _add(field: Field, path: int, value: object, values: dict[int, Value]) -> dict[int, None]:
    """Return the facts of one value, and add it to the distinct values."""
    if isinstance(value, list | tuple):
        return {}
    number, moment = is_value(field, value), spelled_moment(value)
    match value:
        case bool():
            values[number] = Value(number, path, truth=int(value))
        case int() | float() if value == value:
            values[number] = Value(number, path, number=Decimal(value))
        case str():
            values[number] = Value(number, path, text=encoded(value), moment=moment)
        case _:
            values[number] = Value(number, path)
    spelled = {} if moment is None else {is_moment(field, moment): None}
    return {number: None, **spelled}


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

    def prepared(self, chunk: IndexedChunk) -> Prepared:
        """Return the row of a chunk."""
        row = chunk.row()
        if chunk.document is not self._document:
            self._document, self._facts = chunk.document, facts_of(row)
        counts, length = occurrences(chunk.term_text, self._analyse)
        encoded_counts = {encoded(term): count for term, count in counts.items()}
        columns = {
            "chunk": chunk.chunk.id,
            "length": length,
            "checksum": signed_checksum(chunk),
            "words": _number_of(encoded(chunk.term_text)),
            "vector": None if chunk.vector is None else _number_of(chunk.vector),
            **_filtered(chunk, row, self._facts),
        }
        return Prepared(chunk.chunk.id, columns, encoded_counts, length, self._facts, chunk.vector)


def sent(vector: bytes) -> bytes:
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


def _filtered(chunk: IndexedChunk, row: Row, facts: Facts) -> dict[str, Any]:
    """Return the columns that filters read; for an odd row only its content as JSON."""
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
        (isinstance(value, bytes) and len(value) > MAX_NAME_LENGTH)
        or (isinstance(value, int) and abs(value) > LARGEST)
        for value in columns.values()
    )


def _number_of(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") >> 1


MAX_BYTES: Final = 64_000_000
"""Maximum bytes of cached postings of an index in this process."""
_READ = """
SELECT wanted.number::integer, p.rows, p.counts
FROM unnest(%(terms)s::bytea[], %(since)s::integer[]) WITH ORDINALITY AS wanted (term, since, number)
JOIN {batches} b ON b.last >= wanted.since
JOIN {postings} p ON p.first = b.first AND p.term = wanted.term
ORDER BY wanted.number, p.first
"""


@dataclass(frozen=True, slots=True)
class PgvectorPosting:
    """The sorted rows below `end` that have a term, dead ones included, and their counts."""

    rows: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    end: int

    def up_to(self, end: int) -> "PgvectorPosting":
        """Return the posting restricted to rows below a number."""
        if end >= self.end:
            return self
        position = int(np.searchsorted(self.rows, end))
        return PgvectorPosting(self.rows[:position], self.counts[:position], end)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return 200 + self.rows.nbytes + self.counts.nbytes


EMPTY: Final = PgvectorPosting(np.zeros(0, np.uint32), np.zeros(0, np.uint16), 0)


class Postings:
    """Caches postings, and reads what was written since. Cached data stays valid."""

    def __init__(self, maximum: int = MAX_BYTES) -> None:
        self._maximum = maximum
        self._held: OrderedDict[tuple[int, bytes], PgvectorPosting] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(
        self, cursor: Rows, tables: Tables, terms: Sequence[bytes], end: int
    ) -> dict[bytes, PgvectorPosting]:
        """Return the posting of each term for rows below `end`."""
        postings = {term: self._cached(tables.generation, term) for term in terms}
        stale = [term for term, posting in postings.items() if posting.end < end]
        if stale:
            fresh = _read(cursor, tables, {term: postings[term].end for term in stale})
            for term in stale:
                postings[term] = _continued(postings[term], fresh.get(term, []), end)
                self._cache(tables.generation, term, postings[term])
        return {term: posting.up_to(end) for term, posting in postings.items()}

    def _cached(self, generation: int, term: bytes) -> PgvectorPosting:
        with self._lock:
            if (generation, term) not in self._held:
                return EMPTY
            self._held.move_to_end((generation, term))
            return self._held[generation, term]

    def _cache(self, generation: int, term: bytes, posting: PgvectorPosting) -> None:
        with self._lock:
            before = self._held.pop((generation, term), None)
            self._held[generation, term] = posting
            self._size += posting.size - (before.size if before else 0)
            while self._size > self._maximum:
                self._size -= self._held.popitem(last=False)[1].size


def packed(counts: Mapping[int, Mapping[bytes, int]]) -> list[tuple[bytes, bytes, bytes]]:
    """Invert the terms of each row to the rows and counts of each term."""
    postings: dict[bytes, tuple[array[int], array[int]]] = {}
    for row, terms in counts.items():
        for term, count in terms.items():
            rows, numbers = postings.setdefault(term, (array("I"), array("H")))
            rows.append(row)
            numbers.append(count)
    return [(term, rows.tobytes(), numbers.tobytes()) for term, (rows, numbers) in sorted(postings.items())]


def _read(cursor: Rows, tables: Tables, since: Mapping[bytes, int]) -> dict[bytes, list[tuple[bytes, bytes]]]:
    terms = list(since)
    parameters = {"terms": terms, "since": list(since.values())}
    cursor.execute(_READ.format(batches=tables.batches, postings=tables.postings), parameters)
    pieces: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for number, rows, counts in cursor:
        pieces.setdefault(terms[number - 1], []).append((rows, counts))
    return pieces


def _continued(before: PgvectorPosting, pieces: Sequence[tuple[bytes, bytes]], end: int) -> PgvectorPosting:
    """Return the posting continued by new pieces, whose first rows it may already contain."""
    rows = np.concatenate([np.zeros(0, np.uint32), *(np.frombuffer(piece, "<u4") for piece, _ in pieces)])
    counts = np.concatenate([np.zeros(0, np.uint16), *(np.frombuffer(piece, "<u2") for _, piece in pieces)])
    fresh = slice(int(np.searchsorted(rows, before.end)), int(np.searchsorted(rows, end)))
    return PgvectorPosting(
        np.concatenate([before.rows, rows[fresh].astype(np.uint32, copy=False)]),
        np.concatenate([before.counts, counts[fresh].astype(np.uint16, copy=False)]),
        end,
    )
