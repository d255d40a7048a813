"""Server-sent events as in the HTML standard."""

import codecs
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import dataclass
from typing import Final

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
        for found in LINE.finditer(self._rest):
            end = found.end()
            yield found[1]
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
            return ServerEvent(name, "\n".join(data), self._last) if data else None
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
