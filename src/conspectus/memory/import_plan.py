"""Plan an import of memories: new memories, versions of stored memories, and changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.ingest.batch_writes import beside_stored
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.prepare import describe, prepare
from conspectus.memory.documents import as_input, document_of, store_metadata
from conspectus.memory.jsonl import Line, MemoryVersionLine, Reference
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.ids import DocumentId
from conspectus.model.memory import (
    CLOSED_BY,
    CLOSES,
    KNOWN_FROM,
    NEAR,
    UNTIL,
    Memory,
    MemoryWritten,
    NewMemory,
    Scope,
)
from conspectus.model.quarantine import quarantine_pattern
from conspectus.model.records import Document, Json, NewDocument, PreparedDocument
from conspectus.text.hashing import stable_id
from conspectus.text.name_keys import key_of
from conspectus.text.times import canonical, parse_instant


@dataclass(frozen=True, slots=True)
class VersionStep:
    """A state of a memory, from the store or from an imported line, up to `until` (None: current)."""

    state: Memory | MemoryVersionLine
    until: datetime | None

    @property
    def stays(self) -> bool:
        """Whether the store already has this state with this end."""
        return isinstance(self.state, Memory) and self.state.known_until == self.until

    @property
    def text(self) -> str:
        """The exact text of the memory in this state."""
        return _new(self).text


@dataclass(frozen=True, slots=True)
class StoredLevels:
    """How the documents of a scope are prepared, and stored ones by id."""

    by: Preparation
    documents: Mapping[DocumentId, Document]


def merge_states(stored: Sequence[Memory], line: Line) -> list[VersionStep]:
    """Merge stored and imported states of a memory, oldest first.

    Empty if the store already has all imported states, whatever their vectors. For equal times, the imported
    state comes last.
    """
    before = [(memory.known_from, _comparable(replace(as_input(memory), key=line.key))) for memory in stored]
    fresh = [
        version for version in line.states if (version.known_from, _comparable(version.new)) not in before
    ]
    if stored and not fresh:
        return []
    everything: list[Memory | MemoryVersionLine] = sorted(
        [*stored, *fresh], key=lambda state: state.known_from
    )
    ends = [*(state.known_from for state in everything[1:]), None]
    return [VersionStep(state, until) for state, until in zip(everything, ends, strict=True)]


def _comparable(new: NewMemory) -> NewMemory:
    """Return a state without its vector and level: the same state keeps the level that is stored."""
    return replace(new, vector=None, origin=None, trust=None)


def current_of(step: VersionStep, scope: Scope, ids: Mapping[Reference, str], *, first: bool) -> NewDocument:
    """Return the newest state as the document of the memory, with its start unless it is the first state."""
    since = step.state.known_from
    stored: dict[str, Json] = {} if first else {KNOWN_FROM: canonical(since)}
    return document_of(_new(step), scope, now=since, beside={**_store_metadata(step.state, ids), **stored})


def earlier_of(step: VersionStep, memory: str, scope: Scope, ids: Mapping[Reference, str]) -> NewDocument:
    """Return an earlier state as a version document, which is deleted with its memory."""
    since = step.state.known_from
    stored: dict[str, Json] = {KNOWN_FROM: canonical(since), UNTIL: canonical(step.until or since)}
    document = document_of(
        _new(step), scope, now=since, beside={**_store_metadata(step.state, ids), **stored}
    )
    key = stable_id("version", memory, canonical(since), document.text)
    if isinstance(step.state, Memory) and step.state.document.kind == "version":
        key = step.state.document.key
    return replace(document, kind="version", key=key, parent=memory, thread=None)


def _new(step: VersionStep) -> NewMemory:
    if isinstance(step.state, Memory):
        return as_input(step.state)
    return step.state.new


def _store_metadata(stored: Memory | MemoryVersionLine, ids: Mapping[Reference, str]) -> dict[str, Json]:
    """Return the metadata that the store sets itself. References are limited to the memories in `ids`."""
    if isinstance(stored, Memory):
        return store_metadata(stored)
    by = None if stored.closed_by is None else ids.get(stored.closed_by)
    closes: list[Json] = [ids[reference] for reference in stored.closes if reference in ids]
    near: list[Json] = [ids[reference] for reference in stored.near if reference in ids]
    metadata: dict[str, Json] = {CLOSED_BY: by, CLOSES: closes or None, NEAR: near or None}
    return {name: value for name, value in metadata.items() if value is not None}


def plan_import(
    batch: Sequence[Line],
    stored: Mapping[str, Sequence[Memory]],
    ids: Mapping[Reference, str],
    preparations: Mapping[Scope, Preparation],
    documents: Mapping[DocumentId, Document],
) -> tuple[list[PreparedDocument], list[MemoryWritten]]:
    """Return the documents to write and the outcomes of lines. `stored` has stored states by id.

    `documents` are stored ones, quarantined ones too, whose levels the written ones do not raise.
    """
    ready: list[PreparedDocument] = []
    done: list[MemoryWritten] = []
    for line in batch:
        name = ids[Reference(line.scope, line.key)]
        before = stored.get(name, ())
        steps = merge_states(before, line)
        levels = StoredLevels(preparations[line.scope], documents)
        prepared = _prepare(line, steps, before, ids, levels) if steps else []
        ready += prepared
        pattern = next(
            (quarantine_pattern(new.document) for new in prepared if new.document.id == name),
            None,
        )
        done.append(MemoryWritten(name, _outcome_of(steps, before), quarantined=pattern))
    return ready, done


def is_newest(line: Line, before: Sequence[Memory]) -> bool:
    """Return whether no stored state is newer than the newest state of the line."""
    return not before or before[-1].known_from <= line.states[-1].known_from


def ends_of(line: Line) -> list[NewNode]:
    """Return the nodes for subject and object of the fact of a line."""
    fact = _fact_of(line)
    return [NewNode(key_of(name), name=name) for name in (fact.subject, fact.object)]


def edge_of(line: Line, memory: str) -> NewEdge:
    """Return the fact of a line as an edge with the memory as evidence."""
    fact, state = _fact_of(line), line.states[-1]
    stated = state.known_from if state.new.at is None else parse_instant(state.new.at)
    return NewEdge(
        key_of(fact.subject),
        key_of(fact.object),
        fact.predicate,
        valid_from=state.new.valid_from or stated,
        valid_until=state.new.valid_until,
        single=fact.single,
        evidence=memory,
    )


def _prepare(
    line: Line,
    steps: Sequence[VersionStep],
    before: Sequence[Memory],
    ids: Mapping[Reference, str],
    levels: StoredLevels,
) -> list[PreparedDocument]:
    """Prepare the documents to write for a memory: the memory itself, then its versions."""
    memory, ready = ids[Reference(line.scope, line.key)], []
    *earlier, newest = steps
    if not newest.stays:
        recorded = before[-1].document.recorded if before else line.recorded
        since = newest.state.known_from
        new = current_of(newest, line.scope, ids, first=since == recorded)
        if_match = before[-1].document.fingerprint if before else None
        ready.append(_ready(new, levels, (recorded, since), if_match))
    for step in earlier:
        if not step.stays and step.until is not None:
            new = earlier_of(step, memory, line.scope, ids)
            ready.append(_ready(new, levels, (step.until, step.until)))
    return ready


def _outcome_of(
    steps: Sequence[VersionStep], before: Sequence[Memory]
) -> Literal["added", "replaced", "updated", "unchanged"]:
    """Return the outcome of a line for its memory."""
    if not before:
        return "added"
    if not steps:
        return "unchanged"
    return "updated" if steps[-1].text == before[-1].text else "replaced"


def _fact_of(line: Line) -> Fact:
    fact = line.states[-1].new.fact
    if fact is None:
        raise InvalidInput("fact", "is missing; give subject, predicate and object")
    return fact


def _ready(
    new: NewDocument, levels: StoredLevels, times: tuple[datetime, datetime], if_match: str | None = None
) -> PreparedDocument:
    """Prepare a document with given times of recording and update."""
    recorded, updated = times
    by = levels.by
    screen = by.screen
    new = new if screen is None else screen.screen_document(new)
    description = describe(new, by)
    described, vector = beside_stored(new, description, levels.documents.get(description[0].id), by)
    dated = replace(described, recorded=recorded, updated=updated)
    return prepare(new, dated, by, vector=vector, if_match=if_match)
