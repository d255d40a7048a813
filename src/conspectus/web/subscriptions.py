"""New items as server-sent events, until the client leaves or the server stops.

The key of a subscriber is checked regularly, so a revoked key receives no more events. Each stream has a
maximum duration; clients continue with another one.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from time import monotonic
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

from fastapi import Header
from starlette.types import Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus.errors import ConspectusError, InvalidInput, Overloaded
from conspectus.model.access import Person
from conspectus.settings import Settings
from conspectus.web.chat_stream import wait_for_disconnect
from conspectus.web.dependencies import of_app
from conspectus.web.logs import fault_facts
from conspectus.web.openapi import Responses, problems
from conspectus.web.problem_details import internal_problem, problem_of
from conspectus.web.sse import HEARTBEAT, MEDIA_TYPE, EventsResponse, frame

T = TypeVar("T")
StillGood: TypeAlias = Callable[[], Awaitable[object]]
"""Raises Unauthenticated once the key is no longer valid."""
MAX_EVENT_ID_LENGTH: Final = 100
READY: Final = "ready"
"""The name of the first event, whose id is where to continue if the connection is lost before another."""
FAILED: Final = "error"
"""The name of the last event if there is a problem; its data are the problem document."""


class Listeners:
    """The current subscribers, limited by the settings; all are disconnected when the server stops."""

    def __init__(self, settings: Settings, log: FilteringBoundLogger) -> None:
        self.settings = settings
        self.log = log
        self._stopped = asyncio.Event()
        self._present: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._present.total()

    def stop(self) -> None:
        """End all streams, and new ones at once. Clients continue at another process."""
        self._stopped.set()

    def require_room(self, person: Person) -> None:
        """Raise Overloaded if there are too many subscribers, or too many with keys of this user."""
        if len(self) >= self.settings.max_subscribers:
            raise Overloaded("too many subscriptions")
        if person.credential is not None and self._present[person.id] >= self.settings.max_user_subscribers:
            raise Overloaded("too many subscriptions of this user")

    @asynccontextmanager
    async def watch_end(self, person: Person, receive: Receive) -> AsyncIterator["asyncio.Task[None]"]:
        """Yield a task that ends when a counted subscriber leaves or is disconnected."""
        ending = asyncio.create_task(self._wait_for_end(receive))
        self._present[person.id] += 1
        try:
            yield ending
        finally:
            self._present[person.id] -= 1
            await _cancel(ending)

    async def _wait_for_end(self, receive: Receive) -> None:
        leaving = asyncio.create_task(wait_for_disconnect(receive))
        stopping = asyncio.create_task(self._stopped.wait())
        max_seconds = self.settings.subscription_seconds or None
        try:
            await asyncio.wait({leaving, stopping}, timeout=max_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(leaving)
            await _cancel(stopping)


class LiveEvents(EventsResponse, Generic[T]):
    """Sends events as they come, and a comment after a pause."""

    def __init__(
        self,
        events: AsyncGenerator[T, None],
        to_frame: Callable[[T], bytes],
        listeners: Listeners,
        *,
        after: int,
        still_good: StillGood,
    ) -> None:
        super().__init__(listeners.settings)
        self._events = events
        self._to_frame = to_frame
        self._listeners = listeners
        self._after = after
        self._still_good = still_good
        self._checked_at = monotonic()
        self._request_id = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        self._request_id = str(scope.get("state", {}).get("request_id", ""))
        async with (
            aclosing(self._events) as events,
            self._listeners.watch_end(scope["state"]["person"], receive) as ended,
            aclosing(self._pieces(events, ended)) as pieces,
        ):
            await self._send(pieces, send)

    async def _pieces(
        self, events: AsyncGenerator[T, None], ended: "asyncio.Task[None]"
    ) -> AsyncGenerator[bytes, None]:
        yield frame("{}", name=READY, id=str(self._after))
        silence = self._settings.chat_heartbeat_seconds or None
        coming = asyncio.ensure_future(anext(events))
        try:
            while True:
                await asyncio.wait({coming, ended}, timeout=silence, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    return
                if (fault := await self._fault(coming)) is not None:
                    yield self._last(fault)
                    return
                if not coming.done():
                    yield HEARTBEAT
                    continue
                yield self._to_frame(coming.result())
                coming = asyncio.ensure_future(anext(events))
        finally:
            await _cancel(coming)

    async def _fault(self, coming: "asyncio.Future[T]") -> BaseException | None:
        """Return why the stream ends now: the key is not valid any more, or the events failed or ended."""
        if monotonic() - self._checked_at >= self._settings.alert_poll_interval_ms / 1_000:
            try:
                await self._still_good()
            except ConspectusError as fault:
                return fault
            self._checked_at = monotonic()
        return coming.exception() if coming.done() else None

    def _last(self, fault: BaseException) -> bytes:
        """Return the last bytes: none if the events are complete, else the problem."""
        match fault:
            case StopAsyncIteration():
                return b""
            case ConspectusError():
                problem = problem_of(fault)
            case _:
                problem = internal_problem(self._request_id)
        if problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            self._listeners.log.error("request_failed", request_id=self._request_id, **fault_facts(fault))
        return frame(bytes(problem.response().body).decode(), name=FAILED)


ListenersOf = Annotated[Listeners, of_app("listeners")]
LastEvent = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=MAX_EVENT_ID_LENGTH,
        description="The id of the last event read.",
        examples=["12"],
    ),
]


def describe_stream(*statuses: int, headers: Mapping[str, Any] | None = None) -> Responses:
    """Return the OpenAPI responses of a route that returns events."""
    event = {name: {"type": "string"} for name in ("id", "event", "data")}
    schema = {"type": "object", "properties": event, "required": ["data"]}
    sent = {"content": {MEDIA_TYPE: {"schema": schema}}} | ({"headers": headers} if headers else {})
    return {200: sent, **problems(*statuses)}


def parse_resume_point(last: str | None, newest: int) -> int:
    """Return the number in Last-Event-ID, the newest number where there is none. Raises InvalidInput."""
    if not last:
        return newest
    if not (last.isascii() and last.isdecimal() and len(last) <= len(str(2**63))):
        raise InvalidInput(
            "Last-Event-ID", "is not the id of an event of this stream; leave it out to begin with new ones"
        )
    return int(last)


async def _cancel(task: "asyncio.Future[Any]") -> None:
    """Cancel a task, and ignore its result or error."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
