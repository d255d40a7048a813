"""Reads of chunks with their documents, vectors and neighbors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    literal_column,
    null,
    select,
    tuple_,
)

from conspectus.errors import InvalidInput, NotFound, RecordsDamaged
from conspectus.model.ids import ChunkId, CollectionId, DocumentId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Document, EmbeddingSpace, StoredChunk
from conspectus.records.core.dialects import list_table
from conspectus.records.core.reads import documents_by_id, documents_by_number
from conspectus.records.core.rows import (
    CHUNK_COLUMNS,
    CHUNK_DOCUMENT,
    CHUNK_WIDTH,
    DOCUMENT_COLUMNS,
    MAX_INT64,
    to_chunk,
    to_document,
    to_indexed,
)
from conspectus.records.core.statements import IDS, blocks, fetch_rows
from conspectus.records.tables.core import chunks, documents, vectors
from conspectus.text.hashing import content_hash

SCAN_ROWS = 2_000

_OTHER = documents.alias("other")
# SQLite compares two columns by the first field of the index only, but a column and an expression by all.
_POSITION = tuple_(documents.c.order_sequence + 0, documents.c.order_start + 0, documents.c.number + 0)
_OTHER_POSITION = tuple_(_OTHER.c.order_sequence, _OTHER.c.order_start, _OTHER.c.number)


def _select_indexed(*, with_vectors: bool) -> Select[*tuple[Any, ...]]:
    """Return a query of chunks of a collection with their vectors of a model, or with NULL."""
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    query = select(*CHUNK_COLUMNS, null()).select_from(joined)
    if with_vectors:
        is_of_chunk = and_(vectors.c.chunk == chunks.c.id, vectors.c.space == bindparam("space"))
        query = select(*CHUNK_COLUMNS, vectors.c.vector).select_from(joined.outerjoin(vectors, is_of_chunk))
    return query.where(documents.c.collection == bindparam("of"))


def _select_neighbor(
    condition: ColumnElement[Any], beyond: ColumnElement[bool], *, back: bool
) -> ScalarSelect[Any]:
    """Return the end of the next document of the same thread in one direction, by one index lookup."""
    position = (_OTHER.c.order_sequence, _OTHER.c.order_start, _OTHER.c.number)
    neighbor = select(condition).where(
        _OTHER.c.source == documents.c.source,
        _OTHER.c.thread == documents.c.thread,
        _OTHER.c.chunks > literal_column("0"),
        beyond,
    )
    ordered = neighbor.order_by(*(column.desc() if back else column for column in position))
    return ordered.limit(1).correlate(documents).scalar_subquery()


# PostgreSQL would join all documents of the collection to a few chunks; it runs a subquery for each chunk.
_COLLECTION_OF_CHUNK = select(documents.c.collection).where(documents.c.number == chunks.c.document)
_IN_COLLECTION = _COLLECTION_OF_CHUNK.scalar_subquery() == bindparam("of")
_VECTOR = (
    select(vectors.c.vector)
    .where(vectors.c.chunk == chunks.c.id, vectors.c.space == bindparam("space"))
    .scalar_subquery()
)
_IN_RANGE_BY_VECTORS = {
    with_vectors: select(*CHUNK_COLUMNS, _VECTOR if with_vectors else null())
    .where(chunks.c.id >= bindparam("first"), chunks.c.id <= bindparam("last"), _IN_COLLECTION)
    .order_by(chunks.c.id)
    for with_vectors in (False, True)
}
_SCAN_BY_VECTORS = {
    with_vectors: _select_indexed(with_vectors=with_vectors)
    .where(documents.c.last_chunk > bindparam("after"), chunks.c.id > bindparam("after"))
    .order_by(documents.c.last_chunk, chunks.c.position)
    .limit(SCAN_ROWS)
    for with_vectors in (False, True)
}


_BEFORE = _select_neighbor(_OTHER.c.last_chunk, _OTHER_POSITION < _POSITION, back=True)
_AFTER = _select_neighbor(_OTHER.c.last_chunk - _OTHER.c.chunks + 1, _OTHER_POSITION > _POSITION, back=False)
_THREADED = documents.c.thread.is_not(None)

WITH_NEIGHBORS = select(
    *CHUNK_COLUMNS,
    *DOCUMENT_COLUMNS,
    documents.c.last_chunk,
    case((and_(_THREADED, chunks.c.position == 0), _BEFORE), else_=None),
    case((and_(_THREADED, chunks.c.id == documents.c.last_chunk), _AFTER), else_=None),
).join(documents, documents.c.number == chunks.c.document)
_BY_CHUNK = WITH_NEIGHBORS.where(chunks.c.id.in_(IDS))
_BY_LISTED_CHUNK = WITH_NEIGHBORS.where(chunks.c.id.in_(select(list_table("ids").c.value)))
_OF_DOCUMENT = WITH_NEIGHBORS.where(documents.c.id == bindparam("of")).order_by(chunks.c.position)


def document_chunks(connection: Connection, document: DocumentId) -> list[StoredChunk]:
    """Return a document's chunks by position. Raises NotFound."""
    rows = fetch_rows(connection, _OF_DOCUMENT, {"of": document})
    if not rows and not documents_by_id(connection, [document]):
        raise NotFound("document", document)
    return stored_chunks(rows)


