"""What the contract of engines stores and asks for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from conspectus.client import RemoteEngine
from conspectus.engine import Engine
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, Overlaps
from conspectus.model.records import NewDocument, Period, TextPosition
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.text.times import parse_instant

AnyEngine: TypeAlias = Engine | RemoteEngine

NOTES = [
    NewDocument("The backup runs every night at two.", "Backups", key="1", metadata={"lang": "en", "n": 1}),
    NewDocument("We deploy on Tuesdays, after the tests.", "Releases", key="2", metadata={"lang": "en"}),
    NewDocument("Grüße aus Köln 🎉, die Sicherung läuft nachts.", key="3", metadata={"lang": "de"}),
    NewDocument("Who is on call?", kind="message", key="4", author="ann", thread="t", sequence=1),
    NewDocument("Bo is, until Monday.", kind="message", key="5", author="bo", thread="t", sequence=2),
    NewDocument("# Ferry\n\nIt leaves at noon.\n\n## Back\n\nAt six.", key="6", syntax="markdown"),
    NewDocument("a cue", kind="caption", key="7", occurred=Period(parse_instant(0), parse_instant(60))),
]
HOSTILE = [
    NewDocument("", "empty", key="a/../b?c#d%2F"),
    NewDocument("a\x00b \ud800 \ud83c\udf89 \u202e", "\x07", key="\ud800", metadata={"\x00": ["\udc00"]}),
    NewDocument(
        "page one. page two.", key="p", places=(TextPosition(0, 1), TextPosition(10, 2, ("Heading",)))
    ),
    NewDocument("in two halves", key="s", spans=((0, 6), (6, 13))),
    NewDocument("deep", key="m", metadata={"a": {"b": [{"c": 1.5, "d": True}]}, "at": parse_instant(9)}),
]
FILTERS: Sequence[Filter] = [
    And(),
    Eq(("lang",), "en"),
    In(("lang",), ("de", "fr")),
    Not(Exists(("lang",))),
    Between("sequence", 1, 2),
    Overlaps(parse_instant(30), None),
    And((Eq("kind", "message"), Eq("author", "bo"))),
]


def untimed(answer: Retrieval | ContextWindow) -> Retrieval | ContextWindow:
    """A result without what differs from call to call."""
    return replace(answer, timings={})


async def filled(engine: AnyEngine) -> list[str]:
    """Store the notes with their vectors; their ids."""
    return [written.id for written in await engine.add(NOTES, wait=True)]
