"""Chunks without vectors, the storage of vectors, and the change of the embedding model."""

from collections.abc import Iterable, Sequence, Set

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    true,
    update,
)

from conspectus.deferred import dataclass
from conspectus.errors import TEXT_STATUSES, InvalidInput
from conspectus.model.filter import EVERYTHING, Filter, document_row, matches
from conspectus.model.ids import ChunkId, CollectionId, DocumentId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import EmbeddingSpace
from conspectus.records.core.changes import ChangeRange, append
from conspectus.records.core.collections import state
from conspectus.records.core.filters import compile_filter
from conspectus.records.core.reads import documents_by_number
from conspectus.records.core.rows import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    space_values,
    to_document,
    to_indexed,
)
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks, insert_rows
from conspectus.records.tables.core import PENDING, chunks, collections, documents, vectors

BYTES_PER_NUMBER = 2
MAX_CHECKED = 1_000
"""Documents without vectors that are compared with a filter that SQL cannot decide."""

_OWNERS = (
    select(chunks.c.id, chunks.c.document, documents.c.collection)
    .join(documents, documents.c.number == chunks.c.document)
    .where(chunks.c.id.in_(IDS))
    .order_by(chunks.c.id)
)
_TABLE = vectors
_IN_SPACE = (vectors.c.space == bindparam("called"), vectors.c.chunk.in_(IDS))
_ERROR = documents.c.status == "error"


def unembedded(
    connection: Connection,
    collection: CollectionId,
    space: EmbeddingSpace,
    *,
    limit: int,
    among: range | None = None,
) -> list[IndexedChunk]:
    query = _lacking(connection, collection, space=space).add_columns(*CHUNK_COLUMNS, null())
    if among is not None:
        query = query.where(documents.c.last_chunk >= among.start, documents.c.last_chunk < among.stop)
    ordered = query.order_by(documents.c.last_chunk, chunks.c.position).limit(limit)
    rows = connection.execute(ordered).all()
    return to_indexed(rows, documents_by_number(connection, {row[1] for row in rows}))


def oldest_unembedded(
    connection: Connection, collection: CollectionId, space: EmbeddingSpace, *, start: int
) -> ChunkId | None:
    """Return the last chunk of the oldest document that `unembedded` returns, from `start` on."""
    query = _lacking(connection, collection, space=space).add_columns(documents.c.last_chunk)
    ordered = query.where(documents.c.last_chunk >= start).order_by(documents.c.last_chunk).limit(1)
    chunk: ChunkId | None = connection.execute(ordered).scalar()
    return chunk


def count_unembedded(connection: Connection, collection: CollectionId, space: EmbeddingSpace) -> int:
    """Return how many chunks `unembedded` would return."""
    counted = _lacking(connection, collection, space=space).add_columns(func.count())
    total: int = connection.execute(counted).scalar_one()
    return total


def put_vectors(
    connection: Connection,
    collection: CollectionId,
    space: EmbeddingSpace,
    vectors: Sequence[tuple[ChunkId, bytes]],
) -> int:
    """Store vectors of existing chunks, and mark documents that have all of theirs.

    A stored vector is kept: it may have been given while another was computed.
    """
    vectors_by_chunk = dict(vectors)
    if any(len(vector) != BYTES_PER_NUMBER * space.dimensions for vector in vectors_by_chunk.values()):
        raise InvalidInput("vectors", f"must have {space.dimensions} float16 numbers each")
    owners = list(fetch_in_blocks(connection, _OWNERS, sorted(vectors_by_chunk)))
    stored = select(_TABLE.c.chunk).where(*_IN_SPACE)
    there = {
        row.chunk
        for row in fetch_in_blocks(connection, stored, [row.id for row in owners], called=space.name)
    }
    owners = [row for row in owners if row.id not in there and row.collection == collection]
    if owners:
        rows = [{"chunk": row.id, "space": space.name, "vector": vectors_by_chunk[row.id]} for row in owners]
        insert_rows(connection, _TABLE, rows)
    _mark_complete(connection, space=space, numbers={row.document for row in owners})
    append(connection, [ChangeRange(row.collection, "put", row.id, row.id, space.name) for row in owners])
    return len(owners)


@dataclass(frozen=True, slots=True)
class ClientVector:
    """A vector given with its document, for all of its chunks."""

    first: int
    last: int
    space: str
    vector: bytes


def store_vectors_with_chunks(connection: Connection, client_vectors: Sequence[ClientVector]) -> None:
    """Store given vectors of chunks written in the same transaction, replacing stored ones."""
    rows = [
        {"chunk": chunk, "space": client_vector.space, "vector": client_vector.vector}
        for client_vector in client_vectors
        for chunk in range(client_vector.first, client_vector.last + 1)
    ]
    for space in sorted({client_vector.space for client_vector in client_vectors}):
        written = [row["chunk"] for row in rows if row["space"] == space]
        execute_in_blocks(connection, delete(vectors).where(*_IN_SPACE), written, called=space)
    insert_rows(connection, vectors, rows)


def check_vector(vector: bytes, space: EmbeddingSpace | None) -> None:
    """Raise InvalidInput unless a given vector fits the embedding model."""
    if space is None:
        raise InvalidInput("vector", "the collection has no vectors; create one with an embedder")
    size = len(vector) // BYTES_PER_NUMBER
    if size != space.dimensions:
        raise InvalidInput("vector", f"has {size} numbers, the space of the collection {space.dimensions}")


