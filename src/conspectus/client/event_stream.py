"""Server-sent events as in the HTML standard, and subscriptions to them."""

import codecs
import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from contextlib import aclosing
from typing import Final, TypeVar

from conspectus.client.decode import Misread, decode
from conspectus.client.request import Request
from conspectus.client.transport import Transport
from conspectus.deferred import dataclass
from conspectus.errors import ServerUnavailable, TooLarge

LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r(?!\Z))")
"""A line with its end. A carriage return at the end of the input may be half of a line break."""
BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name (default: `message`), its data, and the last id."""

    name: str
    data: str
    id: str


class Lines:
    """Splits text that arrives in pieces into lines."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._begun = False

    def of(self, piece: bytes) -> Iterator[str]:
        """Return the lines that another piece completes."""
        self._rest += self._decode(piece)
        if self._rest and not self._begun:
            self._begun = True
            self._rest = self._rest.removeprefix(BYTE_ORDER_MARK)
        end = 0
        for match in LINE.finditer(self._rest):
            end = match.end()
            yield match[1]
        self._rest = self._rest[end:]


class EventParser:
    """Collects the fields of an event line by line."""

    def __init__(self) -> None:
        self._name, self._last = "", ""
        self._data: list[str] = []

    def line(self, line: str) -> ServerEvent | None:
        """Process a line, and return the event that it completes."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            name, data = self._name or "message", self._data
            self._name, self._data = "", []
            if data:
                return ServerEvent(name, "\n".join(data), self._last)
            return None
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._last = value
        return None


async def events_in(pieces: AsyncIterable[bytes]) -> AsyncGenerator[ServerEvent, None]:
    """Yield the events of a stream. An event without its final empty line is dropped."""
    lines, reading = Lines(), EventParser()
    async for piece in pieces:
        for line in lines.of(piece):
            if (event := reading.line(line)) is not None:
                yield event


T = TypeVar("T")
TIMES: Final = 3
"""Maximum number of consecutive connections that are lost before they bring an event."""
READY: Final = "ready"
FAILED: Final = "error"


async def follow(
    channel: Transport, path: str, query: Mapping[str, str], *, after: int | None
) -> AsyncGenerator[ServerEvent, None]:
    """Yield the events from now on, or after an id. No event is lost between connections.

    Raises the error that the server reports, before the first event or later.
    """
    async with aclosing(_Connections(channel, path, query, after).events()) as events:
        async for event in events:
            if event.name == FAILED:
                raise channel.decode_problem(_object(channel, event))
            if event.name != READY:
                yield event


def read_event(channel: Transport, kind: type[T], event: ServerEvent) -> T:
    """Return the object in an event. Raises ServerUnavailable if it cannot be read."""
    try:
        return decode(kind, _object(channel, event))
    except Misread as fault:
        raise channel.unclear(f"an event {event.name!r:.20} cannot be read") from fault


class _Connections:
    """Opens one connection after another, and tracks the id of the last event."""

    def __init__(self, channel: Transport, path: str, query: Mapping[str, str], after: int | None) -> None:
        self._channel = channel
        self._path = path
        self._query = query
        self._last = "" if after is None else str(after)
        self._vain = 0

    async def events(self) -> AsyncGenerator[ServerEvent, None]:
        while True:
            async with aclosing(self._connection()) as events:
                async for event in events:
                    yield event
            await self._channel.pause(self._vain)

    async def _connection(self) -> AsyncGenerator[ServerEvent, None]:
        """Yield the events of one connection. Raises errors that a new connection cannot solve."""
        headers = {"Last-Event-ID": self._last} if self._last else {}
        request = Request("GET", self._path, query=self._query, headers=headers)
        self._vain, begun = self._vain + 1, False
        try:
            async with aclosing(self._channel.pieces(request)) as pieces:
                async for event in events_in(pieces):
                    self._last, begun = event.id, True
                    self._vain = self._vain if event.name == READY else 0
                    yield event
        except (ServerUnavailable, TooLarge):
            if not self._last or self._vain > TIMES:
                raise
            return
        if begun:
            self._vain = 0
        elif self._vain > TIMES:
            raise self._channel.make_lost_answer_error("it ended before the first event")


def _object(channel: Transport, event: ServerEvent) -> dict[str, object]:
    try:
        body = json.loads(event.data)
    except (ValueError, RecursionError) as fault:
        raise channel.unclear(f"an event {event.name!r:.20} is not JSON") from fault
    if not isinstance(body, dict):
        raise channel.unclear(f"an event {event.name!r:.20} is not an object")
    return body
