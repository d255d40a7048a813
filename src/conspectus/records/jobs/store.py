"""Jobs and connections."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    exists,
    false,
    func,
    insert,
    not_,
    or_,
    select,
    true,
    update,
)

from conspectus.errors import InvalidInput, LockLost, NotFound
from conspectus.model.connections import Connection as Wiki
from conspectus.model.ids import CollectionId, JobId, SourceId
from conspectus.model.jobs import FINISHED, IngestReport, Job, JobOutcome, JobPage, JobRates, JobState
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.records.core.collections import state
from conspectus.records.core.dialects import json_elements, json_kind
from conspectus.records.core.lock_names import row_lock
from conspectus.records.core.pages import newest_page
from conspectus.records.core.rows import columns_of, to_columns, to_model
from conspectus.records.core.store_methods import SqlStore, reading, writing
from conspectus.records.tables.core import collections
from conspectus.records.tables.jobs import connections, jobs
from conspectus.text.times import to_microseconds

RATE_SPANS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}


_CONNECTION_COLUMNS = (
    *(column for column in connections.c if column.name != "credentials"),
    connections.c.credentials.is_not(None).label("has_credentials"),
)


def _add(connection: Connection, job: Job) -> Job:
    state(connection, job.collection)
    stored = _job(connection, job.id)
    if stored is None:
        columns = columns_of(job)
        del columns["actions"]
        connection.execute(insert(jobs), columns)
    return stored or job


def _job(connection: Connection, job: JobId) -> Job | None:
    """Return the job of that id."""
    row = connection.execute(select(jobs).where(jobs.c.id == job)).one_or_none()
    return None if row is None else to_model(Job, row._mapping)


def _change(
    connection: Connection,
    /,
    job: JobId,
    *,
    unless: Sequence[JobState] = (),
    attempt: int | None = None,
    **fields: Any,
) -> Job:
    if unknown := fields.keys() - set(jobs.c.keys()):
        raise InvalidInput(min(unknown), "is not a field of a job")
    stored = _job(connection, job)
    if stored is None:
        raise NotFound("job", job)
    if stored.state in unless or not fields:
        return stored
    if attempt not in {None, stored.attempts}:
        raise LockLost(f"job {job}")
    connection.execute(update(jobs).where(jobs.c.id == job).values(to_columns(Job, fields)))
    return _job(connection, job) or stored


def _jobs(connection: Connection, scope: JobScope, *, after: str | None = None, limit: int = 100) -> JobPage:
    rows, following = newest_page(
        connection, select(jobs).where(_match_scope(scope)), jobs, after=after, limit=limit
    )
    return JobPage(tuple(to_model(Job, row._mapping) for row in rows), following)


def _report(connection: Connection, scope: JobScope, *, now: datetime) -> IngestReport:
    counted = (
        select(jobs.c.state, func.count().label("jobs")).where(_match_scope(scope)).group_by(jobs.c.state)
    )
    states: dict[JobState, int] = {row.state: row.jobs for row in connection.execute(counted)}
    rates = {name: _rates(connection, scope, now - span).get(None) for name, span in RATE_SPANS.items()}
    sources = _rates(connection, scope, now - RATE_SPANS["7d"], by_source=True)
    partial = select(func.count()).where(_match_scope(replace(scope, outcome="partial")))
    return IngestReport(
        states=states,
        partial=connection.execute(partial.select_from(jobs)).scalar_one(),
        rates={name: rate or JobRates(0, 0, 0) for name, rate in rates.items()},
        sources={SourceId(source): rate for source, rate in sources.items() if source is not None},
    )


def _rates(
    connection: Connection, scope: JobScope, since: datetime, *, by_source: bool = False
) -> dict[str | None, JobRates]:
    failed = func.count().filter(jobs.c.state == "failed")
    retried = func.count().filter(jobs.c.attempts > 1)
    ended = and_(jobs.c.state.in_(FINISHED), jobs.c.finished >= to_microseconds(since))
    if by_source:
        query = select(jobs.c.source, func.count(), failed, retried).group_by(jobs.c.source)
        rows = connection.execute(query.where(_match_scope(scope), ended))
        return {source: JobRates(*counts) for source, *counts in rows}
    rows = connection.execute(select(func.count(), failed, retried).where(_match_scope(scope), ended))
    return {None: JobRates(*rows.one())}


def _match_scope(scope: JobScope) -> ColumnElement[bool]:
    in_places = true() if scope.places is None else or_(false(), *map(_at, scope.places))
    in_states = true() if scope.states is None else jobs.c.state.in_(scope.states)
    return and_(in_places, in_states, _has_outcome(scope.outcome))


def _has_outcome(outcome: JobOutcome | None) -> ColumnElement[bool]:
    """Return the condition for jobs that ended like this; it agrees with `Job.outcome`."""
    if outcome is None:
        return true()
    if outcome in {"failed", "cancelled"}:
        return jobs.c.state == outcome
    # PostgreSQL reads a key that is missing as one element, and both read an object as its values.
    lists_failures = func.coalesce(json_kind(jobs.c.result, "failures"), "") == "array"
    names_failures = and_(lists_failures, exists(select(json_elements(jobs.c.result, "failures").c.value)))
    return and_(jobs.c.state == "succeeded", names_failures if outcome == "partial" else not_(names_failures))


def _at(job_place: JobPlace) -> ColumnElement[bool]:
    here = jobs.c.collection == job_place.collection
    if job_place.sources is None and job_place.owner is None:
        return here
    of_owner = false() if job_place.owner is None else jobs.c.owner == job_place.owner
    return and_(here, or_(of_owner, jobs.c.source.in_(job_place.sources or ())))


def _put_connection(connection: Connection, wiki: Wiki, *, sealed: str | None = None) -> Wiki:
    values = columns_of(wiki)
    del values["has_credentials"]
    if sealed is not None:
        values["credentials"] = sealed
    same = connections.c.id == wiki.id
    if connection.execute(update(connections).where(same).values(values)).rowcount == 0:
        state(connection, wiki.collection)
        connection.execute(insert(connections), values)
    return wiki


def _connections(connection: Connection, collection: CollectionId) -> list[Wiki]:
    query = select(*_CONNECTION_COLUMNS).where(connections.c.collection == collection)
    rows = connection.execute(query.order_by(connections.c.name))
    return [to_model(Wiki, row._mapping) for row in rows]


def _delete_connection(connection: Connection, wiki: str) -> bool:
    return connection.execute(delete(connections).where(connections.c.id == wiki)).rowcount > 0


def _put_credentials(connection: Connection, wiki: str, sealed: str | None, *, replaced: str | None) -> bool:
    same = connections.c.id == wiki, connections.c.credentials.is_not_distinct_from(replaced)
    return connection.execute(update(connections).where(*same).values(credentials=sealed)).rowcount > 0


def _credentials(connection: Connection, wiki: str) -> str | None:
    sealed: str | None = connection.execute(
        select(connections.c.credentials).where(connections.c.id == wiki)
    ).scalar()
    return sealed


class SqlJobStore(SqlStore):
    """The methods of the port `JobStore`, each as one transaction."""

    add = writing(_add, locks=lambda job: {row_lock(collections, job.collection), row_lock(jobs, job.id)})
    job = reading(_job)
    change = writing(_change, locks=lambda job, **_: {row_lock(jobs, job)})
    jobs = reading(_jobs)
    report = reading(_report)
    connections = reading(_connections)
    put_connection = writing(
        _put_connection,
        locks=lambda wiki, **_: {row_lock(collections, wiki.collection), row_lock(connections, wiki.id)},
    )
    put_credentials = writing(_put_credentials, locks=lambda wiki, sealed, **_: {row_lock(connections, wiki)})
    credentials = reading(_credentials)
    delete_connection = writing(_delete_connection, locks=lambda wiki: {row_lock(connections, wiki)})
