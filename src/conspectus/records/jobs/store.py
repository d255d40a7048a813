"""Jobs and connections, with the files and secrets of jobs.

Files are written in parts, each by a statement that does not wait for writers, and copied to a folder of the
machine that runs the job. Parts without a stored job are listed by `holders`.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
    union_all,
    update,
)

from conspectus.errors import InvalidInput, LockLost, NotFound, StorageError, UnreadableFile, require_range
from conspectus.model.ids import CollectionId, JobId, SourceId
from conspectus.model.jobs import FINISHED, IngestReport, Job, JobPage, JobRates, JobState, Upload
from conspectus.model.jobs import Connection as Wiki
from conspectus.model.records import Metadata
from conspectus.ports import Clock
from conspectus.ports.jobs import JobPlace, JobScope
from conspectus.private import make_file, make_folder
from conspectus.records.core.collections import state
from conspectus.records.core.rows import columns_of, newest_page, to_columns, to_model
from conspectus.records.core.transactions import SqlStore, Transactions, reading, row_of, writing
from conspectus.records.tables.core import collections
from conspectus.records.tables.jobs import connections, job_files, job_secrets, jobs
from conspectus.text.times import from_microseconds, to_microseconds

PAGE = 100
SPANS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}


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
    found = _job(connection, job)
    if found is None:
        raise NotFound("job", job)
    if found.state in unless or not fields:
        return found
    if attempt not in {None, found.attempts}:
        raise LockLost(f"job {job}")
    connection.execute(update(jobs).where(jobs.c.id == job).values(to_columns(Job, fields)))
    return _job(connection, job) or found


def _jobs(connection: Connection, scope: JobScope, *, after: str | None = None, limit: int = PAGE) -> JobPage:
    require_range("limit", limit, 1, PAGE)
    rows, following = newest_page(
        connection, select(jobs).where(_within(scope)), jobs, after=after, limit=limit
    )
    return JobPage(tuple(to_model(Job, row._mapping) for row in rows), following)


def _report(connection: Connection, scope: JobScope, *, now: datetime) -> IngestReport:
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
    values = columns_of(wiki)
    same = connections.c.id == wiki.id
    if connection.execute(update(connections).where(same).values(values)).rowcount == 0:
        state(connection, wiki.collection)
        connection.execute(insert(connections), values)
    return wiki


def _connections(connection: Connection, collection: CollectionId) -> list[Wiki]:
    chosen = select(connections).where(connections.c.collection == collection)
    rows = connection.execute(chosen.order_by(connections.c.name))
    return [to_model(Wiki, row._mapping) for row in rows]


def _delete_connection(connection: Connection, wiki: str) -> bool:
    return connection.execute(delete(connections).where(connections.c.id == wiki)).rowcount > 0


class SqlJobStore(SqlStore):
    """The methods of the port `Ledger`, each as one transaction."""

    add = writing(_add, locks=lambda job: {row_of(collections, job.collection), row_of(jobs, job.id)})
    job = reading(_job)
    change = writing(_change, locks=lambda job, **_: {row_of(jobs, job)})
    jobs = reading(_jobs)
    report = reading(_report)
    connections = reading(_connections)
    put_connection = writing(
        _put_connection,
        locks=lambda wiki: {row_of(collections, wiki.collection), row_of(connections, wiki.id)},
    )
    delete_connection = writing(_delete_connection, locks=lambda wiki: {row_of(connections, wiki)})


PART: Final = 1 << 20


class SqlJobFiles:
    """The `JobFiles` port. `folder` is for copies of this process."""

    def __init__(self, transactions: Transactions, folder: Path, clock: Clock) -> None:
        self._read = transactions.read
        self._beside = transactions.autocommitted
        self._folder = folder
        self._clock = clock

    async def store_secret(self, job: JobId, secret: Metadata) -> None:
        row = {"job": job, "secret": json.dumps(dict(secret)), "stored": self._now()}
        await self._beside(partial(_insert, table=job_secrets, row=row))

    async def secret(self, job: JobId) -> Metadata | None:
        secret = select(job_secrets.c.secret).where(job_secrets.c.job == job)
        stored = await self._read(lambda connection: connection.execute(secret).scalar())
        return None if stored is None else json.loads(stored)

    async def store_files(self, job: JobId, uploads: Sequence[Upload]) -> None:
        async with AsyncExitStack() as unless_kept:
            unless_kept.push_async_callback(self.drop, job)
            for number, upload in enumerate(uploads):
                parts = _parts(upload)
                place = 0
                while (data := await asyncio.to_thread(next, parts, None)) is not None:
                    row = {"job": job, "file": number, "part": place, "data": data, "stored": self._now()}
                    await self._beside(partial(_insert, table=job_files, row=row))
                    place += 1
            unless_kept.pop_all()

    async def files(self, job: JobId) -> Sequence[Path]:
        counts = await self._read(partial(_counts, job=job))
        if not counts:
            return ()
        target = self._folder / job
        await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
        made = await asyncio.to_thread(self._new_folder)
        for number, parts in counts:
            make_file(made / str(number))
            with (made / str(number)).open("wb") as file:
                for part in range(parts):
                    data = await self._read(partial(_part, job=job, file=number, part=part))
                    await asyncio.to_thread(file.write, data)
        await asyncio.to_thread(made.rename, target)
        return [target / str(number) for number, _ in counts]

    async def drop(self, job: JobId) -> None:
        for table in (job_secrets, job_files):
            await self._beside(partial(_delete, table=table, job=job))
        await asyncio.to_thread(shutil.rmtree, self._folder / job, ignore_errors=True)

    async def holders(self) -> Mapping[JobId, datetime]:
        return await self._read(_holders)

    def _now(self) -> int:
        return to_microseconds(self._clock())

    def _new_folder(self) -> Path:
        """Create a folder for the current account only. Raises StorageError."""
        try:
            make_folder(self._folder)
            return Path(mkdtemp(dir=self._folder))
        except OSError as fault:
            raise StorageError(f"files could not be copied to {self._folder}: {fault.strerror}") from fault


def unfinished_jobs(connection: Connection) -> list[JobId]:
    """Return the unfinished jobs: only they need their stored data."""
    chosen = select(jobs.c.id).where(jobs.c.state.not_in(FINISHED)).order_by(jobs.c.id)
    return [JobId(job) for job in connection.scalars(chosen)]


def _parts(upload: Upload) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, at least one. Raises UnreadableFile."""
    if isinstance(upload.data, bytes):
        yield upload.data[:PART]
        for start in range(PART, len(upload.data), PART):
            yield upload.data[start : start + PART]
        return
    try:
        with upload.data.open("rb") as source:
            yield source.read(PART)
            while block := source.read(PART):
                yield block
    except OSError as fault:
        raise UnreadableFile(upload.name, fault.strerror or str(fault)) from fault


