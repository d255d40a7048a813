"""The words of an agent's context: memory items, questions, nodes and edges, and what is given back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict

from conspectus.errors import InvalidInput
from conspectus.graph.name_keys import key_of
from conspectus.model.graph import (
    ENTITY,
    RELATED,
    Edge,
    Fact,
    GraphExpansion,
    Neighbor,
    NewEdge,
    NewNode,
    Node,
)
from conspectus.model.memory import (
    AGENT,
    CONVERSATION,
    USER,
    Memory,
    MemoryHit,
    MemoryKind,
    MemoryQueryOptions,
    NewMemory,
    Scope,
)
from conspectus.text.times import canonical, parse_instant

Instant: TypeAlias = datetime | str | float
Entity: TypeAlias = str | Mapping[str, Any]
Told: TypeAlias = list[dict[str, Any]]
"""Memories as they are shown."""
FactWords: TypeAlias = Fact | Sequence[str] | Mapping[str, Any]


class Owner(TypedDict, total=False):
    """Whose memories; what is not given is what the context was made with, None is nobody's or any."""

    user_id: str | None
    agent_id: str | None


class AgentScope(TypedDict, total=False):
    """The same, and of which conversation."""

    user_id: str | None
    agent_id: str | None
    conversation_id: str | None


class Beside(AgentScope, total=False):
    """What a memory is stored with.

    `key` is the caller's own name for it. A `fact` is (subject, relation, object), true from `valid_from`
    until `valid_until`. `entities` are names that it mentions; with `extract_entities` they are looked for
    too, and go into the graph with, unless `extract_relationships` is False, an edge between those that stand
    together.
    """

    metadata: Mapping[str, Any] | None
    key: str | None
    role: str | None
    speaker: str | None
    timestamp: Instant | None
    kind: MemoryKind
    pinned: bool
    entities: Sequence[Entity]
    fact: FactWords | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    embedding: Sequence[float] | None
    extract_entities: bool
    extract_relationships: bool


WHOSE: Final = frozenset(AgentScope.__annotations__)
OF_A_MEMORY: Final = frozenset(Beside.__annotations__)


@dataclass
class MemoryItem:
    """A memory: its words, when it was said, tags, and the names that it mentions.

    Stores keep vectors apart: one that comes back has no `embedding`. Its fields can be read as those of a
    dictionary, too.
    """

    content: str
    timestamp: datetime = field(default_factory=partial(datetime.now, UTC))
    metadata: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None
    entities: list[dict[str, Any]] = field(default_factory=list)
    id: str | None = None
    role: str | None = None
    speaker: str | None = None

    def __getitem__(self, name: str) -> Any:
        """A field by its name. Raises KeyError."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> Iterator[str]:
        """The names of the fields, so that dict() takes it."""
        return (each.name for each in fields(self))


Document: TypeAlias = str | Mapping[str, Any] | MemoryItem


def scope_of(default: Scope, whose: Mapping[str, Any]) -> Scope:
    """The scope that is asked for. Raises TypeError for a word that is none of a scope."""
    known(whose, WHOSE)
    return Scope(
        user=whose.get("user_id", default.user),
        agent=whose.get("agent_id", default.agent),
        conversation=whose.get("conversation_id", default.conversation),
    )


def known(given: Mapping[str, Any], words: frozenset[str]) -> None:
    """Refuse a misspelt word, which would else widen what is asked for. Raises TypeError."""
    for each in given:
        if each not in words:
            raise TypeError(f"{each!r} is not an argument; expected one of: {', '.join(sorted(words))}")


def divided(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Whose a memory is, and what it is stored with. Raises TypeError for other words."""
    known(given, OF_A_MEMORY)
    whose = {name: value for name, value in given.items() if name in WHOSE}
    return whose, {name: value for name, value in given.items() if name not in WHOSE}


