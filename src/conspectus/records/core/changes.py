"""The change log that indexes read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal

from sqlalchemy import Connection, bindparam, func, select, update

from conspectus.deferred import dataclass
from conspectus.model.ids import ChunkId, CollectionId
from conspectus.model.index import IndexUpdate
from conspectus.model.records import Change
from conspectus.records.core.counters import allocate
from conspectus.records.core.rows import to_change
from conspectus.records.core.statements import (
    PreparedStatement,
    execute_batch,
    fetch_rows,
    prepare,
    prepare_inserts,
)
from conspectus.records.tables.core import Number, changes, collections

CHANGES: Final = "conspectus_changes"
"""The execution option of a connection with the changes that its transaction appended."""
INDEX_UPDATES: Final = "conspectus_index_updates"
"""The option with the index updates of collections that were appended to once."""
_COLUMNS = (changes.c.sequence, changes.c.operation, changes.c.first, changes.c.last, changes.c.space)
_UPDATE_COLLECTION = (
    update(collections)
    .where(collections.c.id == bindparam("of"))
    .values(
        sequence=bindparam("newest"),
        names_to=func.coalesce(bindparam("mentioned", type_=Number), collections.c.names_to),
    )
)
_SINCE = (
    select(*_COLUMNS, changes.c.transaction)
    .where(changes.c.collection == bindparam("of"), changes.c.sequence > bindparam("after"))
    .order_by(changes.c.sequence)
    .limit(bindparam("maximum"))
)
_REST_OF_TRANSACTION = (
    select(*_COLUMNS)
    .where(
        changes.c.collection == bindparam("of"),
        changes.c.sequence > bindparam("after"),
        changes.c.transaction == bindparam("begun"),
    )
    .order_by(changes.c.sequence)
)


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """A change of the chunks first..last of a collection.

    `space` is the embedding model whose indexes it affects; None for all.
    """

    collection: CollectionId
    operation: Literal["put", "remove"]
    first: int
    last: int
    space: str | None = None

    def is_continued_by(self, other: "ChangeRange") -> bool:
        """Return whether the other step is the same operation on the directly following chunks."""
        return (
            other.collection == self.collection
            and (other.operation, other.space) == (self.operation, self.space)
            and other.first == self.last + 1
        )

    def row(self, sequence: int, transaction: int) -> dict[str, Any]:
        """Return the row of the change with its number and the first number of its transaction."""
        return {
            "sequence": sequence,
            "collection": self.collection,
            "operation": self.operation,
            "first": self.first,
            "last": self.last,
            "space": self.space,
            "transaction": transaction,
        }


def append(
    connection: Connection,
    steps: Sequence[ChangeRange],
    *,
    numbers: Mapping[CollectionId, int] = MappingProxyType({}),
    last_mentioned: Mapping[CollectionId, int] = MappingProxyType({}),
    after: Sequence[PreparedStatement] = (),
) -> Mapping[CollectionId, Sequence[Change]]:
    """Append the steps of a unit of work to the log; return those of each collection. Call it once per unit.

    `numbers` are the sequence numbers for the steps of a collection, if they were allocated.
    `last_mentioned` are the last chunks up to which all have their mentions, if the work inserted any.
    Statements to run `after` the rest of the work are sent together with those of the log.
    """
    steps_by_collection: dict[CollectionId, list[ChangeRange]] = {}
    for step in _merge_adjacent(steps):
        steps_by_collection.setdefault(step.collection, []).append(step)
    if not steps_by_collection:
        execute_batch(connection, after)
        return {}
    rows: list[dict[str, Any]] = []
    first_numbers: dict[CollectionId, int] = {}
    collection_updates: list[PreparedStatement] = []
    changes_by_collection: dict[CollectionId, list[Change]] = {}
    for collection, collection_steps in steps_by_collection.items():
        first = numbers.get(collection) or allocate(connection, "change", len(collection_steps), collection)
        first_numbers[collection] = first
        changes_by_collection[collection] = []
        for number, step in enumerate(collection_steps, start=first):
            rows.append(step.row(number, transaction=first))
            change = Change(number, step.operation, ChunkId(step.first), ChunkId(step.last))
            changes_by_collection[collection].append(change)
        parameters = {
            "of": collection,
            "newest": first + len(collection_steps) - 1,
            "mentioned": last_mentioned.get(collection),
        }
        collection_updates.append(prepare(connection, _UPDATE_COLLECTION, parameters))
    execute_batch(connection, [*after, *collection_updates, *prepare_inserts(connection, changes, rows)])
    unknown_updates = dict.fromkeys(first_numbers)
    connection.execution_options(
        **{
            CHANGES: {**first_numbers, **list_appended_changes(connection)},
            INDEX_UPDATES: {**known_updates(connection), **unknown_updates},
        }
    )
    return changes_by_collection


def list_appended_changes(connection: Connection) -> Mapping[CollectionId, int]:
    """Return the collections that a transaction has appended to, each with a lower bound of its changes."""
    first_changes: Mapping[CollectionId, int] = connection.get_execution_options().get(CHANGES, {})
    return first_changes


def known_updates(connection: Connection) -> Mapping[CollectionId, IndexUpdate | None]:
    """Return the updates of collections by units of a transaction. A unit may have been rolled back."""
    updates: Mapping[CollectionId, IndexUpdate | None] = connection.get_execution_options().get(
        INDEX_UPDATES, {}
    )
    return updates


def note_update(connection: Connection, update: IndexUpdate, *, first: bool) -> None:
    """Keep an update for the end of the transaction, if it is the `first` one of its collection."""
    latest = {update.collection.id: update if first else None}
    connection.execution_options(**{INDEX_UPDATES: {**known_updates(connection), **latest}})


def changes_since(
    connection: Connection, collection: CollectionId, *, space: str | None, sequence: int, limit: int
) -> list[Change]:
    """Return the changes after `sequence`, about `limit`, and at least all of one unit of work.

    A change that only affects another embedding model is returned as a change of no chunk.
    """
    rows = fetch_rows(connection, _SINCE, {"of": collection, "after": sequence, "maximum": limit})
    new_changes = [to_change(row[:5], space) for row in rows]
    if len(rows) == limit:
        last_sequence, *_, transaction = rows[-1]
        rest = {"of": collection, "after": last_sequence, "begun": transaction}
        new_changes += [to_change(row, space) for row in fetch_rows(connection, _REST_OF_TRANSACTION, rest)]
    return new_changes


def _merge_adjacent(steps: Sequence[ChangeRange]) -> list[ChangeRange]:
    """Join steps that continue each other."""
    merged: list[ChangeRange] = []
    for step in steps:
        if merged and merged[-1].is_continued_by(step):
            previous = merged.pop()
            step = replace(step, first=previous.first)
        merged.append(step)
    return merged
