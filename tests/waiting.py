"""Waiting for what other tasks and processes do."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

POLL_SECONDS = 0.05
PATIENCE = 120.0
"""Seconds after which it will not come, however busy the machine is."""


async def until(
    holds: Callable[[], bool | Awaitable[object]], *, seconds: float = PATIENCE, poll: float = POLL_SECONDS
) -> None:
    """Return once a condition holds; look every `poll` seconds. Raises TimeoutError if it takes too long."""
    async with asyncio.timeout(seconds):
        while True:
            answer = holds()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(poll)


def blocking_until(holds: Callable[[], object]) -> None:
    """Return once a condition holds, without an event loop. Raises TimeoutError if that takes too long."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(POLL_SECONDS)
