"""The history of a memory that is known in two places, put together: nothing that either knows is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from conspectus.memory.documents import as_given, beside_of, document_of
from conspectus.memory.jsonl import Line, MemoryVersionLine, Reference
from conspectus.model.memory import (
    CLOSED_BY,
    CLOSES,
    KNOWN_FROM,
    NEAR,
    UNTIL,
    Memory,
    NewMemory,
    Scope,
)
from conspectus.model.records import Json, NewDocument
from conspectus.text.hashing import stable_id
from conspectus.text.times import canonical


@dataclass(frozen=True, slots=True)
class VersionStep:
    """What a memory was from an instant until another (None: it is so still), as stored or as on a line."""

    known: Memory | MemoryVersionLine
    until: datetime | None

    @property
    def stays(self) -> bool:
        """Whether it is stored just so."""
        return isinstance(self.known, Memory) and self.known.known_until == self.until

    @property
    def text(self) -> str:
        """What the memory said, word for word."""
        return _new(self).text


def merged(stored: Sequence[Memory], line: Line) -> list[VersionStep]:
    """All that was ever known of a memory, oldest first; of one time, the line knows better.

    Empty where what is stored knows all that is on the line.
    """
    known = [(each.known_from, replace(as_given(each), key=line.key)) for each in stored]
    fresh = [each for each in line.states if (each.known_from, each.new) not in known]
    if stored and not fresh:
        return []
    everything: list[Memory | MemoryVersionLine] = sorted([*stored, *fresh], key=lambda each: each.known_from)
    ends = [*(each.known_from for each in everything[1:]), None]
    return [VersionStep(each, until) for each, until in zip(everything, ends, strict=True)]


def current_of(step: VersionStep, scope: Scope, ids: Mapping[Reference, str], *, first: bool) -> NewDocument:
    """The newest step as the memory itself; with the time from when it is known, unless it is the first."""
    since = step.known.known_from
    known: dict[str, Json] = {} if first else {KNOWN_FROM: canonical(since)}
    return document_of(_new(step), scope, now=since, beside={**_beside(step.known, ids), **known})


def earlier_of(step: VersionStep, memory: str, scope: Scope, ids: Mapping[Reference, str]) -> NewDocument:
    """An earlier step as a version that goes with its memory."""
    since = step.known.known_from
    known: dict[str, Json] = {KNOWN_FROM: canonical(since), UNTIL: canonical(step.until or since)}
    made = document_of(_new(step), scope, now=since, beside={**_beside(step.known, ids), **known})
    key = stable_id("version", memory, canonical(since), made.text)
    if isinstance(step.known, Memory) and step.known.document.kind == "version":
        key = step.known.document.key
    return replace(made, kind="version", key=key, parent=memory, thread=None)


def _new(step: VersionStep) -> NewMemory:
    return as_given(step.known) if isinstance(step.known, Memory) else step.known.new


def _beside(known: Memory | MemoryVersionLine, ids: Mapping[Reference, str]) -> dict[str, Json]:
    """What the store itself says of it; of other memories only those that `ids` names."""
    if isinstance(known, Memory):
        return beside_of(known)
    by = None if known.closed_by is None else ids.get(known.closed_by)
    closes: list[Json] = [ids[each] for each in known.closes if each in ids]
    near: list[Json] = [ids[each] for each in known.near if each in ids]
    told: dict[str, Json] = {CLOSED_BY: by, CLOSES: closes or None, NEAR: near or None}
    return {name: value for name, value in told.items() if value is not None}
