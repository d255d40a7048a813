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
UNSAFE_IN_LINES: Final = re.compile("[\r\ud800-\udfff]")
"""Characters that no parser would give back as they are."""
CARRIAGE_RETURN: Final = re.compile("\r\n?")
HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
EVENT_NAMES: Final[Mapping[type[ChatEvent], str]] = {
    Sources: "sources",
    Citations: "citations",
    Usage: "usage",
    Failure: "error",
}


class StreamForm(Protocol):
    """The form in which the events of a chat are sent."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the response, besides those of all streams."""

    @property
    def complete(self) -> bool:
        """Whether the answer is complete already, so that no more events are read."""

    def event(self, number: int, event: ChatEvent) -> bytes:
        """Return the bytes of an event."""

    def end(self, number: int) -> bytes:
        """Return the bytes after the last event."""


class Frames:
    """Events as they are, each with the id by which a client can go on after it."""

    complete = False

    def __init__(self, stream: str) -> None:
        self.headers = {STREAM: stream}
        self._stream = stream

    def event(self, number: int, event: ChatEvent) -> bytes:
        """Return the bytes of an event; an empty piece of the answer has none."""
        if isinstance(event, Delta):
            name, data = _piece(event.text)
            return self._frame(number, name, data) if event.text else b""
        return self._frame(number, EVENT_NAMES[type(event)], answer_of(event).model_dump_json())

    def end(self, number: int) -> bytes:
        """Return the mark of the end."""
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
        """Return the bytes of a piece of the answer or a failure; other events are left out."""
        if isinstance(event, Failure):
            return frame(f"{event.code}: {event.message}", name="error")
        if not isinstance(event, Delta) or not event.text:
            return b""
        text = CARRIAGE_RETURN.sub("\n", event.text)
        return b"".join(map(frame, (text[:1], text[1:]) if text == DONE else (text,)))

    def end(self, number: int) -> bytes:
        """Return the mark of the end."""
        return frame(DONE)


def frame(data: str, *, name: str = "", id: str = "") -> bytes:
    """Return the bytes of one event, with each line of its data as a line."""
    head = f"id: {id}\n" if id else ""
    head += f"event: {name}\n" if name else ""
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"{head}{lines}\n".encode("utf-8", "replace")


def _piece(text: str) -> tuple[str, str]:
    """Return the name and data of the event by which a piece of the answer arrives unchanged."""
    if text == DONE or UNSAFE_IN_LINES.search(text):
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
        form: StreamForm,
        settings: Settings,
        *,
        first: int = 0,
        head_after: int = 1,
        refuse: Callable[[Failure], Response] | None = None,
    ) -> None:
        super().__init__(settings, form.headers)
        self._stream = stream
        self._form = form
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
        while not self._form.complete:
            number = reader.next
            try:
                async with asyncio.timeout(self._settings.chat_heartbeat_seconds or None):
                    events = await reader.more()
            except TimeoutError:
                yield HEARTBEAT
                continue
            if not events:
                break
            yield b"".join(self._form.event(number + offset, event) for offset, event in enumerate(events))
        if not reader.gone:
            yield self._form.end(reader.next)
