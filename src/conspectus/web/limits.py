"""Limits of requests: how many at once, how many of one user, and how long each."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, NoReturn

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from conspectus.errors import Overloaded, TooLarge, WriteOutcomeUnknown
from conspectus.mcp.tool import HTTP_PATH as MODELS
from conspectus.model.access import Person
from conspectus.settings import Settings
from conspectus.web.body_limits import ACCOUNT, BodyAccount, UserBodyBytes
from conspectus.web.connections import CONNECTION, Connection
from conspectus.web.health import Readiness
from conspectus.web.metrics import Metrics
from conspectus.web.problem_details import may_be_done, refuse
from conspectus.web.route_table import RouteTable

LIMITED = "/api/"
EVENTS: Final = "text/event-stream"
PROBES: Final = frozenset({"/healthz", "/health/live", "/readyz", "/health/ready", "/metrics"})
MAX_TURN_SECONDS: Final = 0.02
STOPPING_BODY_SECONDS: Final = 3.0
"""How long a server that stops waits for bodies that have not arrived."""


def is_limited(scope: Scope) -> bool:
    """Whether there are limits: only for the API and MCP, so that health checks always work."""
    path = scope["path"] if scope["type"] == "http" else ""
    return path.startswith(LIMITED) or path == MODELS


class ConcurrencyLimits:
    """Turns away what is too large, and ends what takes too long."""

    def __init__(self, app: ASGIApp, settings: Settings, table: RouteTable, readiness: Readiness) -> None:
        self._app = app
        self._settings = settings
        self._table = table
        self._bodies: dict[LimitedBody, asyncio.Timeout] = {}
        readiness.when_stopping(self._end_bodies)

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
        reads = self._table.is_read_only(scope)
        if reads:
            maximum = min(maximum, self._settings.max_question_bytes)
        body = LimitedBody(receive, Headers(scope=scope), maximum)
        answer = Started(send)
        departure = Departure(answer, scope["state"].get(CONNECTION) if reads else None)
        try:
            async with asyncio.timeout(self._settings.request_timeout_seconds or None) as deadline:
                scope["state"]["deadline"] = self._bodies[body] = deadline
                with departure.ending(deadline):
                    await self._app(scope, body.receive, answer.send)
        except TimeoutError:
            if departure.has_left:
                return
            if not deadline.expired() or answer.begun:
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
        if body.awaited:
            refuse(408, f"the request did not arrive within {seconds} s", Connection="close")
        refuse(504, f"not finished within {seconds} s")


class AnonymousTurns:
    """Answers requests that need no key one after the other, however many clients send them at once.

    Each costs little, but many in one turn of the event loop would hold up every step of all other requests.
    Probes have turns of their own. A turn that lasts is over for the others: nobody waits for a slow client.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._pages, self._probes = asyncio.Semaphore(1), asyncio.Semaphore(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on in its turn."""
        if scope["type"] != "http" or is_limited(scope):
            await self._app(scope, receive, send)
            return
        async with Turn(self._probes if scope["path"] in PROBES else self._pages):
            await self._app(scope, receive, send)


class Turn:
    """Holds a semaphore for a block, but no longer than `MAX_TURN_SECONDS`."""

    def __init__(self, semaphore: asyncio.Semaphore) -> None:
        self._semaphore = semaphore
        self._is_over = False

    async def __aenter__(self) -> None:
        """Wait for the turn."""
        await self._semaphore.acquire()
        self._timer = asyncio.get_running_loop().call_later(MAX_TURN_SECONDS, self._end)

    async def __aexit__(self, *_: object) -> None:
        """Let the next one have its turn."""
        self._timer.cancel()
        self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._semaphore.release()


class LimitedBody:
    """A request's body, refused as soon as it is known to be over the limit.

    `awaited` says that the next part of it is being waited for, `is_complete` that all of it has arrived, and
    `is_stopped` that the server waits no longer, as it is about to stop.
    """

    def __init__(self, receive: Receive, headers: Headers, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self.awaited = self.is_stopped = False
        length = headers.get("content-length", "")
        self.is_complete = length in {"", "0"} and "transfer-encoding" not in headers
        if length.isdecimal():
            self._check(int(length))

    async def receive(self) -> Message:
        """The next part. Raises TooLarge."""
        self.awaited = True
        message = await self._receive()
        self.awaited = False
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._check(self._size)
            self.is_complete = not message.get("more_body", False)
        return message

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLarge("body", size=size, limit=self._limit)


class Started:
    """An answer, and whether any of it was sent; one of events looks by itself whether it is read."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = self.has_events = False

    async def send(self, message: Message) -> None:
        """Send the next part."""
        self.begun = True
        if message["type"] == "http.response.start":
            media_type = Headers(raw=message.get("headers", [])).get("content-type", "")
            self.has_events = media_type.startswith(EVENTS)
        await self._send(message)


class Departure:
    """Ends a request that only reads when its client disconnects."""

    def __init__(self, answer: Started, connection: Connection | None) -> None:
        self._answer = answer
        self._connection = connection
        self.has_left = False

    @contextmanager
    def ending(self, deadline: asyncio.Timeout) -> Iterator[None]:
        """Let the deadline be now, once the client has left during the block."""
        if self._connection is None:
            yield
            return

        def leave() -> None:
            if not self._answer.has_events and not deadline.expired():
                self.has_left = True
                deadline.reschedule(asyncio.get_running_loop().time())

        with self._connection.when_lost(leave):
            yield


USERS_OF_FULL_QUEUE: Final = 2
"""One user may have half of the requests that wait."""


class RequestSlot:
    """The right to be answered now, which can be given back before the answer is over."""

    def __init__(self, *semaphores: asyncio.Semaphore) -> None:
        self._semaphores = semaphores

    def give_back(self) -> None:
        """Let another request have it."""
        for semaphore in self._semaphores:
            semaphore.release()
        self._semaphores = ()


class Shares:
    """Lets requests wait for a slot. All keys of a user together have no more than the user's share."""

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
        shared = person.key is not None and self._settings.max_user_requests
        user = person.id if shared else ""
        user_slots = self._user_slots.setdefault(
            user, asyncio.Semaphore(shared or self._settings.max_concurrent_requests)
        )
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
