"""Whose turn it is among the processes that have a store in a folder open."""

import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from conspectus.ports.turns import Hold
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
async def turn(lock: Path) -> AsyncIterator[Hold]:
    """Whether this process holds the lock, which it gives back at the end of the block or when it dies."""
    make_file(lock)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield FileHold(mine=False)
            return
        yield FileHold(mine=True)
