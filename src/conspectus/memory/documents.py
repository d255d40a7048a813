"""Memories as documents, and documents as memories."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from conspectus.errors import InvalidInput
from conspectus.graph.name_keys import key_of
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, Or
from conspectus.model.graph import Fact
from conspectus.model.memory import (
    AGENT,
    CLASS,
    CLASSES,
    CLOSED_BY,
    CLOSES,
    CONVERSATION,
    FACT,
    KNOWN_FROM,
    NEAR,
    OWN,
    PINNED,
    TURNS,
    UNTIL,
    USER,
    VALID_FROM,
    VALID_UNTIL,
    Memory,
    NewMemory,
    Scope,
)
from conspectus.model.records import Document, Json, NewDocument
from conspectus.model.streams import ENTITIES
from conspectus.text.times import canonical, parse_instant, render

A_MOMENT = timedelta(microseconds=1)
NAMING = frozenset({NEAR, CLOSES, CLOSED_BY})
"""What of a memory names others."""
CURRENT: Filter = Not(Eq("kind", "version"))
"""What is known now."""


def document_of(new: NewMemory, scope: Scope, *, now: datetime, beside: Mapping[str, Json]) -> NewDocument:
    """A memory as it is stored, with `beside` what the store itself says of it. Raises InvalidInput."""
    if new.kind not in CLASSES:
        raise InvalidInput("kind", f"must be one of {', '.join(CLASSES)}")
    if not new.text.strip():
        raise InvalidInput("text", "there is nothing in it to remember")
    begins, ends = _instant(new.valid_from), _instant(new.valid_until)
    if begins is not None and ends is not None and ends < begins:
        raise InvalidInput("valid_until", "is before valid_from")
    told: dict[str, object] = {
        USER: scope.user,
        AGENT: scope.agent,
        CONVERSATION: scope.conversation,
        CLASS: new.kind,
        PINNED: new.pinned or None,
        FACT: None if new.fact is None else _fact(new.fact),
        VALID_FROM: None if begins is None else canonical(begins),
        VALID_UNTIL: None if ends is None else canonical(ends),
        ENTITIES: list(new.entities) or None,
        OWN: dict(new.metadata) or None,
    }
    return NewDocument(
        text=new.text,
        kind="memory",
        key=new.key,
        metadata={name: value for name, value in {**told, **beside}.items() if value is not None},
        author=new.speaker,
        role=new.role,
        occurred=now if new.at is None else new.at,
        thread=TURNS if new.kind == "turn" else None,
        vector=new.vector,
    )


def memory_of(document: Document, text: str, scope: Scope) -> Memory:
    """A stored memory, or a version of one, which has the id of the memory."""
    told = document.metadata
    version = document.kind == "version"
    known_from = _time(told, KNOWN_FROM)
    return Memory(
        id=str(document.parent) if version else str(document.id),
        text=text,
        scope=scope,
        document=document,
        kind="note" if told.get(CLASS) == "note" else "turn",
        pinned=told.get(PINNED) is True,
        metadata=_mapping(told.get(OWN)),
        known_from=known_from if known_from is not None else document.recorded,
        known_until=_time(told, UNTIL) if version else None,
        fact=fact_of(document),
        valid_from=_time(told, VALID_FROM),
        valid_until=_time(told, VALID_UNTIL),
        closed_by=_string(told.get(CLOSED_BY)),
        closes=_strings(told.get(CLOSES)),
        near=_strings(told.get(NEAR)),
        entities=_strings(told.get(ENTITIES)),
    )


def naming_only(ended: Mapping[str, str | None], memory: Memory) -> Memory:
    """The same memory, as far as the others that it names are there, and what it ended was by it.

    `ended` has those that are there, with what ended each.
    """
    then = memory.document.kind == "version"
    near = tuple(name for name in memory.near if name in ended)
    closes = tuple(name for name in memory.closes if name in ended and (then or ended[name] == memory.id))
    by = memory.closed_by if memory.closed_by in ended else None
    if (near, closes, by) == (memory.near, memory.closes, memory.closed_by):
        return memory
    fewer = replace(memory, near=near, closes=closes, closed_by=by)
    plain = {name: each for name, each in memory.document.metadata.items() if name not in NAMING}
    return replace(fewer, document=replace(memory.document, metadata={**plain, **beside_of(fewer)}))


def as_given(memory: Memory) -> NewMemory:
    """A stored memory as one that would be stored just so."""
    document = memory.document
    return NewMemory(
        text=memory.text,
        key=document.key,
        role=document.role,
        speaker=document.author,
        at=None if document.occurred is None else document.occurred.start,
        kind=memory.kind,
        pinned=memory.pinned,
        fact=memory.fact,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        entities=memory.entities,
        metadata=memory.metadata,
    )


def beside_of(memory: Memory) -> dict[str, Json]:
    """What the store itself says of a memory."""
    told: dict[str, Json] = {
        CLOSED_BY: memory.closed_by,
        CLOSES: list(memory.closes) or None,
        NEAR: list(memory.near) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def version_of(memory: Memory, *, now: datetime) -> NewDocument:
    """What a memory was until now, as a document of its own that goes when the memory goes."""
    document = memory.document
    known = {KNOWN_FROM: canonical(memory.known_from), UNTIL: canonical(now)}
    return NewDocument(
        text=memory.text,
        kind="version",
        metadata={**document.metadata, **known},
        author=document.author,
        role=document.role,
        occurred=document.occurred,
        parent=str(document.id),
    )


def remade(memory: Memory, new: NewMemory, *, now: datetime, beside: Mapping[str, Json]) -> NewDocument:
    """A memory that has changed; it keeps its key, and so its id."""
    known: dict[str, Json] = {KNOWN_FROM: canonical(now)}
    made = document_of(
        replace(new, key=memory.document.key), memory.scope, now=now, beside={**beside, **known}
    )
    return replace(made, expected=memory.document.fingerprint)


def known_at(instant: datetime | None) -> Filter:
    """What was known at an instant, of what is still there; None: what is known now."""
    if instant is None:
        return CURRENT
    after = instant + A_MOMENT
    there = And((CURRENT, Between("recorded", None, after), _began(after)))
    before = And((Between((KNOWN_FROM,), None, after), Between((UNTIL,), after, None)))
    return Or((there, And((Eq("kind", "version"), before))))


def remembered(kind: str | None = None, entity: str | None = None) -> Filter:
    """Memories of one class, or with a name among those told or in the fact; any where nothing is given."""
    parts: list[Filter] = [In("kind", ("memory", "version"))]
    if kind is not None:
        parts.append(Eq((CLASS,), kind))
    if entity is not None:
        ends = (Eq((FACT, "subject"), entity), Eq((FACT, "object"), entity))
        parts.append(Or((In((ENTITIES,), (entity, key_of(entity))), *ends)))
    return And(tuple(parts))


def fact_of(document: Document) -> Fact | None:
    """The fact that a memory states."""
    match document.metadata.get(FACT):
        case {"subject": str(subject), "predicate": str(predicate), "object": str(target), **rest}:
            return Fact(subject, predicate, target, rest.get("single") is not False)
        case _:
            return None


def closed_by(document: Document) -> str | None:
    """The memory whose fact ended that of a memory."""
    return _string(document.metadata.get(CLOSED_BY))


def ended(document: Document, at: datetime) -> bool:
    """Whether what a memory states was no longer true at an instant."""
    until = _time(document.metadata, VALID_UNTIL)
    return until is not None and until <= at


def told_with(document: Document, at: datetime) -> str:
    """What has to stand beside a memory that was not true at an instant; empty where nothing has to."""
    begins, ends = (_time(document.metadata, name) for name in (VALID_FROM, VALID_UNTIL))
    if ends is not None and ends <= at:
        return f"[no longer true since {render(ends)}]"
    return f"[true only from {render(begins)}]" if begins is not None and begins > at else ""


def _began(after: datetime) -> Filter:
    return Or((Not(Exists((KNOWN_FROM,))), Between((KNOWN_FROM,), None, after)))


def _fact(fact: Fact) -> dict[str, Json]:
    for name in ("subject", "predicate", "object"):
        if not getattr(fact, name).strip():
            raise InvalidInput(f"fact.{name}", "must not be empty")
    return {
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "single": fact.single,
    }


def _instant(value: datetime | str | None) -> datetime | None:
    return None if value is None else parse_instant(value)


def _time(told: Mapping[str, Any], name: str) -> datetime | None:
    value = told.get(name)
    return datetime.fromisoformat(value) if isinstance(value, str) else None


def _string(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
