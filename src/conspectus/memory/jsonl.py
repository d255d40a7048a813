"""Memories as JSON Lines: one object per line. Errors name the line."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise
from typing import Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.memory.json_fields import Fields
from conspectus.memory.scopes import check_scope
from conspectus.model.graph import Fact
from conspectus.model.memory import CLASSES, Memory, NewMemory, Scope
from conspectus.model.records import EmbeddingSpace
from conspectus.model.trust import ORIGINS, TRUST
from conspectus.text.times import canonical, parse_instant, validity

FORMAT: Final = 1
_ENDS: Final = {"\u0085": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Line separators for some programs, but not in JSON Lines."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another memory of the same user by scope and key."""

    scope: Scope
    key: str


@dataclass(frozen=True, slots=True)
class GivenVector:
    """A vector that the writer gave, and the name of its embedding model."""

    vector: tuple[float, ...]
    space: str


@dataclass(frozen=True, slots=True)
class MemoryVersionLine:
    """A state of a memory from an instant on, with its references to other memories."""

    new: NewMemory
    known_from: datetime
    closed_by: Reference | None = None
    closes: tuple[Reference, ...] = ()
    near: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A memory with its history, oldest state first. `recorded` is the time it was first stored.

    `vector_space` is the embedding model of the vector of the newest state, if the line names it.
    """

    scope: Scope
    key: str
    recorded: datetime
    states: tuple[MemoryVersionLine, ...]
    vector_space: str | None = None

    def in_space(self, space: EmbeddingSpace | None) -> "Line":
        """Return the line, without its vector if that is of another embedding model than the collection's."""
        if self.vector_space is None or (space is not None and space.name == self.vector_space):
            return self
        *earlier, newest = self.states
        newest = replace(newest, new=replace(newest.new, vector=None))
        return replace(self, states=(*earlier, newest), vector_space=None)


def line_of(
    versions: Sequence[Memory], references: Mapping[str, Reference], vector: GivenVector | None = None
) -> str:
    """Return the line of a memory, with its newest state last. Other references are omitted."""
    memory, scope = versions[-1], versions[-1].scope
    fields = {
        "format": FORMAT,
        "key": memory.document.key,
        "user": scope.user,
        "agent": scope.agent,
        "conversation": scope.conversation,
        "recorded": canonical(memory.document.recorded),
        **_state(memory, references),
        "vector": None if vector is None else list(vector.vector),
        "vector_space": None if vector is None else vector.space,
        "versions": [_brief(_state(version, references)) for version in versions[:-1]],
    }
    return _write_line(fields)


def new_line(
    new: NewMemory, scope: Scope, states: Sequence[tuple[datetime, str]], *, recorded: datetime
) -> str:
    """Return the line of a memory that was kept elsewhere, with its texts there, oldest first.

    Each text has the time from which it held. All states but the last have no metadata and no vector.
    Without `at`, it was said when it was `recorded`.
    """
    since, text = states[-1]
    shared = {"kind": new.kind, "role": new.role, "speaker": new.speaker}
    shared |= {"at": canonical(recorded if new.at is None else parse_instant(new.at))}
    begins, ends = validity(new.valid_from, new.valid_until)
    fields = {
        "format": FORMAT,
        "key": new.key,
        **asdict(scope),
        "recorded": canonical(recorded),
        **shared,
        "text": text,
        "known_from": canonical(since),
        "pinned": new.pinned,
        "fact": None if new.fact is None else asdict(new.fact),
        "valid_from": None if begins is None else canonical(begins),
        "valid_until": None if ends is None else canonical(ends),
        "entities": list(new.entities),
        "metadata": dict(new.metadata),
        "vector": None if new.vector is None else list(new.vector),
        "versions": [
            _brief({**shared, "text": former, "known_from": canonical(since)})
            for since, former in states[:-1]
        ],
    }
    return _write_line(fields)


def _write_line(fields: Mapping[str, object]) -> str:
    line = json.dumps(_brief(fields), ensure_ascii=False, allow_nan=False)
    for end, escaped in _ENDS.items():
        line = line.replace(end, escaped)
    return line


