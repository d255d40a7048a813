"""Stored responses by idempotency key, each claimed by one request until it is answered."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    insert,
    or_,
    select,
    update,
)

from conspectus.deferred import dataclass
from conspectus.errors import (
    Conflict,
    LockLost,
    StorageError,
    WriteOutcomeUnknown,
)
from conspectus.records.core.database_clock import DatabaseTime, time_in
from conspectus.records.core.store_methods import SqlStore, writing
from conspectus.records.core.transactions import Transactions
from conspectus.records.jobs.replay_conditions import RoleHeld, conditions_hold, conditions_of, roles_of
from conspectus.records.tables.jobs import replays
from conspectus.text.times import to_microseconds

CLAIM_SECONDS: Final = 3.0
"""How long a claim lasts unless it is renewed."""
GRACE_SECONDS: Final = 2.0
"""How long a claim must have expired. A living process renews it sooner, however long the database took."""
RENEWALS: Final = 3
"""Number of renewals of a claim per its duration."""
MAX_LEASE_SECONDS: Final = 3_600.0
LOST_ANSWER: Final = json.dumps(None)
"""The body for a response that is not stored, to a request that had an effect."""
STORED: Final = 1
ERASED: Final = 2
"""Something was stored before a purge, and the response may repeat it."""
PLAIN: Final = 3
"""The response contains no text, so purges keep it."""


_OPEN: Final = replays.c.answer.is_(None)
"""The condition of claims whose requests are being answered."""
_OTHERS: Final = "idempotency keys of others"
"""The lock of work on rows that their claims may change meanwhile."""


def _forget(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(replays).where(replays.c.created < to_microseconds(before))).rowcount


class SqlIdempotencyStore(SqlStore):
    """The methods of the port `IdempotencyStore`, each as one transaction.

    A claim is a lease of `seconds`, of `CLAIM_SECONDS` at most, by the clock of the database. `alone` means
    that no other process serves this store, so that claims of others belong to processes that ended.
    """

    def __init__(self, transactions: Transactions, *, seconds: float, alone: bool) -> None:
        super().__init__(transactions)
        self._write = transactions.write
        self._autocommit = transactions.autocommit
        self._recording = transactions.record_in_writes
        self.count_commits = transactions.count_commits
        self._seconds = min(seconds, CLAIM_SECONDS)
        self.renewal_seconds = self._seconds / RENEWALS
        self._alone = alone
        self._claims: dict[tuple[str, str], int] = {}
        """The open claims of this process, each with its time."""
        self._roles: dict[tuple[str, str], Sequence[RoleHeld]] = {}
        """The rights that users of open claims had when these began."""

    async def begin(
        self, person: str, key: str, fingerprint: str, *, at: datetime
    ) -> Mapping[str, Any] | None:
        created = to_microseconds(at)
        row = {"person": person, "key": key, "fingerprint": fingerprint, "created": created}
        begin, locks = partial(_begin, row=row, seconds=self._seconds), {_lock(person, key)}
        outcome = await self._write(begin, locks=locks)
        if outcome.expired is not None:
            await asyncio.sleep(GRACE_SECONDS)
            outcome = await self._write(partial(begin, expired=outcome.expired), locks=locks)
        if outcome.answer is None:
            self._claims[person, key], self._roles[person, key] = created, outcome.roles
        return outcome.answer

    def record_claim(self, person: str, key: str, *, at: datetime) -> AbstractContextManager[None]:
        return self._recording(partial(self._note, claim=(person, key), created=to_microseconds(at)))

    async def finish(self, person: str, key: str, answer: Mapping[str, Any] | None) -> None:
        claim = (person, key)
        created, roles = self._claims.pop(claim, None), self._roles.pop(claim, ())
        if created is None:
            return
        try:
            finish = partial(
                _finish, person=person, claim=_is_claim(person, key, created), answer=answer, roles=roles
            )
            await self._write(finish, locks={_lock(person, key)})
        except StorageError:
            self._claims.setdefault(claim, created)
            self._roles.setdefault(claim, roles)
            raise

    async def renew(self) -> None:
        claims = [
            {"of": person, "named": key, "at": created} for (person, key), created in self._claims.items()
        ]
        if claims:
            # Nothing that writes for long may end the claims of others.
            await self._autocommit(partial(_renew, claims=claims, seconds=self._seconds))

    forget = writing(_forget, locks=lambda before: {_OTHERS})

    async def give_back(self) -> int:
        if self._alone and not self._claims:
            return await self._write(partial(_release_unanswered, which=replays.c.answer.is_(None)))
        expired = await self.transactions.read(_read_expired_claims)
        if not expired:
            return 0
        await asyncio.sleep(GRACE_SECONDS)
        return await self._write(partial(_release, expired=expired))

    def _note(self, connection: Connection, claim: tuple[str, str], created: int) -> None:
        """Record that something is stored. Raises LockLost if another process took over the claim."""
        same = _is_claim(*claim, created)
        open_claim = select(replays.c.stored).where(same, replays.c.answer.is_(None))
        stored = connection.execute(open_claim).scalar()
        if stored == 0:
            connection.execute(update(replays).where(same).values(stored=STORED))
        elif stored is None and self._claims.get(claim) == created:
            raise LockLost(f"the idempotency key {claim[1]}")


def _lock(person: str, key: str) -> str:
    return f"idempotency key {person} {key}"


def _is_claim(person: str, key: str, created: int) -> ColumnElement[bool]:
    return and_(replays.c.person == person, replays.c.key == key, replays.c.created == created)


def _has_ended() -> ColumnElement[bool]:
    """Return the condition that a lease has expired.

    An end beyond the maximum is left over from before the clock was set back.
    """
    return or_(replays.c.until <= DatabaseTime(), replays.c.until > time_in(MAX_LEASE_SECONDS))


@dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """The response stored for a key; without one, its claim is new, and `roles` are those of its user.

    `expired` is the end of the claim of another request, which may be abandoned.
    """

    answer: Mapping[str, Any] | None = None
    roles: Sequence[RoleHeld] = ()
    expired: int | None = None


def _begin(
    connection: Connection, row: Mapping[str, Any], seconds: float, expired: int | None = None
) -> ClaimOutcome:
    """Claim a key, or return its response. A claim that is still `expired` as before is released first."""
    same = and_(replays.c.person == row["person"], replays.c.key == row["key"])
    if expired is not None:
        _release_unanswered(connection, and_(same, _OPEN, replays.c.until == expired))
    stored = connection.execute(select(replays, _has_ended().label("has_ended")).where(same)).one_or_none()
    if stored is None:
        connection.execute(insert(replays).values(**row, until=time_in(seconds)))
        return ClaimOutcome(roles=roles_of(connection, row["person"]))
    if stored.answer is None and stored.has_ended and expired is None:
        return ClaimOutcome(expired=stored.until)
    key = row["key"]
    if stored.fingerprint != row["fingerprint"]:
        raise Conflict("idempotency key", key, "was used for another request")
    if stored.answer is None:
        raise Conflict("idempotency key", key, "belongs to a request that is still being answered")
    if stored.answer == LOST_ANSWER:
        raise WriteOutcomeUnknown(
            "the request was stored in part or in full, but its answer was not; check what is stored before"
            " you send it again with another idempotency key"
        )
    answer = json.loads(stored.answer)
    conditions = answer.pop("conditions", None)
    if not conditions_hold(connection, row["person"], answer.get("body", ""), conditions):
        raise Conflict(
            "idempotency key",
            key,
            "belongs to a request that is done; its response is not repeated, as your roles or what it shows"
            " have changed since; read what is stored now",
        )
    return ClaimOutcome(answer)


def _finish(
    connection: Connection,
    person: str,
    claim: ColumnElement[bool],
    answer: Mapping[str, Any] | None,
    roles: Sequence[RoleHeld],
) -> None:
    if answer is None:
        _release_unanswered(connection, claim)
        return
    conditions = conditions_of(connection, person, answer.get("body", ""), roles)
    body = json.dumps({**answer, "conditions": conditions}, ensure_ascii=False, allow_nan=False)
    claimed_row = update(replays).where(claim)
    if answer.get("plain"):
        connection.execute(claimed_row.values(answer=body, stored=PLAIN))
    else:
        connection.execute(
            claimed_row.values(answer=case((replays.c.stored == ERASED, LOST_ANSWER), else_=body))
        )


def _renew(connection: Connection, claims: list[dict[str, Any]], seconds: float) -> None:
    same = (replays.c.person == bindparam("of"), replays.c.key == bindparam("named"))
    open_claims = update(replays).where(
        *same, replays.c.created == bindparam("at"), replays.c.answer.is_(None)
    )
    connection.execute(open_claims.values(until=time_in(seconds)), claims)


def _read_expired_claims(connection: Connection) -> list[tuple[str, str, int]]:
    """Return the person, key and end of each claim that has expired."""
    chosen = select(replays.c.person, replays.c.key, replays.c.until).where(_OPEN, _has_ended())
    return [(row.person, row.key, row.until) for row in connection.execute(chosen)]


def _release(connection: Connection, expired: Sequence[tuple[str, str, int]]) -> int:
    """Release claims that have not been renewed since. Returns their number."""
    number = 0
    for person, key, until in expired:
        same = and_(replays.c.person == person, replays.c.key == key, replays.c.until == until)
        number += _release_unanswered(connection, and_(same, _OPEN))
    return number


def _release_unanswered(connection: Connection, which: ColumnElement[bool]) -> int:
    """Release keys, except those of requests of which anything was stored. Returns their number."""
    connection.execute(update(replays).where(which, replays.c.stored > 0).values(answer=LOST_ANSWER))
    return connection.execute(delete(replays).where(which, replays.c.stored == 0)).rowcount
