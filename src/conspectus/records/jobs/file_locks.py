"""Whose turn it is among the processes that have a store in a folder open."""

import errno
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from conspectus.ports.locks import Lock
from conspectus.private import make_file


@dataclass(frozen=True, slots=True)
class FileHold:
    """A lock of a file, which the system keeps for a process until it dies, however long it stands still."""

    mine: bool
    fence: int = 0

    def __bool__(self) -> bool:
        """Whether this process has the lock."""
        return self.mine

    async def confirm(self) -> None:
        """Nothing: it cannot be lost."""


@asynccontextmanager
async def turn(lock: Path) -> AsyncIterator[Lock]:
    """Whether this process holds the lock, which it gives back at the end of the block or when it dies."""
    file = _opened(lock)
    if file is None:
        yield FileHold(mine=False)
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield FileHold(mine=False)
            return
        yield FileHold(mine=True)


def _opened(lock: Path) -> TextIO | None:
    """The file of a lock; None in a folder that this process cannot write, where it has no work to do."""
    try:
        make_file(lock)
        return lock.open("a")
    except OSError as fault:
        if fault.errno in {errno.EROFS, errno.EACCES}:
            return None
        raise
