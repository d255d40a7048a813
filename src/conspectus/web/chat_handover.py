"""Answers that a client can resume at another process than the one that makes them.

An answer that is read where it is made stays there until it is complete. It goes through the database only if
it is not read there, or if a client asks for it at another process.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from dataclasses import field
from typing import Final

from starlette.types import Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from conspectus.deferred import dataclass
from conspectus.errors import NotFound, Overloaded, StorageError
from conspectus.model.access import Person
from conspectus.model.chat import ChatEvent, Failure
from conspectus.model.ids import UserId
from conspectus.ports.chat import AnswerFrames, ChatRegistry, RemoteChatEvent
from conspectus.settings import Settings
from conspectus.web.chat_stream import ChatStream, Reader, Terms
from conspectus.web.logs import fault_facts
from conspectus.web.problem_details import refuse
from conspectus.web.sse import HEARTBEAT, STREAM, EventsResponse, Frames
from conspectus.web.subscriptions import Listeners

POLL_SECONDS: Final = 0.5
REMOTE_READER_SECONDS: Final = 3.0
"""Seconds for which a reader at another process counts after its last request."""
MAX_READ_ATTEMPTS: Final = 10
MAX_EVENTS: Final = 1 << 40
CHAT: Final = "chat to go on with"
STREAM_ENDED: Final = Failure("stopping", "This answer has ended or expired; ask again.")


@dataclass
class Shared:
    """An answer of this process, the number of its published frames, and its reader at another process."""

    stream: ChatStream
    published_frames: int = 0
    is_published: bool = False
    remote_reader: Reader | None = None
    reading: ExitStack = field(default_factory=ExitStack)

    @property
    def is_needed(self) -> bool:
        """Whether another process may need its frames soon."""
        return self.stream.finished or self.remote_reader is not None or not self.stream.readers

    def count_reader(self, seconds_ago: float) -> None:
        """Add the reader at another process that asked so many seconds ago, or remove it."""
        if seconds_ago < REMOTE_READER_SECONDS and self.remote_reader is None:
            self.remote_reader = self.reading.enter_context(self.stream.open_reader(self.published_frames))
        elif seconds_ago >= REMOTE_READER_SECONDS and self.remote_reader is not None:
            self.remote_reader = None
            self.reading.close()

    def take_unpublished(self) -> AnswerFrames:
        """Return the frames that were not published yet."""
        stream, writer = self.stream, Frames(self.stream.id)
        is_over, first = stream.finished, max(self.published_frames, stream.first)
        frames = [writer.event(first + offset, event) for offset, event in enumerate(stream.since(first))]
        if is_over:
            frames.append(writer.end(stream.count))
        documents = tuple({source.document for source in stream.sources})
        return AnswerFrames(stream.id, first, tuple(frames), is_over, documents)


class ChatHandover:
    """Publishes answers of this process for other processes."""

    def __init__(self, registry: ChatRegistry, log: FilteringBoundLogger) -> None:
        self._chat_registry = registry
        self._log = log
        self._shared: dict[str, Shared] = {}
        self._forgotten: list[str] = []
        self._polling: asyncio.Task[None] | None = None

    async def share(self, stream: ChatStream) -> None:
        """Announce an answer to other processes. Raises StorageError."""
        await self._chat_registry.begin(stream.id, stream.person)
        self._shared[stream.id] = Shared(stream)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll_loop())

    def forget(self, stream: str) -> None:
        """Withdraw the announcement."""
        shared = self._shared.pop(stream, None)
        if shared is not None:
            shared.reading.close()
            self._forgotten.append(stream)

    async def close(self) -> None:
        """Publish how the answers ended, and stop reading them."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait({self._polling})
            await self._poll()
        for shared in self._shared.values():
            shared.reading.close()

    async def _poll_loop(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self._poll()

    async def _poll(self) -> None:
        try:
            forgotten, self._forgotten = self._forgotten, []
            if forgotten:
                await self._chat_registry.forget(forgotten)
            for id, seconds_ago in (await self._chat_registry.pulse(tuple(self._shared))).items():
                if id in self._shared:
                    self._shared[id].count_reader(seconds_ago)
            for shared in tuple(self._shared.values()):
                await self._publish(shared)
        except StorageError as fault:
            self._log.error("chat_handover_failed", **fault_facts(fault))

    async def _publish(self, shared: Shared) -> None:
        if shared.is_published or not shared.is_needed:
            return
        unpublished = shared.take_unpublished()
        if unpublished.frames:
            await self._chat_registry.publish(unpublished)
        shared.published_frames = unpublished.first + len(unpublished.frames)
        shared.is_published = unpublished.finished
        if shared.remote_reader is not None:
            shared.remote_reader.next = shared.published_frames
            shared.stream.wake_readers()


async def remote_answer(registry: ChatRegistry, stream: str, person: UserId, first: int) -> RemoteChatEvent:
    """Return an answer of another process, as soon as it has published its sources. Raises NotFound."""
    for _ in range(MAX_READ_ATTEMPTS if first <= MAX_EVENTS else 0):
        remote_events = await registry.read_remote(stream, person, first)
        if remote_events is None:
            break
        if remote_events.count or remote_events.finished:
            return remote_events
        await asyncio.sleep(POLL_SECONDS)
    raise NotFound(CHAT, stream)


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """An answer of another process, which counts as lost after `patience` seconds without a frame."""

    chat_registry: ChatRegistry
    stream: str
    person: UserId
    patience: float

    async def frames(self, first: int) -> AsyncGenerator[bytes, None]:
        """Yield the frames from a number on as they come, and empty bytes at each poll without any."""
        number = first
        while (
            remote_events := await self.chat_registry.read_remote(self.stream, self.person, number)
        ) is not None:
            yield b"".join(remote_events.frames)
            number += len(remote_events.frames)
            if remote_events.finished and number >= remote_events.count:
                return
            if remote_events.silent > self.patience:
                break
            await asyncio.sleep(POLL_SECONDS)
        writer = Frames(self.stream)
        yield writer.event(number, STREAM_ENDED) + writer.end(number + 1)


class RemoteAnswerResponse(EventsResponse):
    """Sends an answer of another process until it is over or the client disconnects."""

    def __init__(self, answer: RemoteAnswer, listeners: Listeners, *, first: int) -> None:
        super().__init__(listeners.settings, {STREAM: answer.stream})
        self._answer = answer
        self._listeners = listeners
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        async with (
            aclosing(self._answer.frames(self._first)) as frames,
            self._listeners.watch_end(scope["state"]["person"], receive) as ended,
            aclosing(self._pieces(frames, ended)) as pieces,
        ):
            await self._send(pieces, send)

    async def _pieces(
        self, frames: AsyncGenerator[bytes, None], ended: "asyncio.Task[None]"
    ) -> AsyncGenerator[bytes, None]:
        clock, silence = asyncio.get_running_loop().time, self._settings.chat_heartbeat_seconds
        sent = clock()
        async for piece in frames:
            if ended.done():
                return
            if piece or (silence and clock() - sent > silence):
                sent = clock()
                yield piece or HEARTBEAT


STOPPING: Final = Failure("stopping", "The server is shutting down; ask again.")
MAX_READERS: Final = 10
GRACE_SHARE: Final = 0.5
"""The fraction of the time of a stopping server for which answers may continue."""


class ChatStreams:
    """The answers in progress and the recent ones, as many as the settings allow.

    `report` is called with the number of answers in progress whenever it changes; `sharing` publishes them
    for other processes, if there are any.
    """

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        *,
        report: Callable[[int], None] = lambda _: None,
        sharing: ChatHandover | None = None,
    ) -> None:
        self.settings = settings
        self._log = log
        self._report = report
        self._sharing = sharing
        self._streams: dict[str, ChatStream] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopping: asyncio.TimerHandle | None = None
        self._stopped = False

    def __len__(self) -> int:
        return sum(not stream.finished for stream in self._streams.values())

    async def begin(
        self,
        events: AsyncGenerator[ChatEvent, None],
        *,
        person: Person,
        request_id: str,
        resumable: bool,
    ) -> ChatStream:
        """Start an answer, and return it after its first event.

        Raises Overloaded, or the error that came instead of an event.
        """
        if self._stopped:
            refuse(503, "the server is about to stop")
        self._make_room(person)
        leave = self.settings.chat_disconnect_grace_seconds if resumable else 0
        log = self._log.bind(request_id=request_id)
        stream = ChatStream(events, Terms(person.id, leave, self.settings.chat_replay_bytes, log))
        self._streams[stream.id] = stream
        self._report(len(self))
        stream.call_at_end(lambda _stream: self._report(len(self)))
        stream.call_at_end(self._forget_later if resumable else self._forget)
        await stream.begin()
        if resumable and self._sharing is not None:
            await self._sharing.share(stream)
            if stream.id not in self._streams:
                self._sharing.forget(stream.id)
        return stream

    def has(self, stream: str) -> bool:
        """Return whether an answer of this process is in progress or recent."""
        return stream in self._streams

    def find(self, stream: str, first: int, *, person: UserId) -> ChatStream:
        """Return an answer that this person began, with its events from a number on.

        Raises NotFound, or Overloaded if it has too many readers.
        """
        chat = self._streams.get(stream)
        if chat is None or chat.person != person or not chat.has_buffered(first):
            raise NotFound(CHAT, stream)
        if chat.readers >= MAX_READERS:
            raise Overloaded("too many readers of this chat")
        return chat

    def stop(self) -> None:
        """Stop all answers after a while, early enough to send a last event, and then start no more."""
        if self._stopping is None:
            wait = self.settings.job_grace_seconds * GRACE_SHARE
            self._stopping = asyncio.get_running_loop().call_later(wait, self._stop_all)

    async def close(self) -> None:
        """End all answers."""
        self.stop()
        self._stop_all()
        for stream in tuple(self._streams.values()):
            await stream.wait_until_ended()
        if self._sharing is not None:
            await self._sharing.close()
        for timer in (*self._timers.values(), self._stopping):
            if timer is not None:
                timer.cancel()
        self._streams.clear()

    def _stop_all(self) -> None:
        self._stopped = True
        for stream in self._streams.values():
            stream.stop(STOPPING)

    def _make_room(self, person: Person) -> None:
        active_count = sum(not chat.finished and chat.person == person.id for chat in self._streams.values())
        if person.credential is not None and active_count >= self.settings.max_user_chats:
            raise Overloaded("too many concurrent chats of this user")
        while len(self._streams) >= self.settings.max_chat_streams:
            finished_chat = next((chat for chat in self._streams.values() if chat.finished), None)
            if finished_chat is None:
                raise Overloaded("too many concurrent chats")
            self._forget(finished_chat)

    def _forget_later(self, stream: ChatStream) -> None:
        """Forget a resumable answer when it can no longer be resumed, or at once if it has no event."""
        if not stream.count:
            self._forget(stream)
            return
        wait = self.settings.chat_resume_seconds
        loop = asyncio.get_running_loop()
        self._timers[stream.id] = loop.call_later(wait, self._forget, stream)

    def _forget(self, stream: ChatStream) -> None:
        self._streams.pop(stream.id, None)
        if self._sharing is not None:
            self._sharing.forget(stream.id)
        timer = self._timers.pop(stream.id, None)
        if timer is not None:
            timer.cancel()
