"""Chunks that changed between two snapshots of a store."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from conspectus.deferred import dataclass
from conspectus.records.tables.core import changes, collections
from conspectus.records.transfer.pages import KeyRange

FOLLOWED = frozenset({"chunks", "vectors", "mentions"})
"""Tables whose keys begin with a chunk number, and whose changes are in the change log."""

_SINCE = select(changes.c.first, changes.c.last).where(
    changes.c.collection == bindparam("of"), changes.c.sequence > bindparam("after")
)
_COLLECTIONS = select(
    collections.c.id,
    collections.c.sequence,
    collections.c.created,
    collections.c.model,
    collections.c.dimensions,
    collections.c.version,
    collections.c.names_to,
)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks with numbers in a range, both ends included."""

    first: int
    last: int

    def touch(self, keys: KeyRange) -> bool:
        """Return whether a row of one of these chunks may be in a range of keys."""
        begins_before = keys.upto is None or self.first <= keys.upto[0]
        return begins_before and (keys.after is None or self.last >= keys.after[0])


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """The sequence of each collection at the time of a snapshot, and what the change log does not tell.

    `collections` have creation, embedding model and the end of entity extraction, by id.
    """

    sequences: Mapping[str, int]
    collections: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, connection: Connection) -> "StoreSnapshot":
        """Return the snapshot data of a transaction."""
        rows = connection.execute(_COLLECTIONS).all()
        return cls({row[0]: row[1] for row in rows}, {row[0]: tuple(row[2:]) for row in rows})


def list_changed_chunks(earlier: StoreSnapshot, connection: Connection) -> Sequence[Chunks] | None:
    """Return the chunks whose rows may have changed since an earlier snapshot; None for all."""
    now = StoreSnapshot.of(connection)
    extracted = list(_find_extracted(earlier, now))
    if None in extracted:
        return None
    steps = [
        Chunks(row.first, row.last)
        for collection, sequence in now.sequences.items()
        if sequence != (then := earlier.sequences.get(collection, 0))
        for row in connection.execute(_SINCE, {"of": collection, "after": then})
    ]
    return _join_ranges([*steps, *(chunks for chunks in extracted if chunks is not None)])


def _find_extracted(earlier: StoreSnapshot, now: StoreSnapshot) -> Iterable[Chunks | None]:
    """Yield chunks whose entities were extracted meanwhile; None if any chunk may have changed."""
    for collection, (*then, names_then) in earlier.collections.items():
        *same, names_now = now.collections.get(collection, (None,))
        if same != then or (names_then or 0) > (names_now or 0):
            yield None
        elif names_now is not None:
            yield Chunks((names_then or 0) + 1, names_now)


def _join_ranges(ranges: Iterable[Chunks]) -> list[Chunks]:
    joined: list[Chunks] = []
    for chunks in sorted(ranges, key=lambda chunks: chunks.first):
        if joined and chunks.first <= joined[-1].last + 1:
            joined[-1] = Chunks(joined[-1].first, max(joined[-1].last, chunks.last))
        else:
            joined.append(chunks)
    return joined