def fail(connection: Connection, document: DocumentId, error: str) -> None:
    """Mark a document as failed to embed, unless it was deleted meanwhile."""
    row = update(documents).where(documents.c.id == document)
    connection.execute(row.values(status="error", error=error))


def has_pending(connection: Connection, collection: CollectionId, where: Filter = EVERYTHING) -> bool:
    """Return whether a matching document has chunks that may lack a vector."""
    return _is_any(connection, and_(documents.c.collection == collection, PENDING), where)


def has_failed(
    connection: Connection, collection: CollectionId, where: Filter = EVERYTHING, *, refused: bool
) -> bool:
    """Return whether `retry_failed` would mark a matching document as pending."""
    return _is_any(connection, _failed(collection, refused), where)


def _is_any(connection: Connection, lacking: ColumnElement[bool], where: Filter) -> bool:
    """Return whether one of the documents matches; if SQL cannot tell, one of the first MAX_CHECKED."""
    condition = compile_filter(where)
    candidates = select(*DOCUMENT_COLUMNS).where(lacking, condition.sql)
    if condition.exact:
        return connection.execute(candidates.limit(1)).one_or_none() is not None
    rows = connection.execute(candidates.limit(MAX_CHECKED)).all()
    return any(matches(where, document_row(to_document(row))) for row in rows)


def retry_failed(connection: Connection, collection: CollectionId, *, refused: bool) -> int:
    """Mark failed documents as pending; without `refused` not those whose text was refused.

    The others failed because of an answer or of the service. Returns their number.
    """
    row = update(documents).where(_failed(collection, refused))
    return connection.execute(row.values(status="pending", error=None)).rowcount


def pending_collections(connection: Connection) -> Set[CollectionId]:
    """Return the collections with a document whose chunks may lack a vector."""
    lacking = exists().where(documents.c.collection == collections.c.id, PENDING)
    return set(connection.execute(select(collections.c.id).where(lacking)).scalars())


def _failed(collection: CollectionId, refused: bool) -> ColumnElement[bool]:
    by_text = or_(*(documents.c.error.like(f"%: HTTP {status}%") for status in TEXT_STATUSES))
    return and_(
        documents.c.collection == collection,
        documents.c.last_chunk.is_not(None),
        documents.c.embedded_in.is_(None),
        _ERROR,
        true() if refused else or_(documents.c.error.is_(None), ~by_text),
    )


def switch_space(connection: Connection, collection: CollectionId, space: EmbeddingSpace) -> int:
    """Activate the embedding model, and delete the vectors of all others.

    This changes no chunk: an index of the new model has followed the new vectors as they were stored.
    """
    state(connection, collection)
    in_collection = documents.c.collection == collection
    row = update(collections).where(collections.c.id == collection)
    connection.execute(row.values(**space_values(space)))
    of_collection = (
        select(chunks.c.id).join(documents, documents.c.number == chunks.c.document).where(in_collection)
    )
    foreign = and_(vectors.c.space != space.name, vectors.c.chunk.in_(of_collection))
    gone = connection.execute(delete(vectors).where(foreign)).rowcount
    complete = ~_misses_vectors(space)
    connection.execute(
        update(documents).where(in_collection).values(embedded_in=case((complete, space.name)))
    )
    status = case((complete, "embedded"), else_="pending")
    connection.execute(update(documents).where(in_collection, ~_ERROR).values(status=status))
    return gone


def _lacking(connection: Connection, collection: CollectionId, *, space: EmbeddingSpace) -> Select[()]:
    """Return a query without columns over documents that are known to be incomplete."""
    answering = state(connection, collection)[1]
    candidates = select().select_from(documents.join(chunks, chunks.c.document == documents.c.number))
    if answering == space:
        candidates = candidates.where(PENDING)
    else:
        elsewhere = or_(documents.c.embedded_in.is_(None), documents.c.embedded_in != space.name)
        candidates = candidates.where(elsewhere, ~_ERROR)
    has_vector = exists().where(vectors.c.chunk == chunks.c.id, vectors.c.space == space.name)
    return candidates.where(
        documents.c.collection == collection, documents.c.last_chunk.is_not(None), ~has_vector
    )


def _misses_vectors(space: EmbeddingSpace) -> ColumnElement[bool]:
    """Return whether a document has a chunk without a vector of the model."""
    has_vector = exists().where(vectors.c.chunk == chunks.c.id, vectors.c.space == space.name)
    return exists().where(chunks.c.document == documents.c.number).where(~has_vector)


def _mark_complete(connection: Connection, *, space: EmbeddingSpace, numbers: Iterable[int]) -> None:
    answers = (
        exists()
        .where(collections.c.id == documents.c.collection)
        .where(
            collections.c.model == space.model,
            collections.c.dimensions == space.dimensions,
            collections.c.version == space.version,
        )
    )
    marked = update(documents).where(documents.c.number.in_(IDS), ~_misses_vectors(space))
    marked = marked.values(
        embedded_in=space.name,
        status=case((answers, "embedded"), else_=documents.c.status),
        error=case((answers, None), else_=documents.c.error),
    )
    execute_in_blocks(connection, marked, sorted(numbers))
