"""Server-sent events: how the events of a chat are written, and the response that sends them as they come.

A piece of the answer is an event without a name whose data is the text. What no parser would give back as it
is (a carriage return, half of a surrogate pair, or the very text that marks the end) is an event `delta` with
JSON data.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from conspectus.model.chat import ChatEvent, Citations, Delta, Failure, Sources, Usage
from conspectus.settings import Settings
from conspectus.web.chat_stream import ChatStream, Reader
from conspectus.web.operation_schemas import answer_of

MEDIA_TYPE: Final = "text/event-stream"
STREAM: Final = "X-Chat-Stream"
DONE: Final = "[DONE]"
HEARTBEAT: Final = b": still here\n\n"
LOST_IN_LINES: Final = re.compile("[\r\ud800-\udfff]")
CARRIAGE_RETURN: Final = re.compile("\r\n?")
HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
NAMED: Final[Mapping[type[ChatEvent], str]] = {
    Sources: "sources",
    Citations: "citations",
    Usage: "usage",
    Failure: "error",
}


class Written(Protocol):
    """How a stream is written."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of its own."""

    @property
    def complete(self) -> bool:
        """Whether no more of it is needed."""

    def event(self, number: int, event: ChatEvent) -> bytes:
        """One event."""

    def end(self, number: int) -> bytes:
        """The event after the last one."""


class Frames:
    """Events as they are, each with the id by which a client can go on after it."""

    complete = False

    def __init__(self, stream: str) -> None:
        self.headers = {STREAM: stream}
        self._stream = stream

    def event(self, number: int, event: ChatEvent) -> bytes:
        """One event; a piece of the answer that is empty is none."""
        if isinstance(event, Delta):
            name, data = _piece(event.text)
            return self._frame(number, name, data) if event.text else b""
        return self._frame(number, NAMED[type(event)], answer_of(event).model_dump_json())

    def end(self, number: int) -> bytes:
        """The mark of the end."""
        return self._frame(number, "", DONE)

    def _frame(self, number: int, name: str, data: str) -> bytes:
        return frame(data, name=name, id=f"{self._stream}:{number}")


class Plain:
    """The text of the answer alone, for clients that read only lines of data, and [DONE].

    A failure is an event `error` whose data is its code and message.
    """

    complete = False
    headers: Mapping[str, str] = {}

    def event(self, number: int, event: ChatEvent) -> bytes:
        """A piece of the answer, or a failure; other events are left out."""
        if isinstance(event, Failure):
            return frame(f"{event.code}: {event.message}", name="error")
        if not isinstance(event, Delta) or not event.text:
            return b""
        text = CARRIAGE_RETURN.sub("\n", event.text)
        return b"".join(map(frame, (text[:1], text[1:]) if text == DONE else (text,)))

    def end(self, number: int) -> bytes:
        """The mark of the end."""
        return frame(DONE)


def frame(data: str, *, name: str = "", id: str = "") -> bytes:
    """One event with each line of its data as a line."""
    head = f"id: {id}\n" if id else ""
    head += f"event: {name}\n" if name else ""
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"{head}{lines}\n".encode("utf-8", "replace")


def _piece(text: str) -> tuple[str, str]:
    """The name and the data by which a piece of the answer arrives as it is."""
    if text == DONE or LOST_IN_LINES.search(text):
        return "delta", json.dumps({"text": text})
    return "", text


class EventsResponse(Response):
    """Events as they come, until the client does not take one in within the time that a request has."""

    def __init__(self, settings: Settings, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(headers={**HEADERS, **(headers or {})}, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._settings = settings

    async def _send(self, pieces: AsyncIterator[bytes], send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in pieces:
            try:
                async with asyncio.timeout(self._settings.request_timeout_seconds or None):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class EventStream(EventsResponse):
    """Sends events as they come, and a comment after a pause, until the client disconnects.

    The head is sent after `head_after` events; errors before that are answered by `refuse`.
    """

    def __init__(
        self,
        stream: ChatStream,
        written: Written,
        settings: Settings,
        *,
        first: int = 0,
        head_after: int = 1,
        refuse: Callable[[Failure], Response] | None = None,
    ) -> None:
        super().__init__(settings, written.headers)
        self._stream = stream
        self._written = written
        self._first = first
        self._head_after = head_after
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        async with self._stream.read_by(receive, self._first) as reader:
            await reader.wait_for(self._head_after)
            failure = self._stream.failure
            if self._refuse is not None and failure is not None and self._stream.count <= self._head_after:
                await self._refuse(failure)(scope, receive, send)
                return
            await self._send(self._pieces(reader), send)

    async def _pieces(self, reader: Reader) -> AsyncIterator[bytes]:
        while not self._written.complete:
            number = reader.next
            try:
                async with asyncio.timeout(self._settings.chat_heartbeat_seconds or None):
                    events = await reader.more()
            except TimeoutError:
                yield HEARTBEAT
                continue
            if not events:
                break
            yield b"".join(self._written.event(number + offset, event) for offset, event in enumerate(events))
        if not reader.gone:
            yield self._written.end(reader.next)
