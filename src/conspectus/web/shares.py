"""How many requests are answered at once, and the share that one user may have of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.errors import Overloaded
from conspectus.model.access import Person
from conspectus.settings import Settings
from conspectus.web.limits import is_limited
from conspectus.web.metrics import Metrics

SHARE_OF_WAITING = 2
"""One user may have a half of the requests that wait."""


class RequestSlot:
    """A place among the requests that are answered, which can be given back before the answer is over."""

    def __init__(self, *places: asyncio.Semaphore) -> None:
        self._places = places

    def give_back(self) -> None:
        """Let another request have it."""
        for each in self._places:
            each.release()
        self._places = ()


class Shares:
    """Lets requests wait for a place. All keys of a user together have no more than the user's share."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._places = asyncio.Semaphore(settings.max_concurrent_requests)
        self._places_of: dict[str, asyncio.Semaphore] = {}
        self._waiting: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it has a place. Raises Overloaded."""
        if not is_limited(scope):
            await self._app(scope, receive, send)
            return
        async with self._place(scope["state"]["person"]) as place:
            scope["state"]["place"] = place
            await self._app(scope, receive, send)

    @asynccontextmanager
    async def _place(self, person: Person) -> AsyncIterator[RequestSlot]:
        shared = person.key is not None and self._settings.max_user_requests
        user = person.id if shared else ""
        own = self._places_of.setdefault(
            user, asyncio.Semaphore(shared or self._settings.max_concurrent_requests)
        )
        self._present[user] += 1
        try:
            place = await self._wait(user, own)
            try:
                yield place
            finally:
                place.give_back()
        finally:
            self._present[user] -= 1
            if not self._present[user]:
                del self._present[user], self._places_of[user]

    async def _wait(self, user: str, own: asyncio.Semaphore) -> RequestSlot:
        most, all_waiting = self._settings.max_queued_requests, self._waiting.total()
        if self._places.locked() and all_waiting >= most:
            raise Overloaded("the server answers as many requests as it can")
        if user and own.locked() and self._waiting[user] >= max(1, most // SHARE_OF_WAITING):
            raise Overloaded("the server answers as many requests of one user as it may")
        self._count(user, 1)
        try:
            await own.acquire()
            try:
                await self._places.acquire()
            except asyncio.CancelledError:
                own.release()
                raise
        finally:
            self._count(user, -1)
        return RequestSlot(own, self._places)

    def _count(self, user: str, change: int) -> None:
        self._waiting[user] += change
        if not self._waiting[user]:
            del self._waiting[user]
        self._metrics.waiting.set(self._waiting.total())
