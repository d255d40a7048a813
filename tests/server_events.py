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
    start = place = 0
    while place < len(text):
        if text[place] in "\r\n":
            yield text[start:place]
            place += text[place : place + 2] == "\r\n"
            start = place + 1
        place += 1


def parsed(stream: bytes | Iterable[bytes]) -> list[Event]:
    """The events of a whole stream; comments are passed over, and an event without its empty line is lost."""
    whole = stream if isinstance(stream, bytes) else b"".join(stream)
    events: list[Event] = []
    name, data, last = "", "", ""
    for line in lines_of(whole.decode().removeprefix("\ufeff")):
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
