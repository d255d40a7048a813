"""Facts of memories as edges of a graph."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from conspectus.errors import InvalidInput, as_field
from conspectus.ingest.document_fields import period
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import (
    Memory,
    NewMemory,
)
from conspectus.text.name_keys import key_of, relation_key
from conspectus.text.times import parse_instant


def ends_of_fact(new: NewMemory) -> list[NewNode]:
    """Return the nodes for subject and object of a fact; a single node if both have the same key."""
    fact = _require_fact(new)
    nodes = {key_of(name): NewNode(key_of(name), name=name) for name in (fact.subject, fact.object)}
    return list(nodes.values())


def edge_of_fact(new: NewMemory, memory: str | None, now: datetime) -> NewEdge:
    """Return the fact of a memory as an edge. Its validity defaults to the time of the memory."""
    fact, stated_period = _require_fact(new), period(new.at, field="at")
    with as_field("valid_from", was="time"):
        begins = (
            (stated_period.start if stated_period else now)
            if new.valid_from is None
            else parse_instant(new.valid_from)
        )
    return NewEdge(
        key_of(fact.subject),
        key_of(fact.object),
        fact.predicate,
        valid_from=begins,
        valid_until=new.valid_until,
        single=fact.single,
        evidence=memory,
    )


def same_edge(one: NewEdge, other: NewEdge) -> bool:
    """Return whether two edges have the same identity in a graph."""
    return (one.source, one.target, relation_key(one.type), one.valid_from) == (
        other.source,
        other.target,
        relation_key(other.type),
        other.valid_from,
    )


def as_ended(new: NewMemory, stored: Memory) -> NewMemory:
    """Keep the end of a closed fact if the new input repeats the fact without an end."""
    if stored.closed_by is None or new.fact != stored.fact or new.valid_until is not None:
        return new
    return replace(new, valid_until=stored.valid_until)


def with_new_end(before: Memory, new: NewMemory, changes: Mapping[str, object]) -> NewMemory:
    """Return a changed memory without the end of a fact that it no longer states.

    Raises InvalidInput if the end that the fact of another memory set is taken away: it would set it again.
    """
    if before.closed_by is None:
        return new
    if new.fact != before.fact:
        return new if "valid_until" in changes else replace(new, valid_until=None)
    if "valid_until" in changes and new.valid_until is None:
        raise InvalidInput(
            "valid_until",
            f"was set by the fact of the memory {before.closed_by}; change that one, or make it single=False",
        )
    return new


def _require_fact(new: NewMemory) -> Fact:
    if new.fact is None:
        raise InvalidInput("fact", "is missing; give subject, predicate and object")
    return new.fact
