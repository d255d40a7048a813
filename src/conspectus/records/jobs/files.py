"""Files and secrets of jobs.

Files are written in parts, each by a statement that does not wait for writers, and copied to a folder of the
machine that runs the job. Parts without a stored job are listed by `holders`.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from sqlalchemy import Connection, Table, delete, func, insert, select, union_all

from conspectus.errors import StorageError, UnreadableFile
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Upload
from conspectus.model.records import Metadata
from conspectus.ports import Clock
from conspectus.private import make_file, make_folder
from conspectus.records.core.transactions import Transactions
from conspectus.records.tables.jobs import job_files, job_secrets, jobs
from conspectus.text.times import from_microseconds, to_microseconds

PART_BYTES: Final = 1 << 20


class SqlJobFiles:
    """The `JobFiles` port. `folder` is for copies of this process."""

    def __init__(self, transactions: Transactions, folder: Path, clock: Clock) -> None:
        self._read = transactions.read
        self._autocommit = transactions.autocommit
        self._folder = folder
        self._clock = clock

    async def store_secret(self, job: JobId, secret: Metadata) -> None:
        row = {"job": job, "secret": json.dumps(dict(secret)), "stored": self._now()}
        await self._autocommit(partial(_insert, table=job_secrets, row=row))

    async def secret(self, job: JobId) -> Metadata | None:
        secret = select(job_secrets.c.secret).where(job_secrets.c.job == job)
        stored = await self._read(lambda connection: connection.execute(secret).scalar())
        return None if stored is None else json.loads(stored)

    async def store_files(self, job: JobId, uploads: Sequence[Upload]) -> None:
        async with AsyncExitStack() as unless_kept:
            unless_kept.push_async_callback(self.drop, job)
            for number, upload in enumerate(uploads):
                parts = _parts(upload)
                part_number = 0
                while (data := await asyncio.to_thread(next, parts, None)) is not None:
                    row = {
                        "job": job,
                        "file": number,
                        "part": part_number,
                        "data": data,
                        "stored": self._now(),
                    }
                    await self._autocommit(partial(_insert, table=job_files, row=row))
                    part_number += 1
            unless_kept.pop_all()

    async def files(self, job: JobId) -> Sequence[Path]:
        counts = await self._read(partial(_counts, job=job))
        if not counts:
            return ()
        target = self._folder / job
        await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
        new_folder = await asyncio.to_thread(self._new_folder)
        for number, parts in counts:
            make_file(new_folder / str(number))
            with (new_folder / str(number)).open("wb") as file:
                for part in range(parts):
                    data = await self._read(partial(_part, job=job, file=number, part=part))
                    await asyncio.to_thread(file.write, data)
        await asyncio.to_thread(new_folder.rename, target)
        return [target / str(number) for number, _ in counts]

    async def drop(self, job: JobId) -> None:
        for table in (job_secrets, job_files):
            await self._autocommit(partial(_delete, table=table, job=job))
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


def list_unfinished_jobs(connection: Connection) -> list[JobId]:
    """Return the unfinished jobs: only they need their stored data."""
    query = select(jobs.c.id).where(jobs.c.state.not_in(FINISHED)).order_by(jobs.c.id)
    return [JobId(job) for job in connection.scalars(query)]


def _parts(upload: Upload) -> Iterator[bytes]:
    """Yield the bytes of a file in parts, at least one. Raises UnreadableFile."""
    if isinstance(upload.data, bytes):
        yield upload.data[:PART_BYTES]
        for start in range(PART_BYTES, len(upload.data), PART_BYTES):
            yield upload.data[start : start + PART_BYTES]
        return
    try:
        with upload.data.open("rb") as source:
            yield source.read(PART_BYTES)
            while block := source.read(PART_BYTES):
                yield block
    except OSError as fault:
        raise UnreadableFile(upload.name, fault.strerror or str(fault)) from fault


def _insert(connection: Connection, table: Table, row: Mapping[str, object]) -> None:
    connection.execute(insert(table), row)


def _delete(connection: Connection, table: Table, job: JobId) -> None:
    connection.execute(delete(table).where(table.c.job == job))


def _counts(connection: Connection, job: JobId) -> list[tuple[int, int]]:
    """Return the files of a job by number, with their counts of parts."""
    query = select(job_files.c.file, func.count()).where(job_files.c.job == job)
    ordered = query.group_by(job_files.c.file).order_by(job_files.c.file)
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
