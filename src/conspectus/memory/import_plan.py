"""Lines of an export on their way into a store: the documents, the nodes and the edges that they become."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from conspectus.errors import InvalidInput
from conspectus.graph.name_keys import key_of
from conspectus.ingest.prepare import Preparation, describe, prepare
from conspectus.memory.jsonl import Line, Reference
from conspectus.memory.version_merge import VersionStep, current_of, earlier_of, merged
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import Memory, MemoryWritten, Scope
from conspectus.model.records import NewDocument, PreparedDocument
from conspectus.text.times import parse_instant


def taken_in(
    batch: Sequence[Line],
    stored: Mapping[str, Sequence[Memory]],
    ids: Mapping[Reference, str],
    preparations: Mapping[Scope, Preparation],
) -> tuple[list[PreparedDocument], list[MemoryWritten]]:
    """What is to be written of lines, given what is stored of them by id, and what becomes of each."""
    ready: list[PreparedDocument] = []
    done: list[MemoryWritten] = []
    for line in batch:
        name = ids[Reference(line.scope, line.key)]
        before = stored.get(name, ())
        steps = merged(before, line)
        if steps:
            ready += _prepared(line, steps, before, ids, preparations[line.scope])
        done.append(MemoryWritten(name, _outcome_of(steps, before)))
    return ready, done


def is_newest(line: Line, before: Sequence[Memory]) -> bool:
    """Whether nothing is stored that came to be known after what is on the line."""
    return not before or before[-1].known_from <= line.states[-1].known_from


def ends_of(line: Line) -> list[NewNode]:
    """The two ends of the fact of a line."""
    fact = _fact_of(line)
    return [NewNode(key_of(each), name=each) for each in (fact.subject, fact.object)]


def edge_of(line: Line, memory: str) -> NewEdge:
    """The fact of a line as an edge whose evidence is the memory."""
    fact, state = _fact_of(line), line.states[-1]
    said = state.known_from if state.new.at is None else parse_instant(state.new.at)
    return NewEdge(
        key_of(fact.subject),
        key_of(fact.object),
        fact.predicate,
        valid_from=state.new.valid_from or said,
        valid_until=state.new.valid_until,
        single=fact.single,
        evidence=memory,
    )


def _prepared(
    line: Line,
    steps: Sequence[VersionStep],
    before: Sequence[Memory],
    ids: Mapping[Reference, str],
    by: Preparation,
) -> list[PreparedDocument]:
    """What is to be written of a memory, with the times at which it was known: itself, then its versions."""
    memory, ready = ids[Reference(line.scope, line.key)], []
    *earlier, newest = steps
    if not newest.stays:
        recorded = before[-1].document.recorded if before else line.recorded
        since = newest.known.known_from
        new = current_of(newest, line.scope, ids, first=since == recorded)
        expected = before[-1].document.fingerprint if before else None
        ready.append(_ready(new, by, (recorded, since), expected))
    for step in earlier:
        if not step.stays and step.until is not None:
            new = earlier_of(step, memory, line.scope, ids)
            ready.append(_ready(new, by, (step.until, step.until)))
    return ready


def _outcome_of(
    steps: Sequence[VersionStep], before: Sequence[Memory]
) -> Literal["added", "replaced", "updated", "unchanged"]:
    """What taking in a line does to a memory."""
    if not before:
        return "added"
    if not steps:
        return "unchanged"
    return "updated" if steps[-1].text == before[-1].text else "replaced"


def _fact_of(line: Line) -> Fact:
    fact = line.states[-1].new.fact
    if fact is None:
        raise InvalidInput("fact", "is missing")
    return fact


def _ready(
    new: NewDocument, by: Preparation, times: tuple[datetime, datetime], expected: str | None = None
) -> PreparedDocument:
    """A document as it was recorded and updated at these times."""
    recorded, updated = times
    described = replace(describe(new, by), recorded=recorded, updated=updated)
    return prepare(new, described, by, expected=expected)
