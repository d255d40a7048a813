"""Waiting for one's turn among the processes that share the records, and so the index."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, TypeAlias

from conspectus.ports.locks import Lock

Work: TypeAlias = Literal["write", "build"]
Turn: TypeAlias = Callable[[Work], AbstractAsyncContextManager[Lock]]
"""Whether this process has the turn for a kind of work, until the block ends or the turn is lost."""

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 0.25


@asynccontextmanager
async def my_turn(turn: Turn, work: Work) -> AsyncIterator[Lock]:
    """Wait until it is this process's turn, and hold it for the block."""
    pause = _FIRST_WAIT
    while True:
        async with turn(work) as hold:
            if hold:
                yield hold
                return
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_WAIT)