def read_line(text: str) -> Line:
    """Parse an exported line. Raises InvalidInput."""
    fields = Fields.of_line(text)
    if fields.number("format") != FORMAT:
        raise InvalidInput("format", f"must be {FORMAT}, as in exported lines")
    scope = check_scope(Scope(fields.text("user"), fields.text("agent"), fields.text("conversation")))
    key, recorded = fields.read_required("key"), fields.time("recorded")
    vector_space = fields.text("vector_space")
    earlier = [_read_state(version, key, scope.user) for version in fields.inners("versions")]
    states = (*earlier, _read_state(fields, key, scope.user))
    if any(one.known_from > following.known_from for one, following in pairwise(states)):
        raise InvalidInput("versions", "are not ordered by `known_from`")
    first = states[0].known_from
    return Line(scope, key, first if recorded is None else min(first, recorded), states, vector_space)


def _state(memory: Memory, references: Mapping[str, Reference]) -> dict[str, object]:
    document, fact = memory.document, memory.fact
    return {
        "text": memory.text,
        "kind": memory.kind,
        "role": document.role,
        "speaker": document.author,
        "at": None if document.occurred is None else canonical(document.occurred.start),
        "pinned": memory.pinned,
        "fact": None if fact is None else asdict(fact),
        "valid_from": None if memory.valid_from is None else canonical(memory.valid_from),
        "valid_until": None if memory.valid_until is None else canonical(memory.valid_until),
        "entities": list(memory.entities),
        "metadata": dict(memory.metadata),
        "origin": document.origin,
        "trust": document.trust,
        "known_from": canonical(memory.known_from),
        "closed_by": _reference_fields(references.get(memory.closed_by or "")),
        "closes": [
            _reference_fields(references[reference]) for reference in memory.closes if reference in references
        ],
        "near": [
            _reference_fields(references[reference]) for reference in memory.near if reference in references
        ],
    }


def _brief(fields: Mapping[str, object]) -> dict[str, object]:
    """Remove fields without a value. An empty `text` is kept."""
    return {
        key: value for key, value in fields.items() if key == "text" or value not in (None, False, [], {})
    }


def _reference_fields(reference: Reference | None) -> dict[str, object] | None:
    if reference is None:
        return None
    scope = reference.scope
    return _brief({"key": reference.key, "agent": scope.agent, "conversation": scope.conversation})


def _read_state(fields: Fields, key: str, user: str | None) -> MemoryVersionLine:
    kind, known_from = fields.read_required("kind"), fields.time("known_from")
    if kind not in CLASSES:
        raise InvalidInput("kind", f"must be one of {', '.join(CLASSES)}")
    if known_from is None:
        raise InvalidInput("known_from", "is missing")
    new = NewMemory(
        text=fields.read_required("text"),
        key=key,
        role=fields.text("role"),
        speaker=fields.text("speaker"),
        at=fields.time("at"),
        kind=kind,
        pinned=fields.flag("pinned"),
        fact=_read_fact(fields.inner("fact")),
        valid_from=fields.time("valid_from"),
        valid_until=fields.time("valid_until"),
        entities=fields.names("entities"),
        metadata=fields.values("metadata"),
        vector=fields.vector("vector"),
        origin=fields.one_of("origin", ORIGINS) or "import",
        trust=fields.one_of("trust", TRUST),
    )
    closed_by = fields.inner("closed_by")
    state = MemoryVersionLine(
        new,
        known_from,
        None if closed_by is None else _reference(closed_by, user),
        tuple(_reference(reference, user) for reference in fields.inners("closes")),
        tuple(_reference(reference, user) for reference in fields.inners("near")),
    )
    fields.end()
    return state


def _read_fact(fields: Fields | None) -> Fact | None:
    if fields is None:
        return None
    subject, predicate, target = (fields.read_required(field) for field in ("subject", "predicate", "object"))
    fact = Fact(subject, predicate, target, fields.flag("single"))
    fields.end()
    return fact


def _reference(fields: Fields, user: str | None) -> Reference:
    scope = check_scope(Scope(user, fields.text("agent"), fields.text("conversation")))
    reference = Reference(scope, fields.read_required("key"))
    fields.end()
    return reference
