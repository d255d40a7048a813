"""The rows of jobs and of connections on the same database as everything else."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)

from conspectus.errors import InvalidInput, NotFound, TurnLost
from conspectus.model.connections import Connection as Wiki
from conspectus.model.ids import CollectionId, JobId, SourceId
from conspectus.model.jobs import FINISHED, IngestReport, Job, JobPage, JobRates, JobState
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.records.core.collections import state
from conspectus.records.core.rows import to_json, to_metadata
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import connections, jobs
from conspectus.text.times import from_microseconds, to_microseconds

PAGE = 100
SPANS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
TIMES = frozenset({"created", "started", "finished", "ran"})
DOCUMENTS = frozenset({"arguments", "result", "options"})
FIELDS = frozenset(Job.__dataclass_fields__)


class SqlJobStore:
    """Every method of the port `Ledger` as one transaction."""

    def __init__(self, transactions: Transactions) -> None:
        self._read = transactions.read
        self._write = transactions.write

    async def add(self, job: Job) -> Job:
        """Store it, or return the stored one of that id. Raises NotFound for an unknown collection."""
        return await self._write(partial(_add, job=job))

    async def job(self, job: JobId) -> Job | None:
        """The job of that id."""
        return await self._read(partial(_job, job=job))

    async def change(
        self, job: JobId, *, unless: Sequence[JobState] = (), attempt: int | None = None, **fields: Any
    ) -> Job:
        """Change fields of a job, unless it is in one of these states.

        Raises NotFound, InvalidInput, or TurnLost where another attempt than this one is the last.
        """
        if unknown := fields.keys() - FIELDS:
            raise InvalidInput(min(unknown), "is not a field of a job")
        change = partial(_change, job=job, unless=tuple(unless), attempt=attempt)
        return await self._write(partial(change, fields=fields))

    async def jobs(self, scope: JobScope, *, after: str | None = None, limit: int = PAGE) -> JobPage:
        """Jobs in scope, newest first. Raises InvalidInput."""
        if not 1 <= limit <= PAGE:
            raise InvalidInput("limit", f"must be from 1 to {PAGE}")
        place = None if after is None else _from_cursor(after)
        return await self._read(partial(_jobs, scope=scope, after=place, limit=limit))

    async def report(self, scope: JobScope, *, now: datetime) -> IngestReport:
        """Numbers over the jobs in scope."""
        return await self._read(partial(_report, scope=scope, now=now))

    async def put_connection(self, connection: Wiki) -> Wiki:
        """Store it, or change the stored one of that id. Raises Conflict if its name is taken."""
        return await self._write(partial(_put_connection, wiki=connection))

    async def connections(self, collection: CollectionId) -> Sequence[Wiki]:
        """The connections of a collection, by name."""
        return await self._read(partial(_connections, collection=collection))

    async def delete_connection(self, connection: str) -> bool:
        """Forget a connection; whether there was one."""
        return await self._write(partial(_delete_connection, wiki=connection))


def _add(connection: Connection, job: Job) -> Job:
    state(connection, job.collection)
    stored = _job(connection, job.id)
    if stored is None:
        connection.execute(insert(jobs), _values({name: getattr(job, name) for name in FIELDS}))
    return stored or job


def _job(connection: Connection, job: JobId) -> Job | None:
    row = connection.execute(select(jobs).where(jobs.c.id == job)).one_or_none()
    return None if row is None else _to_job(row)


def _change(
    connection: Connection,
    job: JobId,
    *,
    unless: Sequence[JobState],
    attempt: int | None,
    fields: Mapping[str, Any],
) -> Job:
    found = _job(connection, job)
    if found is None:
        raise NotFound("job", job)
    if found.state in unless or not fields:
        return found
    if attempt not in {None, found.attempts}:
        raise TurnLost(f"job {job}")
    connection.execute(update(jobs).where(jobs.c.id == job).values(_values(fields)))
    return _job(connection, job) or found


def _jobs(connection: Connection, scope: JobScope, after: tuple[int, str] | None, limit: int) -> JobPage:
    key = (jobs.c.created, jobs.c.id)
    chosen = select(jobs).where(_within(scope))
    if after is not None:
        chosen = chosen.where(tuple_(*key) < after)
    ordered = chosen.order_by(*(column.desc() for column in key)).limit(limit + 1)
    rows = connection.execute(ordered).all()
    following = _to_cursor(rows[limit - 1]) if len(rows) > limit else None
    return JobPage(tuple(map(_to_job, rows[:limit])), following)


def _report(connection: Connection, scope: JobScope, now: datetime) -> IngestReport:
    counted = select(jobs.c.state, func.count().label("jobs")).where(_within(scope)).group_by(jobs.c.state)
    states: dict[JobState, int] = {row.state: row.jobs for row in connection.execute(counted)}
    rates = {name: _rates(connection, scope, now - span).get(None) for name, span in SPANS.items()}
    sources = _rates(connection, scope, now - SPANS["7d"], by_source=True)
    return IngestReport(
        states=states,
        rates={name: each or JobRates(0, 0, 0) for name, each in rates.items()},
        sources={SourceId(source): each for source, each in sources.items() if source is not None},
    )


def _rates(
    connection: Connection, scope: JobScope, since: datetime, *, by_source: bool = False
) -> dict[str | None, JobRates]:
    failed = func.count().filter(jobs.c.state == "failed")
    retried = func.count().filter(jobs.c.attempts > 1)
    ended = and_(jobs.c.state.in_(FINISHED), jobs.c.finished >= to_microseconds(since))
    if by_source:
        chosen = select(jobs.c.source, func.count(), failed, retried).group_by(jobs.c.source)
        rows = connection.execute(chosen.where(_within(scope), ended))
        return {source: JobRates(*counts) for source, *counts in rows}
    rows = connection.execute(select(func.count(), failed, retried).where(_within(scope), ended))
    return {None: JobRates(*rows.one())}


def _within(scope: JobScope) -> ColumnElement[bool]:
    place = true() if scope.places is None else or_(false(), *map(_at, scope.places))
    return and_(place, true() if scope.states is None else jobs.c.state.in_(scope.states))


def _at(place: JobPlace) -> ColumnElement[bool]:
    here = jobs.c.collection == place.collection
    if place.sources is None and place.owner is None:
        return here
    own = false() if place.owner is None else jobs.c.owner == place.owner
    return and_(here, or_(own, jobs.c.source.in_(place.sources or ())))


def _put_connection(connection: Connection, wiki: Wiki) -> Wiki:
    values = _values({name: getattr(wiki, name) for name in Wiki.__dataclass_fields__})
    same = connections.c.id == wiki.id
    if connection.execute(update(connections).where(same).values(values)).rowcount == 0:
        connection.execute(insert(connections), values)
    return wiki


def _connections(connection: Connection, collection: CollectionId) -> list[Wiki]:
    chosen = select(connections).where(connections.c.collection == collection)
    return [_to_wiki(row) for row in connection.execute(chosen.order_by(connections.c.name))]


def _delete_connection(connection: Connection, wiki: str) -> bool:
    return connection.execute(delete(connections).where(connections.c.id == wiki)).rowcount > 0


def _values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the model as columns."""
    values: dict[str, Any] = dict(fields)
    for name in fields.keys() & TIMES:
        values[name] = None if fields[name] is None else to_microseconds(fields[name])
    for name in fields.keys() & DOCUMENTS:
        values[name] = None if fields[name] is None else to_json(fields[name])
    return values


def _given(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """Columns as fields of the model."""
    fields = dict(row._mapping)
    for name in fields.keys() & TIMES:
        fields[name] = None if fields[name] is None else from_microseconds(fields[name])
    for name in fields.keys() & DOCUMENTS:
        fields[name] = None if fields[name] is None else to_metadata(fields[name])
    return fields


def _to_job(row: Row[*tuple[Any, ...]]) -> Job:
    return Job(**_given(row))


def _to_wiki(row: Row[*tuple[Any, ...]]) -> Wiki:
    return Wiki(**_given(row))


def _to_cursor(row: Row[*tuple[Any, ...]]) -> str:
    return base64.urlsafe_b64encode(json.dumps([row.created, row.id]).encode()).decode()


def _from_cursor(cursor: str) -> tuple[int, str]:
    try:
        created, job = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        return int(created), str(job)
    except (ValueError, TypeError, binascii.Error) as error:
        raise InvalidInput("after", "is not a cursor that a page gave") from error
