"""Memories as documents: their metadata, facts, near duplicates and the newest turns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

from conspectus.errors import InvalidInput
from conspectus.ingest.document_fields import period
from conspectus.model.filter import And, Between, Eq, Exists, Filter, In, Not, Or
from conspectus.model.graph import Fact
from conspectus.model.memory import (
    AGENT,
    CITES,
    CLASS,
    CLASSES,
    CLOSED_BY,
    CLOSES,
    CONVERSATION,
    FACT,
    FACT_KINDS,
    KNOWN_FROM,
    NEAR,
    OWN,
    PINNED,
    TURNS,
    UNTIL,
    USER,
    VALID_FROM,
    VALID_UNTIL,
    ExtractedFact,
    Memory,
    MemoryCitation,
    MemoryKind,
    NewMemory,
    Scope,
)
from conspectus.model.records import Document, Json, NewDocument
from conspectus.model.stream_events import ENTITIES
from conspectus.text.name_keys import key_of
from conspectus.text.times import canonical, render, validity

A_MOMENT = timedelta(microseconds=1)
NAMING = frozenset({NEAR, CLOSES, CLOSED_BY})
"""Metadata fields that refer to other memories."""
CURRENT: Filter = Not(Eq("kind", "version"))
"""Selects current memories, not earlier versions."""
GIVEN: Filter = Not(In((CLASS,), FACT_KINDS))
"""Selects memories that were given, not facts that were extracted from them."""


def document_of(new: NewMemory, scope: Scope, *, now: datetime, beside: Mapping[str, Json]) -> NewDocument:
    """Return the document of a memory. `beside` is metadata set by the store. Raises InvalidInput."""
    if new.kind not in CLASSES:
        raise InvalidInput("kind", f"must be one of {', '.join(CLASSES)}")
    if not new.text.strip():
        raise InvalidInput("text", "is empty")
    # Checked here: preparing the document would report the error for its field `occurred`.
    period(new.at, field="at")
    begins, ends = validity(new.valid_from, new.valid_until)
    cites = new.cites if isinstance(new, ExtractedFact) else None
    metadata: dict[str, object] = {
        USER: scope.user,
        AGENT: scope.agent,
        CONVERSATION: scope.conversation,
        CLASS: new.fact_kind if isinstance(new, ExtractedFact) else new.kind,
        PINNED: new.pinned or None,
        FACT: None if new.fact is None else _encode_fact(new.fact),
        VALID_FROM: None if begins is None else canonical(begins),
        VALID_UNTIL: None if ends is None else canonical(ends),
        ENTITIES: list(new.entities) or None,
        CITES: None if cites is None else asdict(cites),
        OWN: dict(new.metadata) or None,
    }
    return NewDocument(
        text=new.text,
        kind="memory",
        key=new.key,
        metadata={name: value for name, value in {**metadata, **beside}.items() if value is not None},
        author=new.speaker,
        role=new.role,
        occurred=now if new.at is None else new.at,
        thread=TURNS if new.kind == "turn" and cites is None else None,
        parent=None if cites is None else cites.memory,
        vector=new.vector,
        origin=new.origin,
        trust=new.trust,
    )


def memory_of(document: Document, text: str, scope: Scope) -> Memory:
    """Return the memory of a stored document. A version has the id of its memory."""
    metadata = document.metadata
    version = document.kind == "version"
    known_from, stored_names = _time(metadata, KNOWN_FROM), metadata.get(OWN)
    return Memory(
        id=str(document.parent) if version else str(document.id),
        text=text,
        scope=scope,
        document=document,
        kind=kind_of(document),
        pinned=metadata.get(PINNED) is True,
        metadata=stored_names if isinstance(stored_names, Mapping) else {},
        known_from=known_from if known_from is not None else document.recorded,
        known_until=_time(metadata, UNTIL) if version else None,
        fact=fact_of(document),
        valid_from=_time(metadata, VALID_FROM),
        valid_until=_time(metadata, VALID_UNTIL),
        closed_by=_read_text(metadata.get(CLOSED_BY)),
        closes=_strings(metadata.get(CLOSES)),
        near=_strings(metadata.get(NEAR)),
        entities=_strings(metadata.get(ENTITIES)),
        cites=read_citation(document),
    )


def kind_of(document: Document) -> MemoryKind:
    """Return the kind of a memory."""
    stored = document.metadata.get(CLASS)
    kinds: tuple[MemoryKind, ...] = ("note", *FACT_KINDS)
    return next((kind for kind in kinds if kind == stored), "turn")


def read_citation(document: Document) -> MemoryCitation | None:
    """Return what a fact was extracted from."""
    match document.metadata.get(CITES):
        case {"memory": str(memory), "quote": str(quote), "start": int(start), "end": int(end), **rest}:
            model, prompt = (str(rest.get(name, "")) for name in ("model", "prompt"))
            return MemoryCitation(memory, quote, start, end, model, prompt)
        case _:
            return None


def without_unknown_references(ended: Mapping[str, str | None], memory: Memory) -> Memory:
    """Return the memory without references to memories that do not exist or that it did not close.

    `ended` maps each existing memory to the id of the memory that closed it, if any. A version keeps all
    references to existing memories.
    """
    then = memory.document.kind == "version"
    near = tuple(name for name in memory.near if name in ended)
    closes = tuple(name for name in memory.closes if name in ended and (then or ended[name] == memory.id))
    by = memory.closed_by if memory.closed_by in ended else None
    if (near, closes, by) == (memory.near, memory.closes, memory.closed_by):
        return memory
    fewer = replace(memory, near=near, closes=closes, closed_by=by)
    plain = {name: content for name, content in memory.document.metadata.items() if name not in NAMING}
    return replace(fewer, document=replace(memory.document, metadata={**plain, **store_metadata(fewer)}))


def as_input(memory: Memory) -> NewMemory:
    """Return the input that would store this memory unchanged."""
    document = memory.document
    return _input_of(memory.kind, memory.cites)(
        text=memory.text,
        key=document.key,
        role=document.role,
        speaker=document.author,
        at=None if document.occurred is None else document.occurred.start,
        pinned=memory.pinned,
        fact=memory.fact,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        entities=memory.entities,
        metadata=memory.metadata,
        origin=document.origin,
        trust=document.trust,
    )


def _input_of(kind: MemoryKind, cites: MemoryCitation | None) -> Callable[..., NewMemory]:
    """Return what makes the input of a memory of a kind."""
    if cites is not None and kind in FACT_KINDS:
        return partial(ExtractedFact, fact_kind=kind, cites=cites)
    return partial(NewMemory, kind="note" if kind == "note" else "turn")


def store_metadata(memory: Memory) -> dict[str, Json]:
    """Return the metadata of a memory that the store sets itself."""
    metadata: dict[str, Json] = {
        CLOSED_BY: memory.closed_by,
        CLOSES: list(memory.closes) or None,
        NEAR: list(memory.near) or None,
    }
    return {name: value for name, value in metadata.items() if value is not None}


def version_of(memory: Memory, *, now: datetime) -> NewDocument:
    """Return the state of a memory until now, as a document that is deleted with the memory."""
    document = memory.document
    stored = {KNOWN_FROM: canonical(memory.known_from), UNTIL: canonical(now)}
    return NewDocument(
        text=memory.text,
        kind="version",
        metadata={**document.metadata, **stored},
        author=document.author,
        role=document.role,
        occurred=document.occurred,
        parent=str(document.id),
        origin=document.origin,
        trust=document.trust,
    )


def date_versions(versions: Sequence[Memory]) -> list[Memory]:
    """Return versions of a memory, oldest first, each but the last with when the next one took its place."""
    stored: list[Memory] = []
    for version, following in pairwise(versions):
        began, later = version.valid_from, following.valid_from
        holds = later is not None and (began is None or began < later)
        stored.append(replace(version, superseded=later if holds else following.known_from))
    return [*stored, *versions[-1:]]


def change_document(
    memory: Memory, new: NewMemory, *, now: datetime, beside: Mapping[str, Json]
) -> NewDocument:
    """Return the document of a changed memory. It keeps the key, and therefore the id."""
    stored: dict[str, Json] = {KNOWN_FROM: canonical(now)}
    document = document_of(
        replace(new, key=memory.document.key), memory.scope, now=now, beside={**beside, **stored}
    )
    return replace(document, if_match=memory.document.fingerprint)


def as_of_filter(instant: datetime | None) -> Filter:
    """Filter for memories as known at an instant (None: now). Deleted memories are not included."""
    if instant is None:
        return CURRENT
    after = instant + A_MOMENT
    began = Or((Not(Exists((KNOWN_FROM,))), Between((KNOWN_FROM,), None, after)))
    there = And((CURRENT, Between("recorded", None, after), began))
    before = And((Between((KNOWN_FROM,), None, after), Between((UNTIL,), after, None)))
    return Or((there, And((Eq("kind", "version"), before))))


def memory_filter(kind: str | None = None, entity: str | None = None) -> Filter:
    """Filter for memories of a kind that mention an entity or have it in their fact. None matches all."""
    parts: list[Filter] = [In("kind", ("memory", "version"))]
    if kind is not None:
        parts.append(Eq((CLASS,), kind))
    if entity is not None:
        ends = (Eq((FACT, "subject"), entity), Eq((FACT, "object"), entity))
        parts.append(Or((In((ENTITIES,), (entity, key_of(entity))), *ends)))
    return And(tuple(parts))


def fact_of(document: Document) -> Fact | None:
    """Return the fact that a memory states."""
    match document.metadata.get(FACT):
        case {"subject": str(subject), "predicate": str(predicate), "object": str(target), **rest}:
            return Fact(subject, predicate, target, rest.get("single") is not False)
        case _:
            return None


def read_closing_memory(document: Document) -> str | None:
    """Return the id of the memory whose fact ended the fact of this memory."""
    return _read_text(document.metadata.get(CLOSED_BY))


def has_ended(document: Document, at: datetime) -> bool:
    """Return whether the statement of a memory was no longer true at an instant."""
    until = _time(document.metadata, VALID_UNTIL)
    return until is not None and until <= at


def validity_remark(document: Document, at: datetime) -> str:
    """Return a remark for a memory that was not true at an instant, or an empty string."""
    begins, ends = (_time(document.metadata, name) for name in (VALID_FROM, VALID_UNTIL))
    if ends is not None and ends <= at:
        return f"[no longer true since {render(ends)}]"
    if begins is not None and begins > at:
        return f"[true only from {render(begins)}]"
    return ""


def source_remark(document: Document) -> str:
    """Return a remark with the kind of an extracted fact and the memory that it cites, or an empty string."""
    cites = read_citation(document)
    if cites is None:
        return ""
    return f"[{kind_of(document)} from memory {cites.memory}]"


def _encode_fact(fact: Fact) -> dict[str, Json]:
    for name in ("subject", "predicate", "object"):
        if not getattr(fact, name).strip():
            raise InvalidInput(f"fact.{name}", "must not be empty")
    return asdict(fact)


def _time(metadata: Mapping[str, Any], name: str) -> datetime | None:
    value = metadata.get(name)
    return datetime.fromisoformat(value) if isinstance(value, str) else None


def _read_text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _strings(value: Json) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for text in value if isinstance(text, str))
    return ()