def chunks_by_id(connection: Connection, ids: Sequence[int]) -> dict[int, StoredChunk]:
    stored_by_id: dict[int, StoredChunk] = {}
    for block in blocks(ids):
        rows: Sequence[Sequence[Any]]
        if connection.dialect.name == "sqlite":
            if max(block) > MAX_INT64:
                raise InvalidInput("number", "does not fit into 64 bits")
            rows = fetch_rows(connection, _BY_LISTED_CHUNK, {"ids": json.dumps(block)})
        else:
            rows = connection.execute(_BY_CHUNK, {"ids": block}).all()
        stored_by_id.update((stored.chunk.id, stored) for stored in stored_chunks(rows))
    return stored_by_id


def chunks_between(
    connection: Connection, collection: CollectionId, *, space: EmbeddingSpace | None, first: int, last: int
) -> list[IndexedChunk]:
    """Return a collection's chunks with first ≤ id ≤ last, by id, with their vectors of the model."""
    parameters = {"of": collection, "first": first, "last": last}
    return _read_indexed_chunks(connection, _IN_RANGE_BY_VECTORS[space is not None], space, parameters)


def scan(
    connection: Connection, collection: CollectionId, *, space: EmbeddingSpace | None, after: int
) -> list[IndexedChunk]:
    """Return the next batch of a collection's chunks by id, read in the order of its documents."""
    return _read_indexed_chunks(
        connection, _SCAN_BY_VECTORS[space is not None], space, {"of": collection, "after": after}
    )


def stored_chunks(rows: Sequence[Sequence[Any]]) -> list[StoredChunk]:
    """Return rows of CHUNK_COLUMNS, DOCUMENT_COLUMNS, the document's last chunk and thread neighbors.

    Raises RecordsDamaged for a text with a wrong checksum.
    """
    stored_documents: dict[int, Document] = {}
    stored = []
    for row in rows:
        document = stored_documents.get(row[CHUNK_DOCUMENT])
        if document is None:
            document = stored_documents[row[CHUNK_DOCUMENT]] = to_document(row[CHUNK_WIDTH:-3])
        last, before_first, after_last = row[-3:]
        chunk = to_chunk(row, document.id)
        if content_hash(chunk.text) != chunk.content_hash:
            raise RecordsDamaged(f"chunk {chunk.id}: its text does not match its checksum")
        previous = ChunkId(chunk.id - 1) if chunk.position > 0 else before_first
        following = ChunkId(chunk.id + 1) if chunk.id < last else after_last
        stored.append(StoredChunk(chunk, document, previous, following))
    return stored


def _read_indexed_chunks(
    connection: Connection,
    query: Select[*tuple[Any, ...]],
    space: EmbeddingSpace | None,
    parameters: Mapping[str, Any],
) -> list[IndexedChunk]:
    rows = connection.execute(
        query, parameters if space is None else {**parameters, "space": space.name}
    ).all()
    return to_indexed(rows, documents_by_number(connection, {row[CHUNK_DOCUMENT] for row in rows}))
