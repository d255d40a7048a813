"""Facts of memories as nodes and edges."""

from dataclasses import replace
from datetime import datetime

from conspectus.errors import InvalidInput
from conspectus.graph.name_keys import key_of
from conspectus.ingest.prepare import period
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import Memory, NewMemory
from conspectus.text.times import parse_instant


def ends_of_fact(new: NewMemory) -> list[NewNode]:
    """The two ends of the fact of a memory, or the one where they have the same name."""
    fact = _fact(new)
    nodes = {key_of(each): NewNode(key_of(each), name=each) for each in (fact.subject, fact.object)}
    return list(nodes.values())


def edge_of_fact(new: NewMemory, memory: str | None, now: datetime) -> NewEdge:
    """The fact of a memory as an edge, true from when it is said to be, else from when it was said."""
    fact, said = _fact(new), period(new.at)
    begins = (said.start if said else now) if new.valid_from is None else parse_instant(new.valid_from)
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
    """Whether two edges are the same one, as their graph knows them."""
    return (one.source, one.target, one.type, one.valid_from) == (
        other.source,
        other.target,
        other.type,
        other.valid_from,
    )


def as_ended(new: NewMemory, known: Memory) -> NewMemory:
    """What is said again, still ended where it says no more of its fact than the memory that was ended."""
    if known.closed_by is None or new.fact != known.fact or new.valid_until is not None:
        return new
    return replace(new, valid_until=known.valid_until)


def _fact(new: NewMemory) -> Fact:
    if new.fact is None:
        raise InvalidInput("fact", "is missing")
    return new.fact
