"""How much a request may hold, and how long it may take."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.errors import TooLarge, WriteUnknown
from conspectus.mcp.http import PATH as MODELS
from conspectus.settings import Settings
from conspectus.web.idempotency import asks
from conspectus.web.problem_details import may_be_done, refuse

LIMITED = "/api/"


def is_limited(scope: Scope) -> bool:
    """Whether there are limits: only for the API and for models, so that health can always be told."""
    path = scope["path"] if scope["type"] == "http" else ""
    return path.startswith(LIMITED) or path == MODELS


class ConcurrencyLimits:
    """Turns away what is too large, and ends what takes too long."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on within its limits. Raises TooLarge or Refused."""
        if not is_limited(scope):
            await self._app(scope, receive, send)
            return
        most = self._settings.max_request_bytes
        if asks(scope):
            most = min(most, self._settings.max_question_bytes)
        body = Counted(receive, Headers(scope=scope), most)
        answer = Started(send)
        try:
            async with asyncio.timeout(self._settings.request_timeout_seconds or None) as deadline:
                scope["state"]["deadline"] = deadline
                await self._app(scope, body.receive, answer.send)
        except TimeoutError:
            if not deadline.expired() or answer.begun:
                raise
            if body.awaited:
                refuse(
                    408,
                    f"the request did not arrive within {self._settings.request_timeout_seconds} s",
                    Connection="close",
                )
            if may_be_done(scope):
                raise WriteUnknown(f"not done within {self._settings.request_timeout_seconds} s") from None
            refuse(504, f"not done within {self._settings.request_timeout_seconds} s")


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
