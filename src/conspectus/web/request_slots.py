"""Slots for concurrent requests, which users share: requests wait for one, and all keys of a user count."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.errors import Overloaded
from conspectus.model.access import Person
from conspectus.settings import Settings
from conspectus.web.body_limits import ACCOUNT, BodyAccount, UserBodyBytes
from conspectus.web.limits import is_limited
from conspectus.web.metrics import Metrics

USERS_OF_FULL_QUEUE: Final = 2
"""Users who fill the queue: each may have 1/n of the requests that wait."""


class RequestSlot:
    """The right of a request to run now; it can be given back before the response is complete."""

    def __init__(self, *semaphores: asyncio.Semaphore) -> None:
        self._semaphores = semaphores

    def give_back(self) -> None:
        """Give the slot to another request. Idempotent."""
        for semaphore in self._semaphores:
            semaphore.release()
        self._semaphores = ()


class RequestSlots:
    """Lets requests wait for a slot. All keys of a user together have a limited number of slots."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.max_concurrent_requests)
        self._body_bytes = UserBodyBytes(settings.max_user_body_bytes)
        self._user_slots: dict[str, asyncio.Semaphore] = {}
        self._waiting: Counter[str] = Counter()
        self._present: Counter[str] = Counter()
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it has a slot. Raises Overloaded."""
        if not is_limited(scope) or "person" not in scope["state"]:
            await self._app(scope, receive, send)
            return
        person: Person = scope["state"]["person"]
        async with self._slot(person) as slot:
            account = BodyAccount(self._body_bytes, person.id)
            scope["state"].update({"slot": slot, ACCOUNT: account})
            try:
                await self._app(scope, receive, send)
            finally:
                account.give_back()

    @asynccontextmanager
    async def _slot(self, person: Person) -> AsyncIterator[RequestSlot]:
        user, maximum = "", self._settings.max_concurrent_requests
        if person.credential is not None and self._settings.max_user_requests:
            user, maximum = person.id, self._settings.max_user_requests
        user_slots = self._user_slots.setdefault(user, asyncio.Semaphore(maximum))
        self._present[user] += 1
        try:
            slot = await self._wait(user, user_slots)
            try:
                yield slot
            finally:
                slot.give_back()
        finally:
            self._present[user] -= 1
            if not self._present[user]:
                del self._present[user], self._user_slots[user]

    async def _wait(self, user: str, user_slots: asyncio.Semaphore) -> RequestSlot:
        maximum, all_waiting = self._settings.max_queued_requests, self._waiting.total()
        if self._slots.locked() and all_waiting >= maximum:
            raise Overloaded("too many concurrent requests")
        if user and user_slots.locked() and self._waiting[user] >= max(1, maximum // USERS_OF_FULL_QUEUE):
            raise Overloaded("too many concurrent requests of this user")
        self._count(user, 1)
        try:
            await user_slots.acquire()
            try:
                await self._slots.acquire()
            except asyncio.CancelledError:
                user_slots.release()
                raise
        finally:
            self._count(user, -1)
        return RequestSlot(user_slots, self._slots)

    def _count(self, user: str, change: int) -> None:
        self._waiting[user] += change
        if not self._waiting[user]:
            del self._waiting[user]
        self._metrics.waiting.set(self._waiting.total())