def _insert(connection: Connection, table: Table, row: Mapping[str, object]) -> None:
    connection.execute(insert(table), row)


def _delete(connection: Connection, table: Table, job: JobId) -> None:
    connection.execute(delete(table).where(table.c.job == job))


def _counts(connection: Connection, job: JobId) -> list[tuple[int, int]]:
    """Return the files of a job by number, with their counts of parts."""
    chosen = select(job_files.c.file, func.count()).where(job_files.c.job == job)
    ordered = chosen.group_by(job_files.c.file).order_by(job_files.c.file)
    return [(number, parts) for number, parts in connection.execute(ordered)]


def _part(connection: Connection, job: JobId, file: int, part: int) -> bytes:
    key = (job_files.c.job == job, job_files.c.file == file, job_files.c.part == part)
    data: bytes | None = connection.execute(select(job_files.c.data).where(*key)).scalar()
    if data is None:
        raise StorageError(f"the files of job {job} were deleted while they were copied")
    return data


def _holders(connection: Connection) -> dict[JobId, datetime]:
    stored = union_all(
        *(select(table.c.job, table.c.stored) for table in (job_secrets, job_files))
    ).subquery()
    newest = select(stored.c.job, func.max(stored.c.stored)).group_by(stored.c.job)
    return {JobId(job): from_microseconds(moment) for job, moment in connection.execute(newest)}
