"""What may have changed between two views of a store, where its own history tells.

Chunks and what hangs on them are most of a store and are followed by the history of changes. Rows of other
tables have no history: their hashes tell.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from conspectus.records.tables.core import changes, collections, counters
from conspectus.records.transfer.pages import KeyRange

FOLLOWED = frozenset({"chunks", "vectors", "mentions"})
"""Tables whose keys begin with the number of a chunk, and that change only with the history."""

_SEQUENCE = select(counters.c.value).where(counters.c.name == "change")
_COLLECTIONS = select(
    collections.c.id,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
    collections.c.names_to,
)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks whose numbers are from one to another, both included."""

    first: int
    last: int

    def touch(self, keys: KeyRange) -> bool:
        """Whether a row of one of these chunks may be in a range of keys."""
        begins_before = keys.upto is None or self.first <= keys.upto[0]
        return begins_before and (keys.after is None or self.last >= keys.after[0])


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """How far the history went when a store was looked at."""

    sequence: int
    collections: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, connection: Connection) -> "StoreSnapshot":
        """The view that a transaction has."""
        found = {row[0]: tuple(row[1:]) for row in connection.execute(_COLLECTIONS)}
        return cls(connection.execute(_SEQUENCE).scalar_one(), found)


def changed_since(earlier: StoreSnapshot, connection: Connection) -> Sequence[Chunks] | None:
    """Chunks of which rows may have come, changed or gone since the earlier view; None for any of them."""
    now = StoreSnapshot.of(connection)
    found = list(_named(earlier, now))
    if None in found:
        return None
    since = select(changes.c.first, changes.c.last).where(changes.c.sequence > earlier.sequence)
    steps = [Chunks(row.first, row.last) for row in connection.execute(since)]
    return _joined([*steps, *(each for each in found if each is not None)])


def _named(earlier: StoreSnapshot, now: StoreSnapshot) -> Iterable[Chunks | None]:
    """Chunks that names were found in meanwhile; None where the history does not tell what happened."""
    for collection, (*then, names_then) in earlier.collections.items():
        *same, names_now = now.collections.get(collection, (None,))
        if same != then or (names_then or 0) > (names_now or 0):
            yield None
        elif names_now is not None:
            yield Chunks((names_then or 0) + 1, names_now)


def _joined(found: Iterable[Chunks]) -> list[Chunks]:
    joined: list[Chunks] = []
    for each in sorted(found, key=lambda chunks: chunks.first):
        if joined and each.first <= joined[-1].last + 1:
            joined[-1] = Chunks(joined[-1].first, max(joined[-1].last, each.last))
        else:
            joined.append(each)
    return joined
