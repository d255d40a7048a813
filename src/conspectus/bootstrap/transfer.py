"""Moving a store between databases and indexes, backups, and restoring them."""

import asyncio
import importlib.metadata
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from conspectus.bootstrap.store_address import StoreAddress, address_of, database_of, is_address
from conspectus.deferred import dataclass
from conspectus.errors import Conflict, InvalidInput, NotFound, StorageError, UnreadableFile
from conspectus.model.files import expand_home
from conspectus.model.ids import JobId
from conspectus.model.jobs import Upload
from conspectus.ports import Progress
from conspectus.ports.jobs import JobFiles
from conspectus.private import make_folder, open_for_writing, sync
from conspectus.settings import RECORDS, Settings

if TYPE_CHECKING:
    from conspectus.records.core.database import Database
    from conspectus.records.transfer.backup import Manifest
    from conspectus.records.transfer.transfer import Moved

FILES = ("secrets", "uploads")
"""Data of unfinished jobs besides the records, in folders of a store."""
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
    """Copy all rows of a store into an empty one. The source is only read, and may be used meanwhile.

    An interrupted move continues if it is run again with the same addresses. Indexes are not copied. Raises
    NotFound, InvalidInput, Conflict for a target that is not empty, StorageTooNew, StorageBusy, or
    StorageError.
    """
    from conspectus.records.core.database import transact
    from conspectus.records.jobs.files import list_unfinished_jobs
    from conspectus.records.transfer.target import Target
    from conspectus.records.transfer.transfer import Move

    here, there = address_of(source, settings), address_of(target, settings)
    if here.folder.resolve() == there.folder.resolve():
        raise InvalidInput("to", "is the source store; choose another target")
    if not here.is_shared and not Path(here.records).is_file():
        raise NotFound("store at", str(here.folder))
    if not there.is_shared:
        _prepare_folder(there)
    with database_of(here, settings) as source_database, database_of(there, settings) as target_database:
        # A restored store is not in WAL mode yet, where a reader would block the last round.
        source_database.prepare()
        origin = f"{source_database.name} [{here.folder.name}]"
        aside = _FILE_TABLES if here.is_shared != there.is_shared else frozenset[str]()

        def copy_files() -> None:
            if here.is_shared and there.is_shared:
                return
            # The lock is held, so the data of unfinished jobs is complete and not deleted meanwhile.
            with TemporaryDirectory() as copies:
                source_files = _job_files(here, source_database, Path(copies))
                target_files = _job_files(there, target_database, Path(copies))
                jobs = transact(source_database, source_database.reading, list_unfinished_jobs)
                asyncio.run(_copy_job_files(source_files, target_files, jobs=jobs))

        moved = Move(source_database, Target(target_database), progress=progress, without=aside).run(
            origin=origin, at_last=copy_files
        )
        return MoveReceipt(source_database.name, target_database.name, moved)


def _prepare_folder(there: StoreAddress) -> None:
    """Create the folder. Raises Conflict if it contains anything but the remains of a move."""
    records = Path(there.records)
    try:
        make_folder(there.folder)
        names = {path.name for path in there.folder.iterdir()}
    except OSError as fault:
        raise StorageError(
            f"{there.folder} cannot be used as the folder of a store: {fault.strerror}"
        ) from fault
    ours = {records.name, f"{records.name}-wal", f"{records.name}-shm", *FILES}
    if names and (records.name not in names or not names <= ours):
        other = (sorted(names - ours) or sorted(names))[0]
        contents = f"a store, and {other}" if records.name in names else other
        raise Conflict("target", str(there.folder), f"holds {contents}; move to a folder that is empty")


def _job_files(address: StoreAddress, database: "Database", copies: Path) -> JobFiles:
    """Open the job files: in the folder of a store, or in its database, from where `copies` are made."""
    if not address.is_shared:
        from conspectus.sources.files.job_files import LocalJobFiles

        return LocalJobFiles(address.folder)
    from conspectus.records.core.transactions import Transactions
    from conspectus.records.jobs.files import SqlJobFiles

    return SqlJobFiles(Transactions(database), copies, lambda: datetime.now(UTC))


async def _copy_job_files(source: JobFiles, target: JobFiles, *, jobs: Sequence[JobId]) -> None:
    """Copy the files of jobs to another store, and delete what an earlier move copied."""
    for job in await target.holders():
        await target.drop(job)
    for job in jobs:
        if (secret := await source.secret(job)) is not None:
            await target.store_secret(job, secret)
        if files := await source.files(job):
            await target.store_files(job, [Upload(path.name, path) for path in files])


_WORK = ".restoring"


@dataclass(frozen=True, slots=True)
class BackupReceipt:
    """A backup and its content. `bytes` is the size of the file, `unpacked` that of the store."""

    file: str
    bytes: int
    unpacked: int
    manifest: "Manifest"


def back_up(
    path: str | Path, file: Path, *, settings: Settings, progress: Progress | None = None
) -> BackupReceipt:
    """Write a consistent snapshot of a store in a folder to a new file. The store may be used meanwhile.

    The file is checked before it gets its name. Raises NotFound, Conflict if the file exists, InvalidInput
    for a database, StorageBusy, or StorageError.
    """
    from conspectus.records.transfer.backup import write_archive

    address, file = address_of(path, settings), file.absolute()
    if address.is_shared:
        raise InvalidInput("data", "is a database; back it up with scripts/postgres_backup.sh")
    if not Path(address.records).is_file():
        raise NotFound("store at", str(address.folder))
    if file.exists():
        raise Conflict("file", str(file), "exists already; choose another name")
    with _disk(file), TemporaryDirectory(prefix=".conspectus-backup-", dir=file.parent) as work:
        members, moment = _copy_files(address.folder, Path(work), settings, progress)
        manifest = _describe(members, moment)
        archive = Path(work) / "archive"
        write_archive(archive, members, manifest)
        members[RECORDS].unlink()
        check_backup(archive, settings=settings, beside=Path(work))
        _rename_new(archive, file)
        sync(file.parent)
    return BackupReceipt(str(file), file.stat().st_size, manifest.size, manifest)


