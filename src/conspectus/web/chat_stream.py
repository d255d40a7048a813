"""One answer of a chat in progress: a buffer of its events, and its readers."""

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
    """The user of an answer, and its limits.

    Args:
        leave: seconds that the model continues without a reader.
        size: bytes of the buffer.
    """

    person: UserId
    leave: float
    size: int
    log: FilteringBoundLogger


class ChatStream:
    """One answer: its newest events by number, and whether it is complete.

    When the buffer is full, the oldest events are dropped. The model waits until all readers have read them.
    """

    def __init__(self, events: AsyncGenerator[ChatEvent, None], terms: Terms) -> None:
        self.id = uuid4().hex
        self.person = terms.person
        self.finished = False
        self.fault: BaseException | None = None
        self.sources: tuple[ChatSource, ...] = ()
        self._terms = terms
        self._buffer: deque[ChatEvent] = deque()
        self._size = 0
        self._dropped = 0
        self._readers: set[Reader] = set()
        self._was_read = False
        self._changed = asyncio.Event()
        self._stop_reason = LEFT
        self._leaving: asyncio.TimerHandle | None = None
        self._task = asyncio.create_task(self._run(events))
        self._task.add_done_callback(self._finish)

    @property
    def count(self) -> int:
        """Number of events so far, dropped ones included."""
        return self._dropped + len(self._buffer)

    @property
    def first(self) -> int:
        """Number of the oldest event in the buffer."""
        return self._dropped

    @property
    def readers(self) -> int:
        """Number of readers."""
        return len(self._readers)

    @property
    def failure(self) -> Failure | None:
        """The failure that ended it, if it failed."""
        last = self._buffer[-1] if self._buffer else None
        return last if isinstance(last, Failure) else None

    def has_buffered(self, number: int) -> bool:
        """Return whether all events from a number on are in the buffer; the end has a number too."""
        return self._dropped <= number <= self.count + self.finished

    def since(self, number: int) -> Sequence[ChatEvent]:
        """Return the events from a number on."""
        return tuple(islice(self._buffer, number - self._dropped, None))

    def call_at_end(self, call: Callable[["ChatStream"], None]) -> None:
        """Call a function when the answer has ended."""
        self._task.add_done_callback(lambda _task: call(self))

    async def wait_for_change(self) -> None:
        """Wait for another event, for its end, or until a reader has read events."""
        await self._changed.wait()

    async def begin(self) -> None:
        """Wait for the first event. Raises the error that came instead of one."""
        try:
            while not self.count and not self.finished:
                await self.wait_for_change()
        finally:
            if not self.count:
                self.stop(LEFT)
        if self.fault is not None:
            raise self.fault

    def stop(self, reason: Failure) -> None:
        """End the call of the model; the reason is then the last event."""
        if not self._task.done():
            self._stop_reason = reason
            self._task.cancel()

    async def wait_until_ended(self) -> None:
        """Wait until the call of the model is over."""
        await asyncio.wait({self._task})

    @contextmanager
    def open_reader(self, first: int = 0) -> Iterator["Reader"]:
        """Open a reader of the events from a number on. When the last reader leaves, the model stops soon."""
        reader = Reader(self, first)
        self._readers.add(reader)
        self._was_read = True
        if self._leaving is not None:
            self._leaving.cancel()
        try:
            yield reader
        finally:
            self._readers.discard(reader)
            self.wake_readers()
            if not self._readers and not self.finished:
                self._stop_soon()

    @asynccontextmanager
    async def read_by(self, receive: Receive, first: int = 0) -> AsyncIterator["Reader"]:
        """Open a reader for a client, which leaves when the client disconnects."""
        with self.open_reader(first) as reader:
            watching = asyncio.create_task(wait_for_disconnect(receive))
            watching.add_done_callback(lambda task: None if task.cancelled() else reader.leave())
            try:
                yield reader
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    def wake_readers(self) -> None:
        """Wake all that wait in `wait_for_change`."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _run(self, events: AsyncGenerator[ChatEvent, None]) -> None:
        async with aclosing(events):
            async for event in events:
                self._put(event)
                while self._size > self._terms.size and not self._drop_oldest():
                    await self.wait_for_change()

    def _put(self, event: ChatEvent) -> None:
        if isinstance(event, Sources):
            self.sources = event.sources
        self._buffer.append(event)
        self._size += _size(event)
        self.wake_readers()

    def _drop_oldest(self) -> bool:
        """Drop events that all readers have read; return whether the buffer is small enough again."""
        read_count = min(
            (reader.next for reader in self._readers), default=self.count if self._was_read else 0
        )
        while self._size > self._terms.size and self._dropped < read_count:
            self._size -= _size(self._buffer.popleft())
            self._dropped += 1
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
            self._put(self._stop_reason)
        elif (fault := task.exception()) is not None:
            self._note(fault)
        self.finished = True
        self.wake_readers()

    def _note(self, fault: BaseException) -> None:
        if not self.count:
            self.fault = fault
            return
        self._terms.log.error("request_failed", **fault_facts(fault))
        self._put(INTERNAL)


class Reader:
    """A reader of an answer: the number of its next event, and whether it is gone."""

    def __init__(self, stream: ChatStream, first: int) -> None:
        self.next = first
        self.gone = False
        self._stream = stream

    async def wait_for(self, count: int) -> None:
        """Wait until there are `count` events, the answer ends, or the reader is gone."""
        while self._stream.count < count and not self._stream.finished and not self.gone:
            await self._stream.wait_for_change()

    async def more(self) -> Sequence[ChatEvent]:
        """Return the next events as soon as there are any; none at the end, or when the reader is gone."""
        await self.wait_for(self.next + 1)
        if self.gone:
            return ()
        events = self._stream.since(self.next)
        self.next += len(events)
        self._stream.wake_readers()
        return events

    async def read_rest(self) -> Sequence[ChatEvent]:
        """Return all further events. For a reader that is gone, a failure is the last one."""
        events: list[ChatEvent] = []
        while next_events := await self.more():
            events.extend(next_events)
        return [*events, LEFT] if self.gone else events

    def leave(self) -> None:
        """End the reading, so that the model does not wait for this reader."""
        self.gone = True
        self._stream.wake_readers()


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _size(event: ChatEvent) -> int:
    return EVENT_BYTES + (len(event.text) if isinstance(event, Delta) else 0)
