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
MAX_COMPARED_DOCUMENTS = 1_000
"""Documents without vectors that are compared with a filter that SQL cannot decide."""

_OWNERS = (
    select(chunks.c.id, chunks.c.document, documents.c.collection)
    .join(documents, documents.c.number == chunks.c.document)
    .where(chunks.c.id.in_(IDS))
    .order_by(chunks.c.id)
)
_IN_SPACE = (vectors.c.space == bindparam("space_name"), vectors.c.chunk.in_(IDS))
_IS_FAILED = documents.c.status == "error"


def list_unembedded(
    connection: Connection,
    collection: CollectionId,
    space: EmbeddingSpace,
    *,
    limit: int,
    among: range | None = None,
) -> list[IndexedChunk]:
    query = _select_incomplete(connection, collection, space=space).add_columns(*CHUNK_COLUMNS, null())
    if among is not None:
        query = query.where(documents.c.last_chunk >= among.start, documents.c.last_chunk < among.stop)
    ordered = query.order_by(documents.c.last_chunk, chunks.c.position).limit(limit)
    rows = connection.execute(ordered).all()
    return to_indexed(rows, documents_by_number(connection, {row[1] for row in rows}))


def oldest_unembedded(
    connection: Connection, collection: CollectionId, space: EmbeddingSpace, *, start: int
) -> ChunkId | None:
    """Return the last chunk of the oldest document that `list_unembedded` returns, from `start` on."""
    query = _select_incomplete(connection, collection, space=space).add_columns(documents.c.last_chunk)
    ordered = query.where(documents.c.last_chunk >= start).order_by(documents.c.last_chunk).limit(1)
    chunk: ChunkId | None = connection.execute(ordered).scalar()
    return chunk


def count_unembedded(connection: Connection, collection: CollectionId, space: EmbeddingSpace) -> int:
    """Return how many chunks `list_unembedded` would return without a limit."""
    counted = _select_incomplete(connection, collection, space=space).add_columns(func.count())
    total: int = connection.execute(counted).scalar_one()
    return total


def put_vectors(
    connection: Connection,
    collection: CollectionId,
    space: EmbeddingSpace,
    new_vectors: Sequence[tuple[ChunkId, bytes]],
) -> int:
    """Store vectors of existing chunks, and mark documents that have all of theirs.

    A stored vector is kept: the client may have sent it while the new one was computed.
    """
    vectors_by_chunk = dict(new_vectors)
    if any(len(vector) != BYTES_PER_NUMBER * space.dimensions for vector in vectors_by_chunk.values()):
        raise InvalidInput("vectors", f"must have {space.dimensions} float16 numbers each")
    owners = list(fetch_in_blocks(connection, _OWNERS, sorted(vectors_by_chunk)))
    stored = select(vectors.c.chunk).where(*_IN_SPACE)
    stored_rows = fetch_in_blocks(connection, stored, [row.id for row in owners], space_name=space.name)
    embedded_chunks = {row.chunk for row in stored_rows}
    owners = [row for row in owners if row.id not in embedded_chunks and row.collection == collection]
    if owners:
        rows = [{"chunk": row.id, "space": space.name, "vector": vectors_by_chunk[row.id]} for row in owners]
        insert_rows(connection, vectors, rows)
    _mark_complete(connection, space=space, numbers={row.document for row in owners})
    append(connection, [ChangeRange(row.collection, "put", row.id, row.id, space.name) for row in owners])
    return len(owners)


@dataclass(frozen=True, slots=True)
class ClientVector:
    """A vector that the client sent with a document, for all of its chunks."""

    first: int
    last: int
    space: str
    vector: bytes


def store_vectors_with_chunks(connection: Connection, client_vectors: Sequence[ClientVector]) -> None:
    """Store vectors from clients for chunks of the same transaction, replacing stored ones."""
    rows = [
        {"chunk": chunk, "space": client_vector.space, "vector": client_vector.vector}
        for client_vector in client_vectors
        for chunk in range(client_vector.first, client_vector.last + 1)
    ]
    for space in sorted({client_vector.space for client_vector in client_vectors}):
        written = [row["chunk"] for row in rows if row["space"] == space]
        execute_in_blocks(connection, delete(vectors).where(*_IN_SPACE), written, space_name=space)
    insert_rows(connection, vectors, rows)


def check_vector(vector: bytes, space: EmbeddingSpace | None) -> None:
    """Raise InvalidInput unless a vector from a client fits the embedding model."""
    if space is None:
        raise InvalidInput("vector", "the collection has no vectors; create one with an embedder")
    size = len(vector) // BYTES_PER_NUMBER
    if size != space.dimensions:
        raise InvalidInput(
            "vector", f"has {size} numbers, but those of the collection have {space.dimensions}"
        )


def fail(connection: Connection, document: DocumentId, error: str) -> None:
    """Mark a document as failed to embed, unless it was deleted meanwhile."""
    row = update(documents).where(documents.c.id == document)
    connection.execute(row.values(status="error", error=error))


