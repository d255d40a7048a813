"""One chat response in progress: its events and readers."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final
from uuid import uuid4

from starlette.types import Receive
from structlog.typing import FilteringBoundLogger

from conspectus.model.chat import ChatEvent, ChatSource, Delta, Failure, Sources
from conspectus.model.ids import UserId
from conspectus.web.logs import fault_facts

LEFT: Final = Failure("left", "The answer was stopped because no client was reading it.")
INTERNAL: Final = Failure("internal", "Internal error; see the server's log.")
EVENT_BYTES: Final = 100
"""The approximate size of an event without its text."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The user of a response, the seconds that it continues without a reader, and the buffer in bytes."""

    person: UserId
    leave: float
    size: int
    log: FilteringBoundLogger


class ChatStream:
    """One response: its newest events by number, and whether it is complete.

    If the buffer is full, the oldest events are dropped; the model waits until all readers have read them.
    """

    def __init__(self, events: AsyncGenerator[ChatEvent, None], terms: Terms) -> None:
        self.id = uuid4().hex
        self.person = terms.person
        self.finished = False
        self.fault: BaseException | None = None
        self.sources: tuple[ChatSource, ...] = ()
        self._terms = terms
        self._kept: deque[ChatEvent] = deque()
        self._size = 0
        self._forgotten = 0
        self._readers: set[Reader] = set()
        self._was_read = False
        self._changed = asyncio.Event()
        self._why = LEFT
        self._leaving: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(self._run(events))
        self._task.add_done_callback(self._finish)

    @property
    def count(self) -> int:
        """The number of events so far."""
        return self._forgotten + len(self._kept)

    @property
    def first(self) -> int:
        """The number of the oldest event in the buffer."""
        return self._forgotten

    @property
    def readers(self) -> int:
        """The number of readers."""
        return len(self._readers)

    @property
    def failure(self) -> Failure | None:
        """The reason of a failure; None for a normal end."""
        last = self._kept[-1] if self._kept else None
        return last if isinstance(last, Failure) else None

    def keeps(self, number: int) -> bool:
        """Return whether all events from that number on are available; the end has a number too."""
        return self._forgotten <= number <= self.count + self.finished

    def since(self, number: int) -> Sequence[ChatEvent]:
        """Return the events from that number on."""
        return tuple(islice(self._kept, number - self._forgotten, None))

    def when_over(self, call: Callable[["ChatStream"], None]) -> None:
        """Register a callback for the end."""
        self._task.add_done_callback(lambda _task: call(self))

    async def changed(self) -> None:
        """Wait for another event, the end, or progress of a reader."""
        await self._changed.wait()

    async def begin(self) -> None:
        """Wait for the first event. Raises the error raised instead of one."""
        try:
            while not self.count and not self.finished:
                await self.changed()
        finally:
            if not self.count:
                self.stop(LEFT)
        if self.fault is not None:
            raise self.fault

    def stop(self, why: Failure) -> None:
        """Cancel the model call; this is the last event."""
        if not self._task.done():
            self._why = why
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until the model call is over."""
        await asyncio.wait({self._task})

    @contextmanager
    def reading(self, first: int = 0) -> Iterator["Reader"]:
        """Return a reader of the events from a number on. After the last one, the model is stopped soon."""
        reader = Reader(self, first)
        self._readers.add(reader)
        self._was_read = True
        if self._leaving is not None:
            self._leaving.cancel()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.tell()
            if not self._readers and not self.finished:
                self._stop_soon()

    @asynccontextmanager
    async def read_by(self, receive: Receive, first: int = 0) -> AsyncIterator["Reader"]:
        """Return a reader for a client, which ends when the client disconnects."""
        with self.reading(first) as reader:
            watching = asyncio.create_task(disconnected(receive))
            watching.add_done_callback(lambda task: None if task.cancelled() else reader.leave())
            try:
                yield reader
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    def tell(self) -> None:
        """Wake all tasks that wait for a change."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _run(self, events: AsyncGenerator[ChatEvent, None]) -> None:
        async with aclosing(events):
            async for event in events:
                self._put(event)
                while self._size > self._terms.size and not self._forget_oldest():
                    await self.changed()

    def _put(self, event: ChatEvent) -> None:
        if isinstance(event, Sources):
            self.sources = event.sources
        self._kept.append(event)
        self._size += _size(event)
        self.tell()

    def _forget_oldest(self) -> bool:
        """Drop read events. Returns whether the buffer is small enough again."""
        read = min((reader.next for reader in self._readers), default=self.count if self._was_read else 0)
        while self._size > self._terms.size and self._forgotten < read:
            self._size -= _size(self._kept.popleft())
            self._forgotten += 1
        return self._size <= self._terms.size

    def _stop_soon(self) -> None:
        if not self._terms.leave:
            self.stop(LEFT)
            return
        loop = asyncio.get_running_loop()
        self._leaving = loop.call_later(self._terms.leave, self.stop, LEFT)

    def _finish(self, task: asyncio.Task[None]) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
        if task.cancelled():
            self._put(self._why)
        elif (fault := task.exception()) is not None:
            self._note(fault)
        self.finished = True
        self.tell()

    def _note(self, fault: BaseException) -> None:
        if not self.count:
            self.fault = fault
            return
        self._terms.log.error("request_failed", **fault_facts(fault))
        self._put(INTERNAL)


class Reader:
    """A reader of a response: the number of its next event, and whether it has left."""

    def __init__(self, stream: ChatStream, first: int) -> None:
        self.next = first
        self.gone = False
        self._stream = stream

    async def reaches(self, count: int) -> None:
        """Wait until there are that many events, or no more for this reader."""
        while self._stream.count < count and not self._stream.finished and not self.gone:
            await self._stream.changed()

    async def more(self) -> Sequence[ChatEvent]:
        """Return the next events once there are any; empty if there will be none for this reader."""
        await self.reaches(self.next + 1)
        if self.gone:
            return ()
        found = self._stream.since(self.next)
        self.next += len(found)
        self._stream.tell()
        return found

    async def rest(self) -> Sequence[ChatEvent]:
        """Yield all events to the end, or until the reader leaves."""
        found: list[ChatEvent] = []
        while some := await self.more():
            found.extend(some)
        return [*found, LEFT] if self.gone else found

    def leave(self) -> None:
        """Stop waiting."""
        self.gone = True
        self._stream.tell()


async def disconnected(receive: Receive) -> None:
    """Wait until the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _size(event: ChatEvent) -> int:
    return EVENT_BYTES + (len(event.text) if isinstance(event, Delta) else 0)