def check_backup(file: Path, *, settings: Settings, beside: Path | None = None) -> BackupReceipt:
    """Unpack a backup into a temporary folder, and compare it with its manifest.

    Raises UnreadableFile, TooLarge, StorageError or StorageTooNew.
    """
    with _disk(file), TemporaryDirectory(prefix=".conspectus-check-", dir=beside) as work:
        manifest = _unpack(file, Path(work), settings)
    return BackupReceipt(str(file), file.stat().st_size, manifest.size, manifest)


def restore(file: Path, folder: Path, *, settings: Settings) -> BackupReceipt:
    """Restore a backup to a new or empty folder, after comparing all of it with its manifest.

    Raises Conflict for a folder that is not empty, InvalidInput for a database, and the errors of
    `check_backup`.
    """
    if is_address(folder):
        raise InvalidInput("to", "is a database; restore to a folder and `conspectus migrate` from there")
    folder = expand_home(folder).absolute()
    with _disk(folder), _empty_folder(folder) as work:
        manifest = _unpack(file, work, settings)
        for name in FILES:
            if (work / name).is_dir():
                (work / name).rename(folder / name)
        # The records come last: a folder without them is no store.
        _rename_new(work / RECORDS, folder / RECORDS)
        sync(folder, folder.parent)
    return BackupReceipt(str(file), file.stat().st_size, manifest.size, manifest)


@contextmanager
def _empty_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder inside a folder that is otherwise empty."""
    work = folder / _WORK
    is_new = not folder.exists()
    shutil.rmtree(work, ignore_errors=True)
    for path in () if is_new else folder.iterdir():
        raise Conflict("folder", str(folder), f"holds {path.name}; restore to one that is empty")
    make_folder(work)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if is_new and not any(folder.iterdir()):
            folder.rmdir()


def _copy_files(
    folder: Path, work: Path, settings: Settings, progress: Progress | None
) -> tuple[dict[str, Path], datetime]:
    """Copy all data of a store. Returns the files by path in the store, and the time of the snapshot."""
    from conspectus.records.transfer.sqlite_copies import copy_online, list_unfinished_jobs

    copies: dict[Path, Path] = {}
    moments = []

    def take_files() -> None:
        moments.append(datetime.now(UTC))
        folders = chain.from_iterable(os.walk(folder / name) for name in FILES)
        files = sorted(Path(parent) / name for parent, _, names in folders for name in names)
        for number, file in enumerate(files):
            copy = work / f"file-{number}"
            # Files that disappear meanwhile belong to finished jobs.
            with suppress(FileNotFoundError):
                _link_or_copy(file, copy)
                copies[file.relative_to(folder)] = copy

    copy_online(
        folder / RECORDS,
        work / RECORDS,
        busy_seconds=settings.lock_timeout_seconds,
        at_moment=take_files,
        progress=progress,
    )
    jobs = frozenset(list_unfinished_jobs(work / RECORDS))
    job_files = {path.as_posix(): copy for path, copy in copies.items() if path.parts[1] in jobs}
    return {RECORDS: work / RECORDS, **job_files}, moments[0]


def _describe(members: Mapping[str, Path], moment: datetime) -> "Manifest":
    from conspectus.records.transfer.backup import Manifest, TableSum, member_of
    from conspectus.records.transfer.sqlite_copies import check_copy

    version, sums = check_copy(members[RECORDS])
    return Manifest(
        program=importlib.metadata.version("conspectus"),
        version=version,
        moment=moment.isoformat(),
        tables={name: TableSum(table.rows, str(table)) for name, table in sums.items()},
        members={name: member_of(path) for name, path in members.items()},
    )


def _unpack(file: Path, work: Path, settings: Settings) -> "Manifest":
    """Unpack all members into a folder and check them."""
    from conspectus.records.transfer.backup import TableSum, open_archive, unpack
    from conspectus.records.transfer.sqlite_copies import check_copy

    with open_archive(file, max_bytes=settings.max_restored_bytes) as (archive, manifest):
        if manifest.size > (free := shutil.disk_usage(work).free):
            raise StorageError(f"{work} has {free} bytes free, the backup needs {manifest.size}")
        for name in manifest.members:
            target = work / name
            make_folder(target.parent)
            with open_for_writing(target) as copied:
                unpack(archive, manifest, name, copied)
    version, sums = check_copy(work / RECORDS)
    tables = {name: TableSum(table.rows, str(table)) for name, table in sums.items()}
    if (version, tables) != (manifest.version, manifest.tables):
        raise UnreadableFile(str(file), "its tables do not match its manifest")
    return manifest


def _link_or_copy(file: Path, copy: Path) -> None:
    """Link the file under another name, or copy it if that is not possible. Such files never change."""
    try:
        os.link(file, copy)
    except OSError:
        shutil.copyfile(file, copy)


def _rename_new(path: Path, file: Path) -> None:
    """Rename a file without replacing an existing one. Raises Conflict."""
    try:
        try:
            os.link(path, file)
        except FileExistsError:
            raise
        except OSError:
            # On file systems without hard links, the name is reserved by an empty file.
            file.touch(mode=0o600, exist_ok=False)
            path.replace(file)
    except FileExistsError as fault:
        raise Conflict("file", str(file), "exists already; choose another name") from fault


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise StorageError(f"{path}: {fault.strerror or fault}; partial files were removed") from fault
