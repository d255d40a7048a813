"""The change log that indexes read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, Literal

from sqlalchemy import (
    Connection,
    bindparam,
    func,
    select,
    update,
)

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
_MOVE = (
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
_REST = (
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

    def continued_by(self, other: "ChangeRange") -> bool:
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
    mentioned: Mapping[CollectionId, int] = MappingProxyType({}),
    after: Sequence[PreparedStatement] = (),
) -> Mapping[CollectionId, Sequence[Change]]:
    """Append the steps of a unit of work to the log; return those of each collection. Call it once per unit.

    `numbers` are the sequence numbers for the steps of a collection, if they were allocated, and `mentioned`
    the last chunks up to which all have their mentions, if the work inserted any. Statements to run `after`
    the rest of the work are sent together with those of the log.
    """
    merged = _merged(steps)
    if not merged:
        execute_batch(connection, after)
        return {}
    rows: list[dict[str, Any]] = []
    begun: dict[CollectionId, int] = {}
    moved: list[PreparedStatement] = []
    changes_by_collection: dict[CollectionId, list[Change]] = {}
    for collection in dict.fromkeys(step.collection for step in merged):
        collection_steps = [step for step in merged if step.collection == collection]
        first = begun[collection] = numbers.get(collection) or allocate(
            connection, "change", len(collection_steps), collection
        )
        rows += [
            step.row(number, transaction=first) for number, step in enumerate(collection_steps, start=first)
        ]
        changes_by_collection[collection] = [
            Change(number, step.operation, ChunkId(step.first), ChunkId(step.last))
            for number, step in enumerate(collection_steps, start=first)
        ]
        newest = {"newest": first + len(collection_steps) - 1, "mentioned": mentioned.get(collection)}
        moved.append(prepare(connection, _MOVE, {"of": collection, **newest}))
    execute_batch(connection, [*after, *moved, *prepare_inserts(connection, changes, rows)])
    unknown_updates = dict.fromkeys(begun)
    connection.execution_options(
        **{
            CHANGES: {**begun, **appended_changes(connection)},
            INDEX_UPDATES: {**known_updates(connection), **unknown_updates},
        }
    )
    return changes_by_collection


def appended_changes(connection: Connection) -> Mapping[CollectionId, int]:
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
        new_changes += [to_change(row, space) for row in fetch_rows(connection, _REST, rest)]
    return new_changes


def _merged(steps: Sequence[ChangeRange]) -> list[ChangeRange]:
    merged: list[ChangeRange] = []
    for step in steps:
        if merged and merged[-1].continued_by(step):
            previous = merged.pop()
            step = replace(step, first=previous.first)
        merged.append(step)
    return merged
