"""Server-sent events as the HTML standard reads them."""

import codecs
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import dataclass
from typing import Final

LINE: Final = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r(?!\Z))")
"""A line with its end; a carriage return that is the last character so far may be half of one."""
BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its name (`message` where it has none), its data, and the last id that was given."""

    name: str
    data: str
    id: str


class Lines:
    """The lines of a text that comes in pieces, however it is cut."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._begun = False

    def of(self, piece: bytes) -> Iterator[str]:
        """The lines that another piece completes."""
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
    """An event while its lines are read."""

    def __init__(self) -> None:
        self._name, self._last = "", ""
        self._data: list[str] = []

    def line(self, line: str) -> ServerEvent | None:
        """Process a line, and return the event that it completes."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            return self._completed()
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._last = value
        return None

    def _completed(self) -> ServerEvent | None:
        name, data = self._name or "message", self._data
        self._name, self._data = "", []
        return ServerEvent(name, "\n".join(data), self._last) if data else None


async def events_in(pieces: AsyncIterable[bytes]) -> AsyncGenerator[ServerEvent, None]:
    """The events of a stream as they come; one without its empty line at the end is none."""
    lines, reading = Lines(), EventParser()
    async for piece in pieces:
        for line in lines.of(piece):
            if (event := reading.line(line)) is not None:
                yield event
