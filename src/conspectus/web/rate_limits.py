"""How many requests each key may have in a minute, counted over all processes of a store."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.errors import TooManyRequests
from conspectus.ports.rate_counters import RateCounters

PORTIONS: Final = 20
"""About so many times in a minute a process asks for more of what a key may have."""
REMEMBERED: Final = 10_000


@dataclass(slots=True)
class Portion:
    """What a process was given of a key's requests and has not used, until the minute is over.

    `over` says that there are no more to be had.
    """

    left: int
    until: float
    over: bool

    @property
    def answers(self) -> bool:
        """Whether it is known without asking if the key may have another one."""
        return time.monotonic() < self.until and (self.over or self.left > 0)


class Rates:
    """Turns away requests of keys that had as many as they may have. `most` of 0: nobody is counted."""

    def __init__(self, app: ASGIApp, allowances: RateCounters, most: int) -> None:
        self._app = app
        self._allowances = allowances
        self._most = most
        self._at_once = portion_of(most)
        self._portions: OrderedDict[str, Portion] = OrderedDict()
        self._asking = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if its key may have another one. Raises TooManyRequests."""
        person = scope.get("state", {}).get("person")
        if self._most and person is not None and person.key is not None:
            await self._count(person.key)
        await self._app(scope, receive, send)

    async def _count(self, key: str) -> None:
        portion = self._portions.get(key)
        if portion is None or not portion.answers:
            async with self._asking:
                portion = self._portions.get(key)
                if portion is None or not portion.answers:
                    portion = await self._more(key)
        if portion.over:
            raise TooManyRequests(self._most, retry_after=max(portion.until - time.monotonic(), 1.0))
        portion.left -= 1

    async def _more(self, key: str) -> Portion:
        taken = await self._allowances.take(f"key {key}", self._at_once, most=self._most)
        left = self._at_once if taken.granted else 0
        portion = Portion(left, time.monotonic() + taken.seconds, over=not taken.granted)
        self._portions[key] = portion
        self._portions.move_to_end(key)
        if len(self._portions) > REMEMBERED:
            self._portions.popitem(last=False)
        return portion


def portion_of(most: int) -> int:
    """How much to take at once: a part of which whole ones make up all, so that none of it is left over."""
    return max((each for each in range(1, most // PORTIONS + 1) if most % each == 0), default=1)
