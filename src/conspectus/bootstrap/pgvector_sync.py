"""Changes of the records taken into their index in PostgreSQL by the transaction that makes them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Connection, select

from conspectus.model.records import Change, Collection
from conspectus.records.core.changes import changes_since, made_by
from conspectus.records.core.reads import chunks_between
from conspectus.records.core.rows import COLLECTION_COLUMNS, to_collection
from conspectus.records.tables.core import collections

if TYPE_CHECKING:
    from conspectus.index.pgvector.store import AtOnce

Open: TypeAlias = "Callable[[Collection], AtOnce]"

MOST_CHUNKS = 200
"""Other writers wait meanwhile; what is more is taken in afterwards, by whoever asks first."""


class PgvectorSync:
    """Takes in what a transaction wrote, of each collection whose index had all that was before."""

    def __init__(self, open_place: Open) -> None:
        self._open = open_place

    def __call__(self, connection: Connection) -> None:
        """Do so just before the transaction is committed."""
        made = made_by(connection)
        if not made:
            return
        chosen = select(*COLLECTION_COLUMNS).where(collections.c.id.in_(made)).order_by(collections.c.id)
        for collection in map(to_collection, connection.execute(chosen).all()):
            self._take(connection, collection, made[collection.id])

    def _take(self, connection: Connection, collection: Collection, begun: int) -> None:
        index = self._open(collection)
        state = index.state(connection)
        if state is None:
            return
        space = collection.space
        changes = changes_since(
            connection,
            collection.id,
            space=space.name if space else None,
            sequence=state.applied,
            limit=MOST_CHUNKS,
        )
        if not changes or changes[0].sequence < begun or _count(changes) > MOST_CHUNKS:
            return
        chunks = [
            chunk
            for first, last in index.wanted(changes)
            for chunk in chunks_between(connection, collection.id, space=space, first=first, last=last)
        ]
        index.take_in(connection, state, changes, chunks)


def _count(changes: Sequence[Change]) -> int:
    return sum(change.last - change.first + 1 for change in changes)
