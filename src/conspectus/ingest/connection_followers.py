"""Follow connections: one task for each that is watched."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from conspectus.errors import (
    ConspectusError,
    RecordsDamaged,
)

logger = logging.getLogger(__name__)

RELOAD_SECONDS: Final = 5.0
"""Seconds between two reads of the watch list; a failed one is repeated then."""

Follow = Callable[[], Awaitable[None]]
LoadConnections = Callable[[], Awaitable[Mapping[str, Follow]]]
"""The connections to watch now, by name."""


class Followers:
    """Starts following what is new, and stops following what is gone."""

    def __init__(self, load: LoadConnections, *, look: float = RELOAD_SECONDS) -> None:
        self._wanted = load
        self._look = look
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tending: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if it has not begun. Raises what ended it."""
        if self._tending is None:
            self._tending = asyncio.create_task(self._tend())
        if self._tending.done():
            self._tending.result()

    async def close(self) -> None:
        """Stop following everything."""
        running = [task for task in (self._tending, *self._tasks.values()) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _tend(self) -> None:
        while True:
            await self._tend_once()
            await asyncio.sleep(self._look)

    async def _tend_once(self) -> None:
        try:
            load = await self._wanted()
        except RecordsDamaged:
            raise
        except ConspectusError as fault:
            logger.warning("watch_list_failed code=%(code)s", {"code": fault.code})
            return
        for name in self._tasks.keys() - load.keys():
            self._tasks.pop(name).cancel()
        for name, follow in load.items():
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.create_task(_log_follower(name, follow))


async def _log_follower(name: str, follow: Follow) -> None:
    try:
        await follow()
    except ConspectusError as fault:
        logger.warning(
            "watch_failed connection=%(connection)s code=%(code)s", {"connection": name, "code": fault.code}
        )
