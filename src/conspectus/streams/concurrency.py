"""Several things at once, of which none goes on alone."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")


async def all_of(works: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """What each comes to, in the order given; where one raises, the others are stopped first."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
