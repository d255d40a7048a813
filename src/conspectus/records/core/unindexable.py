"""Chunks whose text cannot be analyzed."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, func, select, update

from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexedChunk
from conspectus.records.core.changes import ChangeRange, append
from conspectus.records.core.collections import state
from conspectus.records.core.reads import documents_by_number
from conspectus.records.core.rows import CHUNK_COLUMNS, to_indexed
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_scalar
from conspectus.records.tables.core import chunks, documents

_OWN = documents.c.collection == bindparam("of")
_MARKED = (
    select(*CHUNK_COLUMNS)
    .join(documents, documents.c.number == chunks.c.document)
    .where(_OWN, documents.c.unindexable.is_not(None), chunks.c.unindexable.is_not(None))
)
_COUNT = select(func.count()).select_from(_MARKED.subquery())
_OWNERS = (
    select(chunks.c.id, chunks.c.document)
    .join(documents, documents.c.number == chunks.c.document)
    .where(_OWN, chunks.c.id.in_(IDS))
)
_MARK_CHUNK = update(chunks).where(chunks.c.id == bindparam("at")).values(unindexable=bindparam("why"))
_FIRST_REASON = (
    select(func.min(chunks.c.unindexable)).where(chunks.c.document == documents.c.number).scalar_subquery()
)
_MARK_DOCUMENT = (
    update(documents).where(documents.c.number == bindparam("at")).values(unindexable=_FIRST_REASON)
)


def unindexable(connection: Connection, collection: CollectionId, *, limit: int) -> list[IndexedChunk]:
    """Return the first chunks of a collection whose text cannot be analyzed."""
    ordered = _MARKED.order_by(chunks.c.id).limit(bindparam("maximum"))
    rows = [(*row, None) for row in connection.execute(ordered, {"of": collection, "maximum": limit})]
    return to_indexed(rows, documents_by_number(connection, {row[1] for row in rows}))


def count_unindexable(connection: Connection, collection: CollectionId) -> int:
    """Return the number of chunks whose text cannot be analyzed."""
    total: int = fetch_scalar(connection, _COUNT, {"of": collection})
    return total


def mark_unindexable(
    connection: Connection, collection: CollectionId, reasons: Mapping[ChunkId, str | None]
) -> None:
    """Store why chunks cannot be analyzed, None for those that can; indexes read them again."""
    state(connection, collection)
    owners = list(fetch_in_blocks(connection, _OWNERS, sorted(reasons), of=collection))
    if not owners:
        return
    connection.execute(_MARK_CHUNK, [{"at": row.id, "why": reasons[row.id]} for row in owners])
    connection.execute(
        _MARK_DOCUMENT, [{"at": number} for number in sorted({row.document for row in owners})]
    )
    append(connection, [ChangeRange(collection, "put", row.id, row.id) for row in owners])