def has_pending(connection: Connection, collection: CollectionId, where: Filter = EVERYTHING) -> bool:
    """Return whether a matching document has chunks that may lack a vector."""
    return _matches_any(connection, and_(documents.c.collection == collection, PENDING), where)


def has_failed(
    connection: Connection, collection: CollectionId, where: Filter = EVERYTHING, *, refused: bool
) -> bool:
    """Return whether `retry_failed` would mark a matching document as pending."""
    return _matches_any(connection, _has_failed(collection, refused), where)


def _matches_any(connection: Connection, lacking: ColumnElement[bool], where: Filter) -> bool:
    """Return whether one of the documents matches; of those that SQL cannot compare, only the first count."""
    condition = compile_filter(where)
    candidates = select(*DOCUMENT_COLUMNS).where(lacking, condition.sql)
    if condition.exact:
        return connection.execute(candidates.limit(1)).one_or_none() is not None
    rows = connection.execute(candidates.limit(MAX_COMPARED_DOCUMENTS)).all()
    return any(matches(where, document_row(to_document(row))) for row in rows)


def retry_failed(connection: Connection, collection: CollectionId, *, refused: bool) -> int:
    """Mark failed documents as pending, and return their number.

    Those whose text the service refused are only marked with `refused`: they would fail again.
    """
    failed = update(documents).where(_has_failed(collection, refused))
    return connection.execute(failed.values(status="pending", error=None)).rowcount


def list_pending_collections(connection: Connection) -> Set[CollectionId]:
    """Return the collections with a document whose chunks may lack a vector."""
    lacking = exists().where(documents.c.collection == collections.c.id, PENDING)
    return set(connection.execute(select(collections.c.id).where(lacking)).scalars())


def _has_failed(collection: CollectionId, refused: bool) -> ColumnElement[bool]:
    """Return the condition that a document failed to embed; without `refused`, not because of its text."""
    is_refused = or_(*(documents.c.error.like(f"%: HTTP {status}%") for status in TEXT_STATUSES))
    return and_(
        documents.c.collection == collection,
        documents.c.last_chunk.is_not(None),
        documents.c.embedded_in.is_(None),
        _IS_FAILED,
        true() if refused else or_(documents.c.error.is_(None), ~is_refused),
    )


def switch_space(connection: Connection, collection: CollectionId, space: EmbeddingSpace) -> int:
    """Activate the embedding model, and delete the vectors of all others.

    This changes no chunk: an index of the new model has followed the new vectors as they were stored.
    """
    state(connection, collection)
    in_collection = documents.c.collection == collection
    collection_row = update(collections).where(collections.c.id == collection)
    connection.execute(collection_row.values(**space_values(space)))
    of_collection = (
        select(chunks.c.id).join(documents, documents.c.number == chunks.c.document).where(in_collection)
    )
    foreign = and_(vectors.c.space != space.name, vectors.c.chunk.in_(of_collection))
    deleted = connection.execute(delete(vectors).where(foreign)).rowcount
    complete = ~_lacks_vectors(space)
    connection.execute(
        update(documents).where(in_collection).values(embedded_in=case((complete, space.name)))
    )
    status = case((complete, "embedded"), else_="pending")
    connection.execute(update(documents).where(in_collection, ~_IS_FAILED).values(status=status))
    return deleted


def _select_incomplete(
    connection: Connection, collection: CollectionId, *, space: EmbeddingSpace
) -> Select[()]:
    """Return a query without columns over documents that are known to be incomplete."""
    _, active_space = state(connection, collection)
    candidates = select().select_from(documents.join(chunks, chunks.c.document == documents.c.number))
    if active_space == space:
        candidates = candidates.where(PENDING)
    else:
        is_in_other_space = or_(documents.c.embedded_in.is_(None), documents.c.embedded_in != space.name)
        candidates = candidates.where(is_in_other_space, ~_IS_FAILED)
    return candidates.where(
        documents.c.collection == collection, documents.c.last_chunk.is_not(None), ~_has_vector(space)
    )


def _lacks_vectors(space: EmbeddingSpace) -> ColumnElement[bool]:
    """Return the condition that a document has a chunk without a vector of the model."""
    return exists().where(chunks.c.document == documents.c.number).where(~_has_vector(space))


def _has_vector(space: EmbeddingSpace) -> ColumnElement[bool]:
    """Return the condition that a chunk has a vector of the model."""
    return exists().where(vectors.c.chunk == chunks.c.id, vectors.c.space == space.name)


def _mark_complete(connection: Connection, *, space: EmbeddingSpace, numbers: Iterable[int]) -> None:
    """Mark documents as embedded that have all vectors; the status follows for the active model only."""
    is_active = (
        exists()
        .where(collections.c.id == documents.c.collection)
        .where(
            collections.c.model == space.model,
            collections.c.dimensions == space.dimensions,
            collections.c.version == space.version,
        )
    )
    marked = update(documents).where(documents.c.number.in_(IDS), ~_lacks_vectors(space))
    marked = marked.values(
        embedded_in=space.name,
        status=case((is_active, "embedded"), else_=documents.c.status),
        error=case((is_active, None), else_=documents.c.error),
    )
    execute_in_blocks(connection, marked, sorted(numbers))
