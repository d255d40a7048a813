"""Retention rules, and the memories and empty sources that they delete."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, exists, insert, select, update

from conspectus.model.ids import CollectionId, DocumentId, SourceId, UserId
from conspectus.model.memory import Retention
from conspectus.ports.memories import StoredRetention
from conspectus.records.core.collections import state
from conspectus.records.core.rows import to_moment
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks
from conspectus.records.memories.conditions import BY_TIME, IS_PINNED, IS_TURN
from conspectus.records.tables.core import REMEMBERED, documents, grants, retentions, sources
from conspectus.records.tables.graph import nodes
from conspectus.text.times import to_microseconds


def oldest_memories(
    connection: Connection,
    source: SourceId,
    *,
    before: datetime | None,
    beyond: int | None,
    pinned: bool,
    limit: int,
) -> list[DocumentId]:
    free = [] if pinned else [IS_TURN, ~IS_PINNED]
    query = select(documents.c.id, documents.c.order_start, documents.c.number).where(
        documents.c.source == source, REMEMBERED, *free
    )
    newest = query.order_by(*(column.desc() for column in BY_TIME))
    ids_by_position: dict[tuple[int, int], str] = {}
    if beyond is not None:
        rest = connection.execute(newest.offset(beyond)).all()
        ids_by_position |= {(row.order_start, row.number): row.id for row in rest}
    if before is not None:
        old = query.where(documents.c.order_start < to_microseconds(before))
        ids_by_position |= {(row.order_start, row.number): row.id for row in connection.execute(old)}
    return [DocumentId(ids_by_position[position]) for position in sorted(ids_by_position)[:limit]]


def put_retention(connection: Connection, rule: StoredRetention) -> None:
    values = {
        "collection": rule.collection,
        "begins": rule.begins,
        "days": rule.retention.days,
        "max_count": rule.retention.max_count,
        "owner": rule.owner,
    }
    same = update(retentions).where(retentions.c.id == rule.id)
    if connection.execute(same.values(values)).rowcount == 0:
        state(connection, rule.collection)
        connection.execute(insert(retentions), {"id": rule.id, **values})


def drop_retention(connection: Connection, id: str) -> bool:
    return bool(connection.execute(delete(retentions).where(retentions.c.id == id)).rowcount)


def list_retentions(connection: Connection, collection: CollectionId | None = None) -> list[StoredRetention]:
    query = select(retentions)
    if collection is not None:
        query = query.where(retentions.c.collection == collection)
    rows = connection.execute(query.order_by(retentions.c.begins, retentions.c.id))
    return [
        StoredRetention(
            row.id,
            CollectionId(row.collection),
            row.begins,
            Retention(row.days, row.max_count),
            UserId(row.owner),
            to_moment(row.ran),
        )
        for row in rows
    ]


def set_last_run(connection: Connection, id: str, at: datetime) -> None:
    connection.execute(update(retentions).where(retentions.c.id == id).values(ran=to_microseconds(at)))


_IS_GRANTED = exists().where(grants.c.source == sources.c.id)
_HAS_DOCUMENTS = exists().where(documents.c.source == sources.c.id)
_HAS_NODES = exists().where(nodes.c.graph == sources.c.id)
_EMPTY_SOURCES = select(sources.c.id).where(sources.c.id.in_(IDS), ~_HAS_DOCUMENTS, ~_HAS_NODES, ~_IS_GRANTED)
_DELETE_SOURCES = delete(sources).where(sources.c.id.in_(IDS))


def delete_empty_sources(connection: Connection, emptied: Sequence[SourceId]) -> list[SourceId]:
    empty = [SourceId(row.id) for row in fetch_in_blocks(connection, _EMPTY_SOURCES, emptied)]
    execute_in_blocks(connection, _DELETE_SOURCES, empty)
    return empty
