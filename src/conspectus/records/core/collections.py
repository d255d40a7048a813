"""Collections and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from secrets import randbits
from typing import Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Table,
    bindparam,
    case,
    exists,
    insert,
    or_,
    select,
    update,
)

from conspectus.errors import Conflict, NotFound
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.records import Collection, EmbeddingSpace, Metadata, Source
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.rows import (
    COLLECTION_COLUMNS,
    SOURCE_COLUMNS,
    collection_values,
    to_collection,
    to_json,
    to_source,
    to_space,
)
from conspectus.records.core.statements import fetch_rows
from conspectus.records.tables.core import collections, sources
from conspectus.text.times import to_microseconds

_IS_NAMED = collections.c.name == bindparam("name")
_BY_NAME = (
    select(*COLLECTION_COLUMNS)
    .where(or_(_IS_NAMED, collections.c.id == bindparam("name")))
    .order_by(_IS_NAMED.desc())
    .limit(1)
)
_STATE = select(
    collections.c.sequence,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
).where(collections.c.id == bindparam("of"))
_VIEWERS_VERSION = select(collections.c.mirrors).where(collections.c.id == bindparam("of"))
VERSION_BITS: Final = 62
_SOURCES = select(*SOURCE_COLUMNS)
_ALL_SOURCES = _SOURCES.where(sources.c.collection == bindparam("of")).order_by(sources.c.name)
_SOURCES_BY_NAME = _SOURCES.where(
    sources.c.collection == bindparam("of"), sources.c.name.in_(json_list_param("names"))
).union_all(
    _SOURCES.where(
        sources.c.collection.concat("") == bindparam("of"), sources.c.id.in_(json_list_param("names"))
    )
)
"""With many collections, the latter form avoids an index lookup per collection."""

_FIRST_OR_LAST: tuple[BindParameter[str], ...] = (bindparam("first"), bindparam("last"))
_sources_by_id = sources.alias("by_id")
_WITH_SOURCES = (
    select(
        *COLLECTION_COLUMNS, *SOURCE_COLUMNS, *(_sources_by_id.c[column.name] for column in SOURCE_COLUMNS)
    )
    .outerjoin(sources, (sources.c.collection == collections.c.id) & (sources.c.name == bindparam("name")))
    .outerjoin(
        _sources_by_id,
        (_sources_by_id.c.collection == collections.c.id) & (_sources_by_id.c.id == bindparam("name")),
    )
    .where(or_(collections.c.name.in_(_FIRST_OR_LAST), collections.c.id.in_(_FIRST_OR_LAST)))
)


def create_collection(connection: Connection, collection: Collection) -> Collection:
    stored = find_collection(connection, collection.name)
    if stored is not None:
        return stored
    connection.execute(insert(collections), collection_values(collection))
    return collection


def find_collection(connection: Connection, name: str) -> Collection | None:
    rows = fetch_rows(connection, _BY_NAME, {"name": name})
    return to_collection(rows[0]) if rows else None


def change_collection(
    connection: Connection,
    collection: CollectionId,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Collection:
    state(connection, collection)
    _require_free_name(connection, collections, collection, name)
    _update_row(connection, collections, collection, {"name": name, "description": description})
    row = connection.execute(select(*COLLECTION_COLUMNS).where(collections.c.id == collection)).one()
    return to_collection(row)


def change_source(
    connection: Connection, source: SourceId, *, name: str | None = None, metadata: Metadata | None = None
) -> Source:
    stored = None if metadata is None else to_json(metadata)
    _require_free_name(connection, sources, source, name)
    _update_row(connection, sources, source, {"name": name, "metadata": stored})
    row = connection.execute(select(*SOURCE_COLUMNS).where(sources.c.id == source)).one_or_none()
    if row is None:
        raise NotFound("source", source)
    return to_source(row)


def _update_row(connection: Connection, table: Table, row: str, changes: Mapping[str, str | None]) -> None:
    values = {name: value for name, value in changes.items() if value is not None}
    if values:
        connection.execute(update(table).where(table.c.id == row).values(values))


def _require_free_name(connection: Connection, table: Table, row: str, name: str | None) -> None:
    """Raise Conflict if another collection, or another source of the same one, has the name."""
    if name is None:
        return
    same_name = select(table.c.id).where(table.c.name == name, table.c.id != row)
    if table is sources:
        same_collection = select(sources.c.collection).where(sources.c.id == row).scalar_subquery()
        same_name = same_name.where(sources.c.collection == same_collection)
    if connection.execute(same_name).first() is not None:
        raise Conflict(table.name.removesuffix("s"), name, "exists already")


def all_collections(connection: Connection) -> list[Collection]:
    rows = connection.execute(select(*COLLECTION_COLUMNS).order_by(collections.c.name))
    return [to_collection(row) for row in rows]


def state(
    connection: Connection, collection: CollectionId, created: datetime | None = None
) -> tuple[int, EmbeddingSpace | None]:
    """Return the sequence of the newest change, and the active embedding model.

    Raises NotFound if the collection does not exist, or was not `created` at that time.
    """
    for sequence, stored_at, *space in fetch_rows(connection, _STATE, {"of": collection}):
        if created is None or stored_at == to_microseconds(created):
            return sequence, to_space(*space)
    raise NotFound("collection", collection)


def viewers_version(connection: Connection, collection: CollectionId) -> int:
    """Return a number that changes with whatever says who reads mirrored sources; 0 if there are none."""
    rows = fetch_rows(connection, _VIEWERS_VERSION, {"of": collection})
    return int(rows[0][0]) if rows else 0


def renew_viewers_version(connection: Connection, *which: ColumnElement[bool]) -> None:
    """Give collections another version of who reads their mirrored sources; 0 to those that have none.

    It is a random one: a store that is restored from a backup never repeats one for another state.
    """
    mirrored = sources.c.collection == collections.c.id, sources.c.mirrored.is_not(None)
    version = case((exists().where(*mirrored), randbits(VERSION_BITS) + 1), else_=0)
    connection.execute(update(collections).where(*which).values(mirrors=version))


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
    renew_viewers_version(connection, collections.c.id == source.collection, collections.c.mirrors != 0)
    return source


def sources_of(
    connection: Connection, collection: CollectionId, *, names: Sequence[str] | None = None
) -> Sequence[Source]:
    """Return the sources of a collection by name: all, or those of some ids or names. Raises NotFound."""
    if names is None:
        rows = fetch_rows(connection, _ALL_SOURCES, {"of": collection})
    else:
        rows = fetch_rows(connection, _SOURCES_BY_NAME, {"of": collection, "names": json_list(names)})
    if not rows:
        state(connection, collection)
    by_id = {source.id: source for source in map(to_source, rows)}
    return sorted(by_id.values(), key=lambda source: source.name)


def find_with_sources(
    connection: Connection, names: Sequence[str], source: str
) -> list[tuple[Collection, list[Source]]]:
    """Return the collections of one or two names or ids, each with its sources of one name or id."""
    rows = fetch_rows(connection, _WITH_SOURCES, {"first": names[0], "last": names[-1], "name": source})
    collection_width = len(COLLECTION_COLUMNS)
    by_name_end = collection_width + len(SOURCE_COLUMNS)
    matches = []
    for row in rows:
        source_rows = (row[collection_width:by_name_end], row[by_name_end:])
        # A source may match by its name and by its id.
        matching_sources = {
            columns[0]: to_source(columns) for columns in source_rows if columns[0] is not None
        }
        matches.append((to_collection(row[:collection_width]), list(matching_sources.values())))
    return matches
