"""Waiting for one's turn among the processes that share the records, and so the index."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Literal, TypeAlias

Work: TypeAlias = Literal["write", "build"]
Turn: TypeAlias = Callable[[Work], AbstractContextManager[bool]]
"""Whether this process has the turn for a kind of work, until the block ends or the process dies."""

_RETRY_SECONDS = 0.02


@asynccontextmanager
async def my_turn(turn: Turn, work: Work) -> AsyncIterator[None]:
    """Wait until it is this process's turn, and hold it for the block."""
    while True:
        with turn(work) as mine:
            if mine:
                yield
                return
        await asyncio.sleep(_RETRY_SECONDS)
