"""Deletion of documents, sources and collections, and unfinished purges."""

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select

from conspectus.errors import NotFound
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Receipt
from conspectus.records.answers import forget_answers, forget_answers_of_collection
from conspectus.records.core.changes import ChangeRange, append
from conspectus.records.core.collections import renew_viewers_version, state
from conspectus.records.core.outdated_summaries import forget_summaries
from conspectus.records.core.statements import IDS, blocks, execute_in_blocks, fetch_in_blocks
from conspectus.records.experiments import forget_questions
from conspectus.records.graph.deletion import forget_edges
from conspectus.records.tables.core import (
    QUARANTINED,
    REMEMBERED,
    Number,
    chunks,
    collections,
    counters,
    deleted_memories,
    documents,
    remote_members,
    remote_people,
    sources,
    vectors,
)
from conspectus.records.tables.jobs import connections, purges
from conspectus.text.times import to_microseconds

_DELETED = select(documents.c.id).where(documents.c.id.in_(IDS))
_TREE = _DELETED.cte("tree", recursive=True)
_WITH_DESCENDANTS = _TREE.union(select(documents.c.id).join(_TREE, documents.c.parent == _TREE.c.id))
_EXTRACTED = (
    select(documents.c.id)
    .where(documents.c.parent.in_(IDS), or_(REMEMBERED, QUARANTINED))
    .order_by(documents.c.id)
)
_ROWS_TO_DELETE = (
    select(documents.c.number, documents.c.collection, documents.c.chunks, documents.c.last_chunk)
    .where(documents.c.id.in_(select(_WITH_DESCENDANTS.c.id)))
    .order_by(documents.c.last_chunk)
)
_COUNT_VECTORS = (
    select(func.count())
    .select_from(chunks.join(vectors, vectors.c.chunk == chunks.c.id))
    .where(chunks.c.document.in_(IDS))
)
_REMEMBERED = select(
    documents.c.id, documents.c.source, documents.c.recorded, bindparam("at", type_=Number)
).where(documents.c.number.in_(IDS), REMEMBERED)
"""Memories with the time of their deletion."""
_INSERT_TOMBSTONES = insert(deleted_memories).from_select(
    ["document", "source", "recorded", "deleted"], _REMEMBERED
)
_DELETE_TOMBSTONES = delete(deleted_memories).where(
    deleted_memories.c.document.in_(_REMEMBERED.with_only_columns(documents.c.id))
)
_DELETE_DOCUMENTS = delete(documents).where(documents.c.number.in_(IDS))


def delete_documents(
    connection: Connection, ids: Sequence[DocumentId], *, now: datetime | None = None
) -> Receipt:
    """Delete documents with children, chunks and vectors. Unknown ids count 0."""
    receipt, steps = _delete(connection, ids, now)
    append(connection, steps)
    return receipt


def delete_extracted(connection: Connection, memories: Sequence[DocumentId]) -> list[ChangeRange]:
    """Delete the facts that were extracted from memories. Returns the changes, which the caller appends."""
    facts = [DocumentId(row.id) for row in fetch_in_blocks(connection, _EXTRACTED, memories)]
    return _delete(connection, facts)[1] if facts else []


def _delete(
    connection: Connection, ids: Sequence[DocumentId], now: datetime | None = None
) -> tuple[Receipt, list[ChangeRange]]:
    steps: list[ChangeRange] = []
    at = to_microseconds(now or datetime.now(UTC))
    receipt = Receipt()
    for block in blocks(ids):
        rows = connection.execute(_ROWS_TO_DELETE, {"ids": block}).all()
        numbers = [row.number for row in rows]
        for part in blocks(numbers):
            connection.execute(_DELETE_TOMBSTONES, {"ids": part})
            connection.execute(_INSERT_TOMBSTONES, {"ids": part, "at": at})
        for row in rows:
            if row.last_chunk is not None:
                first = row.last_chunk - row.chunks + 1
                steps.append(ChangeRange(row.collection, "remove", first, row.last_chunk))
        answers = forget_answers(connection, numbers)
        forget_questions(connection, numbers)
        chunks_deleted = sum(row.chunks for row in rows)
        vectors_deleted = _delete_rows(connection, numbers)
        receipt += Receipt(len(rows), chunks_deleted, vectors_deleted, answers=answers)
    return receipt, steps


def delete_source(connection: Connection, source: SourceId) -> Receipt:
    document_ids = connection.execute(select(documents.c.id).where(documents.c.source == source)).scalars()
    receipt = delete_documents(connection, list(document_ids))
    removed = delete(sources).where(sources.c.id == source).returning(sources.c.collection)
    collection = connection.execute(removed).scalar()
    if collection is None:
        raise NotFound("source", source)
    renew_viewers_version(connection, collections.c.id == collection, collections.c.mirrors != 0)
    return receipt


def delete_collection(connection: Connection, collection: CollectionId) -> Receipt:
    """Delete a collection with everything in it, including its history. Raises NotFound."""
    state(connection, collection)
    in_collection = documents.c.collection == collection
    totals = select(func.count(), func.coalesce(func.sum(documents.c.chunks), 0)).where(in_collection)
    number_of_documents, number_of_chunks = connection.execute(totals).one()
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    joined = joined.join(vectors, vectors.c.chunk == chunks.c.id)
    counted = select(func.count()).select_from(joined).where(in_collection)
    number_of_vectors = connection.execute(counted).scalar_one()
    remotes = select(connections.c.id).where(connections.c.collection == collection)
    for table in (remote_members, remote_people):
        connection.execute(delete(table).where(table.c.connection.in_(remotes)))
    answers = forget_answers_of_collection(connection, collection)
    connection.execute(delete(collections).where(collections.c.id == collection))
    connection.execute(delete(counters).where(counters.c.collection == collection))
    return Receipt(number_of_documents, number_of_chunks, number_of_vectors, answers=answers)


def _delete_rows(connection: Connection, numbers: Sequence[int]) -> int:
    """Delete documents with what was made of them; return the number of their vectors."""
    forget_summaries(connection, numbers)
    forget_edges(connection, numbers)
    vector_count: int = sum(row[0] for row in fetch_in_blocks(connection, _COUNT_VECTORS, numbers))
    execute_in_blocks(connection, _DELETE_DOCUMENTS, numbers)
    return vector_count


def begin_purge(connection: Connection, collection: CollectionId) -> None:
    connection.execute(insert(purges).values(id=uuid4().hex, collection=collection))


def list_unfinished_purges(connection: Connection) -> dict[str, CollectionId]:
    return {purge: CollectionId(collection) for purge, collection in connection.execute(select(purges))}


def end_purges(connection: Connection, done: Sequence[str]) -> None:
    """Delete the records of finished purges."""
    execute_in_blocks(connection, delete(purges).where(purges.c.id.in_(IDS)), done)
