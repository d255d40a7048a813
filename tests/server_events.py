"""Reading server-sent events as the HTML standard says, character by character, and nothing but that."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """One event: its name (`message` where it has none), its data, and the last id that was told."""

    name: str
    data: str
    id: str


def lines_of(text: str) -> Iterator[str]:
    """Lines that end with CR LF, LF or CR; what has no end is no line."""
    start = position = 0
    while position < len(text):
        if text[position] in "\r\n":
            yield text[start:position]
            position += text[position : position + 2] == "\r\n"
            start = position + 1
        position += 1


def parsed(stream: bytes | Iterable[bytes]) -> list[Event]:
    """The events of a whole stream; comments are passed over, and an event without its empty line is lost."""
    text = stream if isinstance(stream, bytes) else b"".join(stream)
    events: list[Event] = []
    name, data, last = "", "", ""
    for line in lines_of(text.decode().removeprefix("\ufeff")):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                events.append(Event(name or "message", data.removesuffix("\n"), last))
            name, data = "", ""
        elif field == "event":
            name = value
        elif field == "data":
            data += f"{value}\n"
        elif field == "id" and "\0" not in value:
            last = value
    return events
