"""One task for each thing that is to be followed, for as long as it is to be."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from conspectus.errors import ConspectusError, RecordsDamaged

logger = logging.getLogger(__name__)

LOOK: Final = 5.0
"""Seconds between two looks at what there is to follow; one that failed is tried again at the next."""

Follow = Callable[[], Awaitable[None]]
Wanted = Callable[[], Awaitable[Mapping[str, Follow]]]
"""What there is to follow now, by name."""


class Followers:
    """Starts following what is new, and stops following what is gone."""

    def __init__(self, wanted: Wanted, *, look: float = LOOK) -> None:
        self._wanted = wanted
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
            wanted = await self._wanted()
        except RecordsDamaged:
            raise
        except ConspectusError as fault:
            logger.warning("what is to be followed cannot be read: %s", fault.code)
            return
        for name in self._tasks.keys() - wanted.keys():
            self._tasks.pop(name).cancel()
        for name, follow in wanted.items():
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.create_task(_followed(name, follow))


async def _followed(name: str, follow: Follow) -> None:
    try:
        await follow()
    except ConspectusError as fault:
        logger.warning("connection %s is not followed: %s", name, fault.code)
