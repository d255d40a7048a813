"""Reads all texts that people write, by table and column, for scans for secrets and personal data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from sqlalchemy import Column, Connection, Row, Select, Table, select

from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.sensitive_reports import ColumnText, Reach
from conspectus.model.text_columns import WRITTEN, columns_of
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.tables.core import collections, documents, metadata, sources


def _reach_of(table: Table) -> tuple[Reach, Column[Any] | None]:
    """Return what the rows of a table belong to, and the column that has its id."""
    if table is sources:
        return "source", table.c.id
    if table is collections:
        return "collection", table.c.id
    owners = {key.column.table: column for column in table.c for key in column.foreign_keys}
    if sources in owners:
        return "source", owners[sources]
    if collections in owners:
        return "collection", owners[collections]
    return "store", None


def _tables() -> Mapping[Reach, Sequence[Table]]:
    """Return the tables with texts that people write, except documents, which are scanned elsewhere."""
    tables: dict[Reach, list[Table]] = {"source": [], "collection": [], "store": []}
    for table in metadata.sorted_tables:
        if table is not documents and any(rule.screening in WRITTEN for _, rule in columns_of(table.name)):
            tables[_reach_of(table)[0]].append(table)
    return MappingProxyType(tables)


TABLES: Final = _tables()


def column_texts(
    connection: Connection,
    collection: CollectionId,
    *,
    reach: Reach,
    sources: Sequence[SourceId] | None = None,
    after: str | None = None,
    limit: int,
) -> tuple[Sequence[ColumnText], str | None]:
    """Return a page of texts, and the cursor of the next page."""
    position, last = (0, None) if after is None else _position(after)
    table = TABLES[reach][position]
    (key,) = table.primary_key.columns
    page = _rows_of(table, collection, is_narrowed=sources is not None).order_by(key).limit(limit)
    if last is not None:
        page = page.where(key > last)
    rows = connection.execute(page, {} if sources is None else {"within": json_list(sources)}).all()
    texts = [text for row in rows for text in _texts_in(table, row)]
    if len(rows) == limit:
        return texts, to_cursor(position, rows[-1]._mapping[key])
    is_last_table = position + 1 == len(TABLES[reach])
    return texts, None if is_last_table else to_cursor(position + 1)


def _position(cursor: str) -> tuple[int, int | str | None]:
    """Return the table of a cursor, and its last row."""
    position, *last = from_cursor(cursor, (int,), (int, int), (int, str))
    return position, last[0] if last else None


def _rows_of(table: Table, collection: CollectionId, *, is_narrowed: bool) -> Select[Any]:
    """Return the rows of a table that belong to a collection, or to the sources of the parameter `within`."""
    reach, owner = _reach_of(table)
    if owner is None:
        return select(table)
    if reach == "collection":
        return select(table).where(owner == collection)
    of_collection = select(sources.c.id).where(sources.c.collection == collection)
    if is_narrowed:
        of_collection = of_collection.where(sources.c.id.in_(json_list_param("within")))
    return select(table).where(owner.in_(of_collection))


def _texts_in(table: Table, row: Row[*tuple[Any, ...]]) -> Iterator[ColumnText]:
    """Yield the texts of a row by column, those in JSON one by one, and names as they were given."""
    columns = row._mapping
    name = str(columns["id"] if "id" in columns else columns[next(iter(table.primary_key.columns)).name])
    for column, rule in columns_of(table.name):
        if rule.screening in WRITTEN and columns[column]:
            for text in _strings_in(columns[column]):
                is_quoted = rule.screening in {"name", "account"}
                yield ColumnText(f"{table.name}.{column}", name, unquote(text) if is_quoted else text)


def _strings_in(stored: str) -> Iterator[str]:
    """Yield a stored text, or, if it is JSON, the strings in it."""
    if not stored.startswith(("{", "[")):
        yield stored
        return
    try:
        parts: list[Any] = [json.loads(stored)]
    except ValueError:
        yield stored
        return
    while parts:
        part = parts.pop()
        match part:
            case str():
                yield part
            case dict():
                parts += [*part, *part.values()]
            case list():
                parts += part
