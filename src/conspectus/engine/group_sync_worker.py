"""The background task that reads groups of a directory."""

from collections.abc import Awaitable, Callable
from typing import Final

from conspectus.ports.jobs import Turn
from conspectus.streams.leadership import PeriodicTask

FAULT_SECONDS: Final = 600.0
"""Seconds before a directory that could not be read is asked again."""


class GroupSyncWorker(PeriodicTask):
    """Reads groups of the directory in one process per store: the process that holds the lock."""

    def __init__(self, sync: Callable[[], Awaitable[None]], *, turn: Turn, pause: float) -> None:
        super().__init__(turn, "reading groups", sync, pause=pause, again=FAULT_SECONDS)
