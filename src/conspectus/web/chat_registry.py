"""Answers of the chat: whoever began one may leave it and come back to it for a while."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from conspectus.errors import NotFound, Overloaded
from conspectus.model.access import Person
from conspectus.model.chat import ChatEvent, Failure
from conspectus.model.ids import UserId
from conspectus.settings import Settings
from conspectus.web.chat_handover import CHAT, ChatHandover
from conspectus.web.chat_stream import ChatStream, Terms
from conspectus.web.problem_details import refuse

STOPPING: Final = Failure("stopping", "The server is stopping; ask again.")
MOST_READERS: Final = 10
SHARE_OF_GRACE: Final = 0.5
"""For so much of the time that a stopping server has, answers may go on."""


class ChatStreams:
    """The answers being made, and those made a short while ago; no more than the settings say.

    `told` is called with how many are being made whenever that changes; `sharing` makes them known to other
    processes, if there are any.
    """

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        *,
        told: Callable[[int], None] = lambda _: None,
        sharing: ChatHandover | None = None,
    ) -> None:
        self.settings = settings
        self._log = log
        self._told = told
        self._sharing = sharing
        self._streams: dict[str, ChatStream] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._stopping: asyncio.TimerHandle | None = None
        self._stopped = False

    def __len__(self) -> int:
        return sum(not stream.over for stream in self._streams.values())

    async def begin(
        self,
        events: AsyncGenerator[ChatEvent, None],
        *,
        person: Person,
        request_id: str,
        resumable: bool,
    ) -> ChatStream:
        """A new answer, when its first event is there.

        Raises Overloaded, or what was raised instead of an event.
        """
        if self._stopped:
            refuse(503, "the server is about to stop")
        self._make_room(person)
        leave = self.settings.chat_disconnect_grace_seconds if resumable else 0
        log = self._log.bind(request_id=request_id)
        stream = ChatStream(events, Terms(person.id, leave, self.settings.chat_replay_bytes, log))
        self._streams[stream.id] = stream
        self._told(len(self))
        stream.when_over(lambda _stream: self._told(len(self)))
        stream.when_over(self._keep if resumable else self._forget)
        await stream.begin()
        if resumable and self._sharing is not None:
            await self._sharing.share(stream)
            if stream.id not in self._streams:
                self._sharing.forget(stream.id)
        return stream

    def has(self, stream: str) -> bool:
        """Whether this process makes or made it, and keeps it."""
        return stream in self._streams

    def find(self, stream: str, first: int, *, person: UserId) -> ChatStream:
        """An answer that this person began and that is kept from that event on.

        Raises NotFound, or Overloaded where too many read it already.
        """
        found = self._streams.get(stream)
        if found is None or found.person != person or not found.keeps(first):
            raise NotFound(CHAT, stream)
        if found.readers >= MOST_READERS:
            raise Overloaded("as many read this chat as may at once")
        return found

    def stop(self) -> None:
        """Soon end those that are made, while there is time to say so, and begin no more then."""
        if self._stopping is None:
            wait = self.settings.job_grace_seconds * SHARE_OF_GRACE
            self._stopping = asyncio.get_running_loop().call_later(wait, self._stop_all)

    async def close(self) -> None:
        """End everything."""
        self.stop()
        self._stop_all()
        for stream in tuple(self._streams.values()):
            await stream.ended()
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
        own = sum(not each.over and each.person == person.id for each in self._streams.values())
        if person.key is not None and own >= self.settings.max_user_chats:
            raise Overloaded("as many chats of this user are answered as there may be at once")
        while len(self._streams) >= self.settings.max_chat_streams:
            over = next((each for each in self._streams.values() if each.over), None)
            if over is None:
                raise Overloaded("as many chats are answered as there may be at once")
            self._forget(over)

    def _keep(self, stream: ChatStream) -> None:
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
