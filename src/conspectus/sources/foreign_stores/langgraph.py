"""Reader of LangGraph: the items of a store in SQLite or PostgreSQL as memories."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile, optional
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignPlace, ForeignRecord, LeftOut
from conspectus.sources.foreign_stores.points import LIST_TABLES, TEXT_FIELDS, find_text, open_sqlite
from conspectus.sources.json_values import load_json, moment_of

WHOLE_VALUE: Final = "values without a text field; the text is the whole value as JSON"
READ_ITEMS: Final = "SELECT * FROM store ORDER BY prefix, key"
ITEM_COLUMNS: Final = {"value", "created_at", "updated_at"}
NO_STORE: Final = "is no store of LangGraph: it has no table `store`"


def read_langgraph(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the items of a store in SQLite or PostgreSQL as memories."""
    opened = _postgres_items if at.place.startswith(("postgresql://", "postgres://")) else _sqlite_items
    with opened(at.place) as items:
        for item in items:
            scope = _scope_of_namespace(str(item.row["prefix"]), at.namespace)
            if scope is None:
                left.skip("items in other namespaces than --namespace says", item.key)
            elif not _has_expired(item, left):
                yield from _record_of_item(item, scope, at.text_fields or TEXT_FIELDS, left)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of LangGraph: its row, and a function that returns its vectors by the fields they are of."""

    row: Mapping[str, Any]
    vectors: Callable[[], Mapping[str, tuple[float, ...]]]

    @property
    def key(self) -> str:
        """Its namespace and its key."""
        return f"{self.row['prefix']}/{self.row['key']}"


def _has_expired(item: Item, left: LeftOut) -> bool:
    expires = _moment_of_column(item.row.get("expires_at"))
    if expires is None:
        return False
    if expires < datetime.now(UTC):
        left.skip("items that have expired", item.key)
        return True
    left.field("expires_at")
    return False


def _record_of_item(item: Item, scope: Scope, names: Sequence[str], left: LeftOut) -> Iterator[ForeignRecord]:
    """Yield an item as a memory: its text is a field, one in an object, or the whole value as JSON."""
    row = item.row
    if missing := ITEM_COLUMNS - row.keys():
        raise ValueError(f"the table `store` has no {', '.join(sorted(missing))}")
    stored = row["value"]
    value = load_json(stored) if isinstance(stored, str | bytes) else stored
    if not isinstance(value, dict):
        left.skip("values that are no JSON objects", item.key)
        return
    field, text, others = find_text(value, names)
    if not text:
        left.remark(WHOLE_VALUE)
        field, text, others = "$", json.dumps(value, ensure_ascii=False, sort_keys=True), {}
    try:
        vectors = item.vectors()
    except ValueError:
        vectors = {}
        left.field("vectors that cannot be read")
    if len(vectors) > (field in vectors):
        left.field("vectors of other fields than the text", len(vectors) - (field in vectors))
    created, updated = _moment_of_column(row["created_at"]), _moment_of_column(row["updated_at"])
    metadata = {**others, "namespace": str(row["prefix"]).split(".")}
    new = NewMemory(text, key=item.key, at=created, metadata=metadata, vector=vectors.get(field))
    yield ForeignRecord(scope, new, created, updated)


def _scope_of_namespace(prefix: str, pattern: str | None) -> Scope | None:
    """Return the scope that a namespace names by the pattern; None if it does not match."""
    if pattern is None:
        return Scope()
    parts, places = prefix.split("."), pattern.split(".")
    scope: dict[str, str] = {}
    for part, pattern_part in zip(parts, places, strict=False):
        name = pattern_part.removeprefix("{").removesuffix("}")
        if pattern_part == f"{{{name}}}" and name in Scope.__dataclass_fields__:
            scope[name] = part
        elif pattern_part not in {part, "*"}:
            return None
    return Scope(**scope) if len(parts) == len(places) else None


def _moment_of_column(value: object) -> datetime | None:
    return moment_of(value.isoformat() if isinstance(value, datetime) else value)


@contextmanager
def _sqlite_items(path: str) -> Iterator[Iterator[Item]]:
    with open_sqlite(path) as database:
        tables = {name for (name,) in database.execute(LIST_TABLES)}
        if "store" not in tables:
            raise UnreadableFile(path, NO_STORE)
        statement = "SELECT field_name, embedding FROM store_vectors WHERE prefix = ? AND key = ?"

        def vectors(row: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
            parameters = (row["prefix"], row["key"])
            rows = database.execute(statement, parameters) if "store_vectors" in tables else ()
            return {
                name: tuple(np.frombuffer(embedding, "<f4").tolist()) for name, embedding in rows if embedding
            }

        cursor = database.execute(READ_ITEMS)
        columns = [column[0] for column in cursor.description]
        rows = (dict(zip(columns, row, strict=True)) for row in cursor)
        yield (Item(row, partial(vectors, row)) for row in rows)


@contextmanager
def _postgres_items(url: str) -> Iterator[Iterator[Item]]:
    driver = optional("psycopg", "postgresql", "psycopg")
    as_dict = optional("psycopg.rows", "postgresql", "psycopg").dict_row
    with driver.connect(url) as connection:
        tables = connection.execute("SELECT to_regclass('store'), to_regclass('store_vectors')").fetchone()
        if tables[0] is None:
            raise UnreadableFile("database", NO_STORE)
        statement = "SELECT field_name, embedding::text FROM store_vectors WHERE prefix = %s AND key = %s"

        def vectors(row: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
            rows = connection.execute(statement, (row["prefix"], row["key"])) if tables[1] is not None else ()
            return {name: tuple(json.loads(embedding)) for name, embedding in rows if embedding}

        with connection.cursor("conspectus_import", row_factory=as_dict) as cursor:
            yield (Item(row, partial(vectors, row)) for row in cursor.execute(READ_ITEMS))
