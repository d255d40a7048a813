"""Collections and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import BindParameter, Connection, Table, bindparam, insert, or_, select, update

from conspectus.errors import Conflict, NotFound
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Collection, EmbeddingSpace, Metadata, Source
from conspectus.records.core.dialects import as_list, given
from conspectus.records.core.rows import (
    COLLECTION_COLUMNS,
    SOURCE_COLUMNS,
    collection_values,
    to_collection,
    to_json,
    to_source,
    to_space,
)
from conspectus.records.core.statements import plain_rows
from conspectus.records.tables.core import collections, sources
from conspectus.text.times import to_microseconds

_IS_NAMED = collections.c.name == bindparam("called")
_BY_NAME = (
    select(*COLLECTION_COLUMNS)
    .where(or_(_IS_NAMED, collections.c.id == bindparam("called")))
    .order_by(_IS_NAMED.desc())
    .limit(1)
)
_STATE = select(
    collections.c.sequence,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
).where(collections.c.id == bindparam("wanted"))
_SOURCES = select(*SOURCE_COLUMNS)
_ALL_SOURCES = _SOURCES.where(sources.c.collection == bindparam("of")).order_by(sources.c.name)
_CALLED = _SOURCES.where(
    sources.c.collection == bindparam("of"), sources.c.name.in_(given("called"))
).union_all(
    _SOURCES.where(sources.c.collection.concat("") == bindparam("of"), sources.c.id.in_(given("called")))
)
"""With many collections, the latter form avoids an index lookup per collection."""

_NAMES: tuple[BindParameter[str], ...] = (bindparam("first"), bindparam("last"))
_BY_ID = sources.alias("by_id")
_WITH_SOURCES = (
    select(*COLLECTION_COLUMNS, *SOURCE_COLUMNS, *(_BY_ID.c[column.name] for column in SOURCE_COLUMNS))
    .outerjoin(sources, (sources.c.collection == collections.c.id) & (sources.c.name == bindparam("called")))
    .outerjoin(_BY_ID, (_BY_ID.c.collection == collections.c.id) & (_BY_ID.c.id == bindparam("called")))
    .where(or_(collections.c.name.in_(_NAMES), collections.c.id.in_(_NAMES)))
)


def create_collection(connection: Connection, collection: Collection) -> Collection:
    row = connection.execute(_BY_NAME, {"called": collection.name}).one_or_none()
    if row is not None:
        return to_collection(row)
    connection.execute(insert(collections), collection_values(collection))
    return collection


def find_collection(connection: Connection, name: str) -> Collection | None:
    rows = plain_rows(connection, _BY_NAME, {"called": name})
    return to_collection(rows[0]) if rows else None


def change_collection(
    connection: Connection,
    collection: CollectionId,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Collection:
    state(connection, collection)
    _require_free(connection, collections, collection, name)
    _change(connection, collections, collection, {"name": name, "description": description})
    row = connection.execute(select(*COLLECTION_COLUMNS).where(collections.c.id == collection)).one()
    return to_collection(row)


def change_source(
    connection: Connection, source: SourceId, *, name: str | None = None, metadata: Metadata | None = None
) -> Source:
    stored = None if metadata is None else to_json(metadata)
    _require_free(connection, sources, source, name)
    _change(connection, sources, source, {"name": name, "metadata": stored})
    row = connection.execute(select(*SOURCE_COLUMNS).where(sources.c.id == source)).one_or_none()
    if row is None:
        raise NotFound("source", source)
    return to_source(row)


def _change(connection: Connection, table: Table, row: str, changes: Mapping[str, str | None]) -> None:
    values = {name: value for name, value in changes.items() if value is not None}
    if values:
        connection.execute(update(table).where(table.c.id == row).values(values))


def _require_free(connection: Connection, table: Table, row: str, name: str | None) -> None:
    """Raise Conflict if another collection, or another source of the same one, has the name."""
    if name is None:
        return
    taken = select(table.c.id).where(table.c.name == name, table.c.id != row)
    if table is sources:
        own_collection = select(sources.c.collection).where(sources.c.id == row).scalar_subquery()
        taken = taken.where(sources.c.collection == own_collection)
    if connection.execute(taken).first() is not None:
        raise Conflict(table.name.removesuffix("s"), name, "exists already")


def all_collections(connection: Connection) -> list[Collection]:
    rows = connection.execute(select(*COLLECTION_COLUMNS).order_by(collections.c.name))
    return [to_collection(row) for row in rows]


def state(
    connection: Connection, collection: CollectionId, created: datetime | None = None
) -> tuple[int, EmbeddingSpace | None]:
    """Return the sequence of the newest change, and the active embedding model.

    Raises NotFound, also for a collection of the name that was created at another time.
    """
    row = connection.execute(_STATE, {"wanted": collection}).one_or_none()
    if row is None or (created is not None and row.created != to_microseconds(created)):
        raise NotFound("collection", collection)
    return row.sequence, to_space(row.model, row.dimensions, row.version)


def put_source(connection: Connection, source: Source) -> Source:
    state(connection, source.collection)
    same = (sources.c.collection == source.collection, sources.c.name == source.name)
    metadata = to_json(source.metadata)
    row = connection.execute(select(sources.c.id, sources.c.kind).where(*same)).one_or_none()
    if row is not None:
        connection.execute(update(sources).where(*same).values(metadata=metadata))
        return replace(source, id=row.id, kind=row.kind)
    values = {"id": source.id, "collection": source.collection, "name": source.name, "kind": source.kind}
    connection.execute(insert(sources), {**values, "metadata": metadata})
    return source


def sources_of(
    connection: Connection, collection: CollectionId, *, called: Sequence[str] | None = None
) -> Sequence[Source]:
    """Return the sources of a collection by name: all, or those of some ids or names. Raises NotFound."""
    if called is None:
        rows = plain_rows(connection, _ALL_SOURCES, {"of": collection})
    else:
        rows = plain_rows(connection, _CALLED, {"of": collection, "called": as_list(called)})
    if not rows:
        state(connection, collection)
    found = {each.id: each for each in map(to_source, rows)}
    return sorted(found.values(), key=lambda each: each.name)


def find_with_sources(
    connection: Connection, names: Sequence[str], called: str
) -> list[tuple[Collection, list[Source]]]:
    """Return the collections of one or two names or ids, each with its sources of one name or id."""
    rows = plain_rows(connection, _WITH_SOURCES, {"first": names[0], "last": names[-1], "called": called})
    first, second = len(COLLECTION_COLUMNS), len(COLLECTION_COLUMNS) + len(SOURCE_COLUMNS)
    found = []
    for row in rows:
        own = {each[0]: to_source(each) for each in (row[first:second], row[second:]) if each[0] is not None}
        found.append((to_collection(row[:first]), list(own.values())))
    return found