def worded(item: Document, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A text with what it is stored with: its own words, and for the rest what all have."""
    if isinstance(item, str):
        return item, dict(given)
    if not isinstance(item, Mapping | MemoryItem):
        raise InvalidInput("content", f"is a {type(item).__name__}, and neither a text nor a dictionary")
    told = dict(item)
    content = told.pop("content", None) or told.pop("text", None)
    if not isinstance(content, str):
        raise InvalidInput("content", "is missing: items are texts, or dictionaries with a content")
    name = told.pop("id", None)
    told = {key: value for key, value in told.items() if value is not None}
    known(told, OF_A_MEMORY)
    metadata = {**(given.get("metadata") or {}), **(told.get("metadata") or {})}
    key = {} if name is None else {"key": name}
    return content, {**given, **key, **told, "metadata": metadata}


def new_memory(content: str, given: Mapping[str, Any], scope: Scope) -> NewMemory:
    """A memory to be stored. Raises InvalidInput."""
    metadata = dict(given.get("metadata") or {})
    for tag, owner in (("user_id", scope.user), ("agent_id", scope.agent)):
        if metadata.get(tag) not in {None, owner}:
            reason = (
                f"says {metadata[tag]!r}, which a tag cannot decide: say {tag}={metadata[tag]!r} beside it"
            )
            raise InvalidInput(f"metadata.{tag}", reason)
    embedding = given.get("embedding")
    return NewMemory(
        text=content,
        key=given.get("key"),
        role=given.get("role"),
        speaker=given.get("speaker"),
        at=given.get("timestamp"),
        kind=given.get("kind", "turn"),
        pinned=given.get("pinned", False),
        fact=None if given.get("fact") is None else fact_of(given["fact"]),
        valid_from=given.get("valid_from"),
        valid_until=given.get("valid_until"),
        entities=names_of(given.get("entities") or ()),
        metadata=metadata,
        vector=None if embedding is None else tuple(map(float, embedding)),
    )


def fact_of(words: FactWords) -> Fact:
    """Subject, relation and object, however they are written. Raises InvalidInput."""
    match words:
        case Fact():
            return words
        case {"subject": str(subject), "predicate": str(predicate), "object": str(target), **rest}:
            return Fact(subject, predicate, target, single=bool(rest.get("single", True)))
        case [str(subject), str(predicate), str(target)]:
            return Fact(subject, predicate, target)
        case _:
            raise InvalidInput("fact", "must be (subject, relation, object)")


def names_of(entities: Sequence[Entity]) -> tuple[str, ...]:
    """The names of entities, strings or dictionaries with a name, and after them how they are compared.

    So they are found by any spelling. Raises InvalidInput.
    """
    names = []
    for each in entities:
        name = each
        if isinstance(each, Mapping):
            name = each.get("name") or each.get("text") or each.get("id") or ""
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("entities", "must be names, or dictionaries with a name")
        names.append(name)
    return tuple(dict.fromkeys((*names, *(key_of(each) for each in names))))


def item_of(memory: Memory) -> MemoryItem:
    """A stored memory as an item."""
    document = memory.document
    return MemoryItem(
        content=memory.text,
        timestamp=said_at(memory),
        metadata=dict(memory.metadata),
        entities=entities_of(memory),
        id=memory.id,
        role=document.role,
        speaker=document.author,
    )


def entities_of(memory: Memory) -> list[dict[str, Any]]:
    """The names that a memory was stored with, each in its first spelling."""
    first: dict[str, str] = {}
    for each in memory.entities:
        first.setdefault(key_of(each), each)
    return [{"name": each} for each in first.values()]


def shown(memory: Memory) -> dict[str, Any]:
    """A stored memory as a dictionary; what the caller gave stands under `metadata`, and only there."""
    item = item_of(memory)
    told: dict[str, Any] = {
        "id": item.id,
        "content": item.content,
        "timestamp": item.timestamp,
        "metadata": item.metadata,
        "entities": item.entities,
        "role": item.role,
        "speaker": item.speaker,
        "kind": memory.kind,
        "pinned": memory.pinned,
        "near": list(memory.near),
        f"{USER}_id": memory.scope.user,
        f"{AGENT}_id": memory.scope.agent,
        f"{CONVERSATION}_id": memory.scope.conversation,
    }
    if memory.fact is not None:
        fact = memory.fact
        told |= {
            "fact": (fact.subject, fact.predicate, fact.object),
            "valid_from": memory.valid_from,
            "valid_until": memory.valid_until,
            "closed_by": memory.closed_by,
            "closes": list(memory.closes),
        }
    return told


def recalled(found: MemoryHit) -> dict[str, Any]:
    """A memory that answers, with where it was found and what its score is made of."""
    sources = [each for each in found.origins if each != "recent"]
    return {
        **shown(found.memory),
        "score": found.score,
        "source": sources[0],
        "sources": sources,
        "parts": dict(found.parts),
        "similarity": found.similarity,
        "through": list(found.through),
        "why": list(found.why),
        "related_entities": entities_of(found.memory),
    }


def said_at(memory: Memory) -> datetime:
    """When a memory was said."""
    occurred = memory.document.occurred
    return memory.document.recorded if occurred is None else occurred.start


def instant_of(value: Instant | None) -> datetime | None:
    """A moment with its zone; one that names none is in UTC. Raises InvalidInput."""
    return None if value is None else parse_instant(value)


MAX_LIMIT: Final = 10_000
"""Characters of a question."""


class AgentQuery(AgentScope, total=False):
    """What a question is asked with.

    `as_of` asks for what was known at that time, `max_tokens` is the most that all answers cost together,
    `min_score` the least raw similarity (0 to 1). `use_graph` says whether the graph has a say at all,
    `alpha` (or `hybrid_alpha`) how much, `max_hops` how far it is walked.
    """

    as_of: Instant | None
    max_tokens: int | None
    min_score: float | None
    use_graph: bool
    alpha: float
    hybrid_alpha: float
    max_hops: int


_ASKING: Final = frozenset(AgentQuery.__annotations__)


def scope_asked(asking: AgentQuery, default: Scope) -> Scope:
    """The scope of a query. Raises TypeError for an unknown argument."""
    known(asking, _ASKING)
    return scope_of(default, {name: value for name, value in asking.items() if name in WHOSE})


def query_options(max_results: int, asking: AgentQuery) -> MemoryQueryOptions:
    """The options of a query, without the graph. Raises TypeError for an unknown argument."""
    known(asking, _ASKING)
    return {
        "limit": number("max_results", max_results, 0),
        "as_of": instant_of(asking.get("as_of")),
        "min_similarity": asking.get("min_score"),
        "graph": None,
    }


def graph_of(asking: AgentQuery, usual: GraphExpansion, *, expands: bool) -> GraphExpansion | None:
    """How far the graph has a say in a question; `usual` is what it has where the question says nothing."""
    if not asking.get("use_graph", expands):
        return None
    alpha = asking.get("alpha", asking.get("hybrid_alpha", usual.alpha))
    hops = number("max_hops", asking.get("max_hops"), usual.hops)
    return replace(usual, alpha=weight("alpha", alpha), hops=hops)


def weight(name: str, given: float) -> float:
    """The weight of the graph. Raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 <= given <= 1.0:
        raise InvalidInput(name, "must be from 0 (vectors and words) to 1 (the graph)")
    return given


def number(name: str, given: int | None, usual: int) -> int:
    """A number from 0 on; what is usual, where there is none. Raises InvalidInput."""
    if given is None:
        return usual
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidInput(name, "must be a whole number from 0 on")
    return given


CONTENT: Final = "content"
NODE_WORDS: Final = frozenset(
    {
        "id",
        "type",
        "name",
        "aliases",
        "properties",
        "metadata",
        CONTENT,
        "weight",
        "valid_from",
        "valid_until",
    }
)
EDGE_WORDS: Final = frozenset(
    {
        *("source_id", "target_id", "source", "target", "id", "type", "weight", "properties", "metadata"),
        *("valid_from", "valid_until", "single", "evidence", "recorded", "closed_by"),
    }
)


def new_node(told: Mapping[str, Any]) -> NewNode:
    """A node to be stored. Raises InvalidInput."""
    _known("node", told, NODE_WORDS)
    properties = {**_mapping(told, "metadata"), **_mapping(told, "properties")}
    properties |= {name: told[name] for name in (CONTENT, "weight") if told.get(name) is not None}
    return NewNode(
        id=_text(told, "id"),
        type=told.get("type") or ENTITY,
        name=told.get("name"),
        aliases=tuple(told.get("aliases") or ()),
        properties=properties,
        valid_from=told.get("valid_from"),
        valid_until=told.get("valid_until"),
    )


def new_edge(told: Mapping[str, Any]) -> NewEdge:
    """An edge to be stored. Raises InvalidInput."""
    _known("edge", told, EDGE_WORDS)
    weight = told.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput("edge.weight", "must be a number")
    return NewEdge(
        source=_text(told, "source_id", "source"),
        target=_text(told, "target_id", "target"),
        type=told.get("type") or RELATED,
        weight=float(weight),
        properties={**_mapping(told, "metadata"), **_mapping(told, "properties")},
        valid_from=told.get("valid_from"),
        valid_until=told.get("valid_until"),
        single=bool(told.get("single", False)),
        evidence=told.get("evidence"),
    )


def shown_node(node: Node) -> dict[str, Any]:
    """A node as a dictionary of its own."""
    told: dict[str, Any] = {
        "id": node.id,
        "type": node.type,
        "name": node.name,
        "properties": dict(node.properties),
    }
    if node.aliases:
        told["aliases"] = list(node.aliases)
    return told | _span(node.valid_from, node.valid_until)


def shown_edge(edge: Edge) -> dict[str, Any]:
    """An edge as a dictionary of its own."""
    told: dict[str, Any] = {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
    }
    if edge.properties:
        told["properties"] = dict(edge.properties)
    if edge.evidence is not None:
        told["evidence"] = edge.evidence
    if edge.closed_by is not None:
        told["closed_by"] = edge.closed_by
    return told | _span(edge.valid_from, edge.valid_until)


def shown_neighbor(neighbor: Neighbor) -> dict[str, Any]:
    """A node that was reached, with the way there: `decay` is the product of the weights on it."""
    last = neighbor.steps[-1]
    return {
        **shown_node(neighbor.node),
        CONTENT: content_of(neighbor.node),
        "relationship": last.type,
        "weight": last.weight,
        "hop": neighbor.hop,
        "decay": neighbor.decay,
        "path": list(neighbor.path),
        "steps": [
            {"source_id": each.source, "type": each.type, "target_id": each.target, "weight": each.weight}
            for each in neighbor.steps
        ],
    }


def content_of(node: Node) -> str:
    """What a node says: its content, or else its name."""
    said = node.properties.get(CONTENT) or node.properties.get("description")
    return said if isinstance(said, str) else node.name


def carried(nodes: Iterable[Node], edges: Iterable[Edge]) -> dict[str, Any]:
    """A graph as JSON can hold it."""
    return {
        "nodes": [_timeless(shown_node(each)) for each in nodes],
        "edges": [_timeless(shown_edge(each)) for each in edges],
    }


def _timeless(told: dict[str, Any]) -> dict[str, Any]:
    return {
        name: canonical(value) if isinstance(value, datetime) else value
        for name, value in told.items()
        if value is not None
    }


def _span(begins: datetime | None, ends: datetime | None) -> dict[str, Any]:
    return {"valid_from": begins, "valid_until": ends}


def _known(what: str, told: Mapping[str, Any], words: frozenset[str]) -> None:
    if not isinstance(told, Mapping):
        raise InvalidInput(what, "must be a dictionary")
    for each in told:
        if each not in words:
            reason = f"is not one of {', '.join(sorted(words))}; put it into the properties"
            raise InvalidInput(f"{what}.{each}", reason)


def _text(told: Mapping[str, Any], *names: str) -> str:
    for each in names:
        if isinstance(told.get(each), str):
            return str(told[each])
    raise InvalidInput(names[0], "is missing, or is not text")


def _mapping(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = told.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidInput(name, "must be a dictionary")
    return value
