"""Purges that have not ended, and content that is kept outside documents."""

from collections.abc import Sequence
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, select, update

from conspectus.model.ids import CollectionId
from conspectus.records.core.rows import blocks
from conspectus.records.jobs.idempotency import ERASED, LOST, PLAIN
from conspectus.records.tables.chat import spoken
from conspectus.records.tables.jobs import replays
from conspectus.records.tables.locks import purges


def begin(connection: Connection, collection: CollectionId) -> None:
    """Note that what is deleted from the collection must be erased."""
    connection.execute(insert(purges).values(id=uuid4().hex, collection=collection))


def unfinished(connection: Connection) -> dict[str, CollectionId]:
    """The collections of purges that were begun and did not end, by the ids of the purges."""
    return {each: CollectionId(collection) for each, collection in connection.execute(select(purges))}


def end(connection: Connection, done: Sequence[str]) -> None:
    """Forget purges that ended."""
    for block in blocks(done):
        connection.execute(delete(purges).where(purges.c.id.in_(block)))


def delete_copies(connection: Connection) -> None:
    """Delete what answers to requests repeat: any that holds text may hold what was deleted.

    An answer that is being made may have read it before, so it will not be kept either.
    """
    kept = update(replays).where(replays.c.answer.is_not(None), replays.c.stored != PLAIN)
    connection.execute(kept.values(answer=LOST))
    open_claims = update(replays).where(replays.c.answer.is_(None), replays.c.stored > 0)
    connection.execute(open_claims.values(stored=ERASED))
    connection.execute(delete(spoken))
