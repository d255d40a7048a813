"""Data of jobs besides their rows, as files beside the store with permissions for its owner only.

`secrets/<job>` is JSON, `uploads/<job>/<n>` are files. Both are deleted when their job ends.
"""

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from conspectus.errors import StorageError, UnreadableFile
from conspectus.model.ids import JobId
from conspectus.model.jobs import Upload
from conspectus.model.records import Metadata
from conspectus.private import make_folder, open_for_writing, sync

BLOCK = 1 << 20
P = ParamSpec("P")
T = TypeVar("T")


def _threaded(
    work: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a method that does its work in a thread."""

    @wraps(work)
    async def call(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(work, self, *args, **named)

    return call


class LocalJobFiles:
    """The `JobFiles` port in a folder."""

    def __init__(self, folder: Path) -> None:
        self._secrets = folder / "secrets"
        self._uploads = folder / "uploads"

    @_threaded
    def store_secret(self, job: JobId, secret: Metadata) -> None:
        """Store a secret in a file for the current account only. Raises StorageError."""
        try:
            make_folder(self._secrets)
            with open_for_writing(self._secrets / job, new=False) as file:
                file.write(json.dumps(dict(secret)).encode())
            sync(self._secrets)
        except OSError as fault:
            raise StorageError(f"a secret could not be stored: {fault.strerror}") from fault

    @_threaded
    def secret(self, job: JobId) -> Metadata | None:
        """Return the secret of a job; None if it has none, or it was deleted."""
        try:
            secret: Metadata = json.loads((self._secrets / job).read_bytes())
        except FileNotFoundError:
            return None
        return secret

    @_threaded
    def store_files(self, job: JobId, uploads: Sequence[Upload]) -> None:
        """Copy the files durably. Raises UnreadableFile or StorageError."""
        folder = self._uploads / job
        with ExitStack() as unless_kept:
            unless_kept.callback(self._drop, job)
            try:
                make_folder(self._uploads)
                make_folder(folder)
                for number, upload in enumerate(uploads):
                    _copy(upload, folder / str(number))
                sync(folder, self._uploads)
            except OSError as fault:
                raise StorageError(f"the files could not be stored: {fault.strerror}") from fault
            unless_kept.pop_all()

    @_threaded
    def files(self, job: JobId) -> Sequence[Path]:
        """Return the paths of the files in the order in which they were stored."""
        folder = self._uploads / job
        return sorted(folder.iterdir(), key=lambda path: int(path.name)) if folder.is_dir() else []

    @_threaded
    def drop(self, job: JobId) -> None:
        """Delete everything that is stored for a job."""
        self._drop(job)

    def _drop(self, job: JobId) -> None:
        (self._secrets / job).unlink(missing_ok=True)
        shutil.rmtree(self._uploads / job, ignore_errors=True)

    @_threaded
    def holders(self) -> Mapping[JobId, datetime]:
        """Return the jobs with stored files, and when these last changed."""
        changes: dict[JobId, datetime] = {}
        for folder in (self._secrets, self._uploads):
            for path in folder.iterdir() if folder.is_dir() else ():
                changed = max((_changed(file) for file in (path, *path.glob("*"))), default=0.0)
                changes[JobId(path.name)] = datetime.fromtimestamp(changed, UTC)
        return changes


def _copy(upload: Upload, target: Path) -> None:
    """Write a file for the current account only, and sync it to disk."""
    try:
        source = BytesIO(upload.data) if isinstance(upload.data, bytes) else upload.data.open("rb")
    except OSError as fault:
        raise UnreadableFile(upload.name, fault.strerror or str(fault)) from fault
    with source, open_for_writing(target, new=False) as file:
        shutil.copyfileobj(source, file, BLOCK)


def _changed(path: Path) -> float:
    """Return the time of the last write; a time in the distant past for a deleted file."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
