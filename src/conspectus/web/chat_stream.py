"""One answer of the chat while it is made: its events, and who reads them."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from itertools import islice
from typing import Final
from uuid import uuid4

from starlette.types import Receive
from structlog.typing import FilteringBoundLogger

from conspectus.deferred import dataclass
from conspectus.model.chat import ChatEvent, ChatSource, Delta, Failure, Sources
from conspectus.model.ids import UserId
from conspectus.web.logs import fault_facts

LEFT: Final = Failure("left", "The answer was stopped: no client was reading it.")
INTERNAL: Final = Failure("internal", "Internal error; see the log of the server.")
EVENT_BYTES: Final = 100
"""The approximate size of an event without its text."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The user of an answer, the time that the model continues without a reader, and the buffer in bytes."""

    person: UserId
    leave: float
    size: int
    log: FilteringBoundLogger


class ChatStream:
    """One answer:

    its newest events by number, and whether it is complete. When the buffer is full, the oldest events are
    dropped; until all readers have read them, the model waits.
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
        """How many events there were."""
        return self._forgotten + len(self._kept)

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        return self._forgotten

    @property
    def readers(self) -> int:
        """How many read it."""
        return len(self._readers)

    @property
    def failure(self) -> Failure | None:
        """Why it ended, where that was no answer's end."""
        last = self._kept[-1] if self._kept else None
        return last if isinstance(last, Failure) else None

    def keeps(self, number: int) -> bool:
        """Whether everything from that event on is kept; the end has a number too."""
        return self._forgotten <= number <= self.count + self.finished

    def since(self, number: int) -> Sequence[ChatEvent]:
        """The events from that number on."""
        return tuple(islice(self._kept, number - self._forgotten, None))

    def when_over(self, call: Callable[["ChatStream"], None]) -> None:
        """Have something called when it is over."""
        self._task.add_done_callback(lambda _task: call(self))

    async def changed(self) -> None:
        """Wait for another event, for its end, or for a reader to go on."""
        await self._changed.wait()

    async def begin(self) -> None:
        """Wait for the first event. Raises what was raised instead of one."""
        try:
            while not self.count and not self.finished:
                await self.changed()
        finally:
            if not self.count:
                self.stop(LEFT)
        if self.fault is not None:
            raise self.fault

    def stop(self, why: Failure) -> None:
        """End the model's call; this is then the last event."""
        if not self._task.done():
            self._why = why
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until the model's call is over."""
        await asyncio.wait({self._task})

    @contextmanager
    def reading(self, first: int = 0) -> Iterator["Reader"]:
        """A reader of the events from a number on. When the last one leaves, the model is stopped soon."""
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
        """The same for a client, who is gone when the server says so."""
        with self.reading(first) as reader:
            watching = asyncio.create_task(disconnected(receive))
            watching.add_done_callback(lambda task: None if task.cancelled() else reader.leave())
            try:
                yield reader
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    def tell(self) -> None:
        """Wake all who wait for a change."""
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
        """Whether everything is small enough again, which it is only as far as it was read."""
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
    """Someone who reads an answer: the number of the next event, and whether the reader has gone."""

    def __init__(self, stream: ChatStream, first: int) -> None:
        self.next = first
        self.gone = False
        self._stream = stream

    async def reaches(self, count: int) -> None:
        """Wait until there are so many events, or there will be no more for this reader."""
        while self._stream.count < count and not self._stream.finished and not self.gone:
            await self._stream.changed()

    async def more(self) -> Sequence[ChatEvent]:
        """The events since, as soon as there are any; none when there will be no more for this reader."""
        await self.reaches(self.next + 1)
        if self.gone:
            return ()
        events = self._stream.since(self.next)
        self.next += len(events)
        self._stream.tell()
        return events

    async def rest(self) -> Sequence[ChatEvent]:
        """All events to the end; for a reader who has gone, that is the last."""
        events: list[ChatEvent] = []
        while some := await self.more():
            events.extend(some)
        return [*events, LEFT] if self.gone else events

    def leave(self) -> None:
        """Wait for nothing any more."""
        self.gone = True
        self._stream.tell()


async def disconnected(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _size(event: ChatEvent) -> int:
    return EVENT_BYTES + (len(event.text) if isinstance(event, Delta) else 0)
