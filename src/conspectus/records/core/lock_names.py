"""Names of locks: what a transaction that writes looks at and changes."""

from collections.abc import Set
from typing import Final, TypeAlias

from sqlalchemy import Table

from conspectus.model.ids import CollectionId
from conspectus.records.tables.core import collections

Locks: TypeAlias = Set[str | None]
"""Names of what a unit of work looks at and changes; the id of a collection names its documents."""


WHOLE_DATABASE: Final[Locks] = frozenset({None})
"""The lock of the whole database."""


def row_lock(table: Table, id: object) -> str:
    """Return the lock of a row. That of a collection keeps it from being deleted or renamed."""
    return f"{table.name} {id}"


def name_lock(table: Table, name: str) -> str:
    """Return the lock of a name that one row of a table may have."""
    return f"{table.name} called {name}"


def collection_locks(collection: CollectionId) -> Locks:
    """Return the locks of a collection: of its documents and of its row."""
    return {collection, row_lock(collections, collection)}
