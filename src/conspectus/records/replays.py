"""Answers kept for requests that are sent twice."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from conspectus.errors import Conflict
from conspectus.records.job_tables import replays
from conspectus.records.transactions import Transactions
from conspectus.text.times import to_microseconds


class SqlReplays:
    """Every method of the port `Replays` as one transaction.

    Requests that are no older than `answered` may still be answered, by other processes.
    """

    def __init__(self, transactions: Transactions, *, answered: timedelta = timedelta()) -> None:
        self._write = transactions.write
        self._answered = answered

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        """Claim a key (None), or the answer that was kept for it. Raises Conflict."""
        return await self._write(partial(_begin, person=person, key=key, fingerprint=fingerprint, at=at))

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer, or with None give the key back."""
        await self._write(partial(_finish, person=person, key=key, answer=answer))

    async def forget(self, before: datetime) -> int:
        """Delete what is older; how many."""
        return await self._write(partial(_forget, before=before))

    async def give_back(self, before: datetime) -> int:
        """Give back the keys of older requests that were never answered; how many."""
        return await self._write(partial(_forget, before=before - self._answered, unanswered=True))


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
    answer: Mapping[str, Any] = json.loads(row.answer)
    return answer


def _finish(connection: Connection, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
    same = (replays.c.person == person, replays.c.key == key)
    if answer is None:
        connection.execute(delete(replays).where(*same))
    else:
        told = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        connection.execute(update(replays).where(*same).values(answer=told))


def _forget(connection: Connection, before: datetime, *, unanswered: bool = False) -> int:
    old = delete(replays).where(replays.c.created < to_microseconds(before))
    return connection.execute(old.where(replays.c.answer.is_(None)) if unanswered else old).rowcount
