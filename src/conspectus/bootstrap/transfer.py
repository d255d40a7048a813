"""Moving a store to another place: its rows, and the files of jobs that are not done."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from conspectus.bootstrap.databases import database_of
from conspectus.bootstrap.store_address import StoreAddress, place_of
from conspectus.errors import Conflict, InvalidInput, NotFound, StorageError
from conspectus.model.ids import JobId
from conspectus.model.jobs import Upload
from conspectus.ports import Progress
from conspectus.ports.jobs import JobFiles
from conspectus.private import make_folder
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.records.core.database import Database
    from conspectus.records.transfer.transfer import Moved

FILES = ("secrets", "uploads")
"""What running jobs have beside the records, in folders of a store."""
_FILE_TABLES = frozenset({"job_secrets", "job_files"})
"""The same in a database."""


@dataclass(frozen=True, slots=True)
class MoveReceipt:
    """What was moved, from where to where."""

    source: str
    target: str
    moved: "Moved"


def move(
    source: str | Path, target: str | Path, *, settings: Settings, progress: Progress | None = None
) -> MoveReceipt:
    """Move all rows of a store into an empty place; the source is only read, and goes on all the while.

    Run again with the same places it goes on where it was killed. Indexes are not moved. Raises NotFound,
    InvalidInput, Conflict for a target that is not empty, StorageTooNew, StorageBusy, or StorageError.
    """
    from conspectus.records.core.database import transact
    from conspectus.records.jobs.store import unfinished_jobs
    from conspectus.records.transfer.transfer import Move, Target

    here, there = place_of(source, settings), place_of(target, settings)
    if here.folder.resolve() == there.folder.resolve():
        raise InvalidInput("to", "is the store that is to be moved")
    if not here.is_shared and not Path(here.records).is_file():
        raise NotFound("store at", str(here.folder))
    if not there.is_shared:
        _prepare_folder(there)
    with database_of(here, settings) as given, database_of(there, settings) as taken:
        origin = f"{given.name} [{here.folder.name}]"
        aside = _FILE_TABLES if here.is_shared != there.is_shared else frozenset[str]()

        def carry() -> None:
            if here.is_shared and there.is_shared:
                return
            # Only what a job has that ends later is complete, and stays for as long as the lock is held.
            with TemporaryDirectory() as copies:
                held = [_job_files(*each, Path(copies)) for each in ((here, given), (there, taken))]
                asyncio.run(_carry(*held, jobs=transact(given, given.reading, unfinished_jobs)))

        moved = Move(given, Target(taken), progress=progress, without=aside).run(origin=origin, at_last=carry)
        return MoveReceipt(given.name, taken.name, moved)


def _prepare_folder(there: StoreAddress) -> None:
    """Make the folder. Raises Conflict where something lies in it that is of no move."""
    records = Path(there.records)
    try:
        make_folder(there.folder)
        found = {each.name for each in there.folder.iterdir()}
    except OSError as fault:
        raise StorageError(
            f"{there.folder} cannot be made a folder for the store: {fault.strerror}"
        ) from fault
    ours = {records.name, f"{records.name}-wal", f"{records.name}-shm", *FILES}
    if found and (records.name not in found or not found <= ours):
        other = (sorted(found - ours) or sorted(found))[0]
        shown = f"a store, and {other}" if records.name in found else other
        raise Conflict("target", str(there.folder), f"holds {shown}; move to a folder that is empty")


def _job_files(place: StoreAddress, database: "Database", copies: Path) -> JobFiles:
    """What jobs have: in the folder of a store, or in its database, from where `copies` are made."""
    if not place.is_shared:
        from conspectus.sources.files.job_files import LocalJobFiles

        return LocalJobFiles(place.folder)
    from conspectus.records.core.transactions import Transactions
    from conspectus.records.jobs.store import SqlJobFiles

    return SqlJobFiles(Transactions(database), copies, lambda: datetime.now(UTC))


async def _carry(given: JobFiles, taken: JobFiles, *, jobs: Sequence[JobId]) -> None:
    """Copy all that some jobs of one store have into another; what a move before this one copied goes."""
    for job in await taken.holders():
        await taken.drop(job)
    for job in jobs:
        if (secret := await given.secret(job)) is not None:
            await taken.keep_secret(job, secret)
        if files := await given.files(job):
            await taken.keep_files(job, [Upload(path.name, path) for path in files])
