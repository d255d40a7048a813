"""Answers kept for requests that are sent twice."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, select, update

from conspectus.errors import Conflict, WriteUnknown
from conspectus.records.job_tables import replays
from conspectus.records.transactions import Transactions
from conspectus.text.times import to_microseconds

LOST: Final = json.dumps(None)
"""Stands in the place of an answer that nobody got, to a request of which something was stored."""


class SqlReplays:
    """Every method of the port `Replays` as one transaction.

    Requests that are no older than `answered` may still be answered, by other processes.
    """

    def __init__(self, transactions: Transactions, *, answered: timedelta = timedelta()) -> None:
        self._write = transactions.write
        self._noting = transactions.noting
        self._answered = answered

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None), or the answer that was kept for it. Raises Conflict, WriteUnknown."""
        return await self._write(partial(_begin, person=person, key=key, fingerprint=fingerprint, at=at))

    def noting(self, person: str, key: str, *, at: datetime) -> AbstractContextManager[None]:
        """A block of which is known whether anything that it wrote was stored."""
        return self._noting(partial(_note, person=person, key=key, at=at))

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer, or with None give the key back, unless anything was stored."""
        await self._write(partial(_finish, person=person, key=key, answer=answer))

    async def forget(self, before: datetime) -> int:
        """Delete what is older; how many."""
        return await self._write(partial(_forget, before=before))

    async def give_back(self, before: datetime) -> int:
        """Give back the keys of older requests that were never answered nor stored anything; how many."""
        return await self._write(partial(_give_back, before=before - self._answered))


def _begin(
    connection: Connection, person: str, key: str, fingerprint: str, at: datetime
) -> Mapping[str, Any] | None:
    same = (replays.c.person == person, replays.c.key == key)
    row = connection.execute(select(replays).where(*same)).one_or_none()
    if row is None:
        values = {"person": person, "key": key, "fingerprint": fingerprint, "created": to_microseconds(at)}
        connection.execute(insert(replays), values)
        return None
    if row.fingerprint != fingerprint:
        raise Conflict("idempotency key", key, "was used for another request")
    if row.answer is None:
        raise Conflict("idempotency key", key, "belongs to a request that is still being answered")
    if row.answer == LOST:
        raise WriteUnknown(
            "of this request a part or all was stored, and its answer is lost; look what is there before you"
            " send it again, with another idempotency key"
        )
    answer: Mapping[str, Any] = json.loads(row.answer)
    return answer


def _note(connection: Connection, person: str, key: str, at: datetime) -> None:
    same = (replays.c.person == person, replays.c.key == key, replays.c.created == to_microseconds(at))
    noted = update(replays).where(*same, replays.c.stored == 0, replays.c.answer.is_(None))
    connection.execute(noted.values(stored=1))


def _finish(connection: Connection, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
    same = and_(replays.c.person == person, replays.c.key == key)
    if answer is None:
        _unanswered(connection, same)
    else:
        told = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        connection.execute(update(replays).where(same).values(answer=told))


def _give_back(connection: Connection, before: datetime) -> int:
    old = and_(replays.c.created < to_microseconds(before), replays.c.answer.is_(None))
    return _unanswered(connection, old)


def _unanswered(connection: Connection, which: ColumnElement[bool]) -> int:
    """Give back keys, how many, but those of requests of which anything was stored."""
    connection.execute(update(replays).where(which, replays.c.stored == 1).values(answer=LOST))
    return connection.execute(delete(replays).where(which, replays.c.stored == 0)).rowcount


def _forget(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(replays).where(replays.c.created < to_microseconds(before))).rowcount
