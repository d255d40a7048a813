"""Whose turn it is among the processes that have a store open."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(lock: Path) -> Iterator[bool]:
    """Whether this process holds the lock, which it gives back at the end of the block or when it dies."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
