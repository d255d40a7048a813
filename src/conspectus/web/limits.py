"""Limits of a request: the size of its body, and its time; turns of requests that need no key."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.errors import TooLarge, WriteOutcomeUnknown
from conspectus.mcp.tool import HTTP_PATHS as MCP_PATHS
from conspectus.settings import Settings
from conspectus.web.connections import CONNECTION, Connection
from conspectus.web.health import Readiness
from conspectus.web.problem_details import may_be_done, refuse
from conspectus.web.route_table import RouteTable

LIMITED_PREFIXES = ("/api/", "/sign-in", "/scim/")
EVENTS: Final = "text/event-stream"
PROBES: Final = frozenset({"/healthz", "/health/live", "/readyz", "/health/ready", "/metrics"})
MAX_TURN_SECONDS: Final = 0.02
STOPPING_BODY_SECONDS: Final = 3.0
"""Seconds that a server that stops waits for bodies that have not arrived."""


def is_limited(scope: Scope) -> bool:
    """Return whether a request has limits: only those of the API, MCP, sign-in and SCIM: probes work."""
    path = scope["path"] if scope["type"] == "http" else ""
    return path.startswith(LIMITED_PREFIXES) or path in MCP_PATHS


class RequestLimits:
    """Refuses requests that are too large, and ends those that take too long."""

    def __init__(self, app: ASGIApp, settings: Settings, table: RouteTable, readiness: Readiness) -> None:
        self._app = app
        self._settings = settings
        self._table = table
        self._bodies: dict[LimitedBody, asyncio.Timeout] = {}
        readiness.call_when_stopping(self._end_bodies)

    def _end_bodies(self) -> None:
        """End requests soon whose body has not arrived when the server begins to stop."""
        end = asyncio.get_running_loop().time() + STOPPING_BODY_SECONDS
        for body, deadline in self._bodies.items():
            if not body.is_complete and not deadline.expired():
                body.is_stopped = True
                deadline.reschedule(min(end, deadline.when() or end))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on within its limits. Raises TooLarge or Refused."""
        if not is_limited(scope):
            await self._app(scope, receive, send)
            return
        maximum = self._settings.max_request_bytes
        is_read_only = self._table.is_read_only(scope)
        if is_read_only:
            maximum = min(maximum, self._settings.max_question_bytes)
        body = LimitedBody(receive, Headers(scope=scope), maximum)
        response = ResponseStart(send)
        disconnect = DisconnectWatch(response, scope["state"].get(CONNECTION) if is_read_only else None)
        try:
            async with asyncio.timeout(self._settings.request_timeout_seconds or None) as deadline:
                scope["state"]["deadline"] = self._bodies[body] = deadline
                with disconnect.end_on_disconnect(deadline):
                    await self._app(scope, body.receive, response.send)
        except TimeoutError:
            if disconnect.has_left:
                return
            if not deadline.expired() or response.has_begun:
                raise
            self._refuse_late(scope, body)
        finally:
            self._bodies.pop(body, None)

    def _refuse_late(self, scope: Scope, body: "LimitedBody") -> NoReturn:
        """End a request that has used up its time. Raises Refused or WriteOutcomeUnknown."""
        seconds = self._settings.request_timeout_seconds
        if may_be_done(scope):
            raise WriteOutcomeUnknown(f"not finished within {seconds} s") from None
        if body.is_stopped:
            refuse(503, "the server is stopping; send the request again", Connection="close")
        if body.is_awaited:
            refuse(408, f"the request did not arrive within {seconds} s", Connection="close")
        refuse(504, f"not finished within {seconds} s")


class AnonymousTurns:
    """Answers requests that need no key one after the other, however many clients send them at once.

    Each costs little, but many in one step of the event loop would delay all other requests. So each waits
    until no request with a key is in its first `MAX_TURN_SECONDS`, but no longer than these. Probes have a
    queue of their own, and wait for nobody else. The next request does not wait for a slow client longer than
    `MAX_TURN_SECONDS`.
    """

    def __init__(self, app: ASGIApp, precedence: "Precedence") -> None:
        self._app = app
        self._pages, self._probes = asyncio.Semaphore(1), asyncio.Semaphore(1)
        self._precedence = precedence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on in its turn."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif is_limited(scope):
            with self._precedence.hold():
                await self._app(scope, receive, send)
        elif scope["path"] in PROBES:
            await self._probes.acquire()
            with hold_briefly(self._probes.release):
                await self._app(scope, receive, send)
        else:
            await self._pages.acquire()
            with hold_briefly(self._pages.release):
                await self._precedence.wait()
                await self._app(scope, receive, send)


class Precedence:
    """Counts the requests that go before others, each for `MAX_TURN_SECONDS` at most."""

    def __init__(self) -> None:
        self._holders = 0
        self._is_free = asyncio.Event()
        self._is_free.set()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Go before others in the block."""
        self._holders += 1
        self._is_free.clear()
        with hold_briefly(self._release):
            yield

    def is_held(self) -> bool:
        """Return whether somebody goes first."""
        return self._holders > 0

    async def wait(self) -> None:
        """Wait until nobody goes first, but no longer than `MAX_TURN_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_TURN_SECONDS):
                await self._is_free.wait()

    def _release(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._is_free.set()


@contextmanager
def hold_briefly(release: Callable[[], None]) -> Iterator[None]:
    """Call a function at the end of the block, or after `MAX_TURN_SECONDS` if that is earlier."""
    is_over = False

    def end() -> None:
        nonlocal is_over
        if not is_over:
            is_over = True
            release()

    timer = asyncio.get_running_loop().call_later(MAX_TURN_SECONDS, end)
    try:
        yield
    finally:
        timer.cancel()
        end()


class LimitedBody:
    """A request's body, refused as soon as it is known to be over the limit.

    `is_awaited` says that the next message of it is being waited for, `is_complete` that all of it has
    arrived, and `is_stopped` that the server waits no longer, as it is about to stop.
    """

    def __init__(self, receive: Receive, headers: Headers, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self.is_awaited = self.is_stopped = False
        length = headers.get("content-length", "")
        self.is_complete = length in {"", "0"} and "transfer-encoding" not in headers
        if length.isdecimal():
            self._check(int(length))

    async def receive(self) -> Message:
        """Return the next message. Raises TooLarge."""
        self.is_awaited = True
        message = await self._receive()
        self.is_awaited = False
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._check(self._size)
            self.is_complete = not message.get("more_body", False)
        return message

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge("body", size=size, limit=self._limit)


class ResponseStart:
    """Sends a response, and notes whether it has begun and whether it is a stream of events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = self.has_events = False

    async def send(self, message: Message) -> None:
        """Send the next message."""
        self.has_begun = True
        if message["type"] == "http.response.start":
            media_type = Headers(raw=message.get("headers", [])).get("content-type", "")
            self.has_events = media_type.startswith(EVENTS)
        await self._send(message)


class DisconnectWatch:
    """Ends a request that only reads when its client disconnects; streams of events end by themselves."""

    def __init__(self, response: ResponseStart, connection: Connection | None) -> None:
        self._response = response
        self._connection = connection
        self.has_left = False

    @contextmanager
    def end_on_disconnect(self, deadline: asyncio.Timeout) -> Iterator[None]:
        """End the deadline when the client disconnects during the block."""
        if self._connection is None:
            yield
            return

        def leave() -> None:
            if not self._response.has_events and not deadline.expired():
                self.has_left = True
                deadline.reschedule(asyncio.get_running_loop().time())

        with self._connection.call_on_disconnect(leave):
            yield
