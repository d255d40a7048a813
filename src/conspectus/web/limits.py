"""How much, how long and how many at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.errors import Overloaded, TooLarge, WriteUnknown
from conspectus.mcp.http import PATH as MODELS
from conspectus.settings import Settings
from conspectus.web.metrics import Metrics
from conspectus.web.problems import may_be_done, refuse

LIMITED = "/api/"


class Limits:
    """Turns away what is too large or too much, and ends what takes too long.

    Only the API and what models ask is limited: health must be told, and measured, when all places are taken.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._places = asyncio.Semaphore(settings.max_requests)
        self._metrics = metrics
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on within its limits. Raises TooLarge, Overloaded or Refused."""
        path = scope["path"] if scope["type"] == "http" else ""
        if not (path.startswith(LIMITED) or path == MODELS):
            await self._app(scope, receive, send)
            return
        body = Counted(receive, Headers(scope=scope), self._settings.max_request_bytes)
        answer = Started(send)
        try:
            async with asyncio.timeout(self._settings.request_seconds or None) as deadline:
                scope["state"]["deadline"] = deadline
                async with self._place() as place:
                    scope["state"]["place"] = place
                    await self._app(scope, body.receive, answer.send)
        except TimeoutError:
            if not deadline.expired() or answer.begun:
                raise
            if body.awaited:
                refuse(
                    408,
                    f"the request did not arrive within {self._settings.request_seconds} s",
                    Connection="close",
                )
            if may_be_done(scope):
                raise WriteUnknown(f"not done within {self._settings.request_seconds} s") from None
            refuse(504, f"not done within {self._settings.request_seconds} s")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator["Place"]:
        if self._places.locked() and self._waiting >= self._settings.max_waiting:
            raise Overloaded("the server answers as many requests as it can")
        self._wait(1)
        try:
            await self._places.acquire()
        finally:
            self._wait(-1)
        place = Place(self._places)
        try:
            yield place
        finally:
            place.give_back()

    def _wait(self, change: int) -> None:
        self._waiting += change
        self._metrics.waiting.set(self._waiting)


class Place:
    """A place among the requests that are answered, which can be given back before the answer is over."""

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places = places
        self._held = True

    def give_back(self) -> None:
        """Let another request have it."""
        if self._held:
            self._held = False
            self._places.release()


class Counted:
    """A request's body, refused as soon as it is known to be over the limit.

    `awaited` says that the next part of it is being waited for.
    """

    def __init__(self, receive: Receive, headers: Headers, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self.awaited = False
        told = headers.get("content-length", "")
        if told.isdecimal():
            self._check(int(told))

    async def receive(self) -> Message:
        """The next part. Raises TooLarge."""
        self.awaited = True
        message = await self._receive()
        self.awaited = False
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._check(self._size)
        return message

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge("body", size=size, limit=self._limit)


class Started:
    """An answer, and whether any of it was sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False

    async def send(self, message: Message) -> None:
        """Send the next part."""
        self.begun = True
        await self._send(message)
