"""Conversions between the dictionaries of the agent API and the model of the engine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypedDict

from conspectus.deferred import dataclass
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
RecordList: TypeAlias = list[dict[str, Any]]
"""Memories as dictionaries."""
FactLike: TypeAlias = Fact | Sequence[str] | Mapping[str, Any]


class Owner(TypedDict, total=False):
    """The owner of memories. Missing keys default to the context's; None means no or any owner."""

    user_id: str | None
    agent_id: str | None


class AgentScope(TypedDict, total=False):
    """The owner and the conversation of memories."""

    user_id: str | None
    agent_id: str | None
    conversation_id: str | None


class StoredWith(AgentScope, total=False):
    """Arguments for storing a memory.

    `key` is the caller's own id. A `fact` is (subject, relation, object), valid from `valid_from` until
    `valid_until`. `entities` are mentioned names; `extract_entities` extracts more of them. They are added to
    the graph, with edges between names in the same sentence unless `extract_relationships` is False.
    """

    metadata: Mapping[str, Any] | None
    key: str | None
    role: str | None
    speaker: str | None
    timestamp: Instant | None
    kind: MemoryKind
    pinned: bool
    entities: Sequence[Entity]
    fact: FactLike | None
    valid_from: datetime | str | None
    valid_until: datetime | str | None
    embedding: Sequence[float] | None
    extract_entities: bool
    extract_relationships: bool


SCOPE_KEYS: Final = frozenset(AgentScope.__annotations__)
MEMORY_KEYS: Final = frozenset(StoredWith.__annotations__)


@dataclass
class MemoryItem:
    """A memory: text, time, metadata and entities.

    Stored items have no `embedding`: vectors are kept separately. Fields can also be read by key.
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
        """Return a field by its name. Raises KeyError."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def keys(self) -> Iterator[str]:
        """Return the names of the fields, so that dict() accepts an item."""
        return (each.name for each in fields(self))


Document: TypeAlias = str | Mapping[str, Any] | MemoryItem


def scope_of(default: Scope, scope: Mapping[str, Any]) -> Scope:
    """Return the scope of a call. Raises TypeError for an unknown key."""
    require_known(scope, SCOPE_KEYS)
    return Scope(
        user=scope.get("user_id", default.user),
        agent=scope.get("agent_id", default.agent),
        conversation=scope.get("conversation_id", default.conversation),
    )


def require_known(arguments: Mapping[str, Any], words: frozenset[str]) -> None:
    """Raise TypeError for an unknown argument: ignoring a misspelled filter would widen the result."""
    for each in arguments:
        if each not in words:
            raise TypeError(f"{each!r} is not an argument; expected one of: {', '.join(sorted(words))}")


def split_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those of the scope and those of the memory. Raises TypeError for others."""
    require_known(arguments, MEMORY_KEYS)
    scope = {name: value for name, value in arguments.items() if name in SCOPE_KEYS}
    return scope, {name: value for name, value in arguments.items() if name not in SCOPE_KEYS}


def parse_item(item: Document, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of an item and its arguments; those of the item override the shared ones."""
    if isinstance(item, str):
        return item, dict(arguments)
    if not isinstance(item, Mapping | MemoryItem):
        raise InvalidInput("content", f"is a {type(item).__name__}, and neither a text nor a dictionary")
    values = dict(item)
    content = values.pop("content", None) or values.pop("text", None)
    if not isinstance(content, str):
        raise InvalidInput("content", "is missing: items are texts, or dictionaries with a content")
    name = values.pop("id", None)
    values = {key: value for key, value in values.items() if value is not None}
    require_known(values, MEMORY_KEYS)
    metadata = {**(arguments.get("metadata") or {}), **(values.get("metadata") or {})}
    key = {} if name is None else {"key": name}
    return content, {**arguments, **key, **values, "metadata": metadata}


def new_memory(content: str, arguments: Mapping[str, Any], scope: Scope) -> NewMemory:
    """Return the memory to store. Raises InvalidInput."""
    metadata = dict(arguments.get("metadata") or {})
    for tag, owner in (("user_id", scope.user), ("agent_id", scope.agent)):
        if metadata.get(tag) not in {None, owner}:
            reason = (
                f"says {metadata[tag]!r}, which a tag cannot decide: say {tag}={metadata[tag]!r} beside it"
            )
            raise InvalidInput(f"metadata.{tag}", reason)
    embedding = arguments.get("embedding")
    same = ("key", "role", "speaker", "kind", "pinned", "valid_from", "valid_until")
    return NewMemory(
        text=content,
        **{name: arguments[name] for name in same if name in arguments},
        at=arguments.get("timestamp"),
        fact=None if arguments.get("fact") is None else fact_of(arguments["fact"]),
        entities=names_of(arguments.get("entities") or ()),
        metadata=metadata,
        vector=None if embedding is None else tuple(map(float, embedding)),
    )


def fact_of(words: FactLike) -> Fact:
    """Return a fact from any of its notations. Raises InvalidInput."""
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
    """Return the names of entities, followed by their keys, which make them findable in any spelling.

    Entities are strings or dictionaries with a name. Raises InvalidInput.
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
    """Convert a stored memory to an item."""
    document = memory.document
    return MemoryItem(
        content=memory.text,
        timestamp=time_of(memory),
        metadata=dict(memory.metadata),
        entities=entities_of(memory),
        id=memory.id,
        role=document.role,
        speaker=document.author,
    )


def entities_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the entities of a memory, each in its first spelling."""
    first: dict[str, str] = {}
    for each in memory.entities:
        first.setdefault(key_of(each), each)
    return [{"name": each} for each in first.values()]


def memory_dict(memory: Memory) -> dict[str, Any]:
    """Convert a stored memory to a dictionary. Metadata of the caller are only under `metadata`."""
    item = dict(item_of(memory))
    del item["embedding"]
    values: dict[str, Any] = {
        **item,
        "kind": memory.kind,
        "pinned": memory.pinned,
        "near": list(memory.near),
        f"{USER}_id": memory.scope.user,
        f"{AGENT}_id": memory.scope.agent,
        f"{CONVERSATION}_id": memory.scope.conversation,
    }
    if memory.fact is not None:
        fact = memory.fact
        values |= {
            "fact": (fact.subject, fact.predicate, fact.object),
            "valid_from": memory.valid_from,
            "valid_until": memory.valid_until,
            "closed_by": memory.closed_by,
            "closes": list(memory.closes),
        }
    return values


def hit_dict(found: MemoryHit) -> dict[str, Any]:
    """Convert a search result to a dictionary with its sources and the parts of its score."""
    sources = [each for each in found.origins if each != "recent"]
    return {
        **memory_dict(found.memory),
        "score": found.score,
        "source": sources[0],
        "sources": sources,
        "parts": dict(found.parts),
        "similarity": found.similarity,
        "through": list(found.through),
        "why": list(found.why),
        "related_entities": entities_of(found.memory),
    }


def time_of(memory: Memory) -> datetime:
    """Return when a memory occurred or, if unknown, when it was stored."""
    occurred = memory.document.occurred
    return memory.document.recorded if occurred is None else occurred.start


def instant_of(value: Instant | None) -> datetime | None:
    """Parse an instant; the default time zone is UTC. Raises InvalidInput."""
    return None if value is None else parse_instant(value)


MAX_LIMIT: Final = 10_000
"""Maximum number of characters of a query."""


class AgentQuery(AgentScope, total=False):
    """Options of a query.

    `as_of` reads the state at that time. `max_tokens` limits all results together. `min_score` is the minimum
    cosine similarity (0 to 1). `use_graph` enables graph scores, `alpha` (or `hybrid_alpha`) is their weight,
    `max_hops` the length of a traversal.
    """

    as_of: Instant | None
    max_tokens: int | None
    min_score: float | None
    use_graph: bool
    alpha: float
    hybrid_alpha: float
    max_hops: int


_QUERY_KEYS: Final = frozenset(AgentQuery.__annotations__)


def query_scope(arguments: AgentQuery, default: Scope) -> Scope:
    """Return the scope of a query. Raises TypeError for an unknown argument."""
    require_known(arguments, _QUERY_KEYS)
    return scope_of(default, {name: value for name, value in arguments.items() if name in SCOPE_KEYS})


def query_options(max_results: int, arguments: AgentQuery) -> MemoryQueryOptions:
    """Return the options of a query without the graph. Raises TypeError for an unknown argument."""
    require_known(arguments, _QUERY_KEYS)
    return {
        "limit": number("max_results", max_results, 0),
        "as_of": instant_of(arguments.get("as_of")),
        "min_similarity": arguments.get("min_score"),
        "graph": None,
    }


def graph_of(arguments: AgentQuery, default: GraphExpansion, *, expands: bool) -> GraphExpansion | None:
    """Return how a query uses the graph; options that it does not set are those of `default`."""
    if not arguments.get("use_graph", expands):
        return None
    alpha = arguments.get("alpha", arguments.get("hybrid_alpha", default.alpha))
    hops = number("max_hops", arguments.get("max_hops"), default.hops)
    return replace(default, alpha=weight("alpha", alpha), hops=hops)


def weight(name: str, arguments: float) -> float:
    """Check the weight of graph scores (0 to 1). Raises InvalidInput."""
    if isinstance(arguments, bool) or not isinstance(arguments, int | float) or not 0.0 <= arguments <= 1.0:
        raise InvalidInput(name, "must be from 0 (vectors and words) to 1 (the graph)")
    return arguments


def number(name: str, arguments: int | None, default: int) -> int:
    """Return a non-negative integer, or the default for None. Raises InvalidInput."""
    if arguments is None:
        return default
    if isinstance(arguments, bool) or not isinstance(arguments, int) or arguments < 0:
        raise InvalidInput(name, "must be a whole number from 0 on")
    return arguments


CONTENT: Final = "content"
NODE_KEYS: Final = frozenset(
    {
        *("id", "type", "name", "aliases", "properties", "metadata", CONTENT, "weight"),
        *("valid_from", "valid_until", "origin", "trust"),
    }
)
EDGE_KEYS: Final = frozenset(
    {
        *("source_id", "target_id", "source", "target", "id", "type", "weight", "properties", "metadata"),
        *("valid_from", "valid_until", "single", "evidence", "recorded", "closed_by", "origin", "trust"),
    }
)


def new_node(values: Mapping[str, Any]) -> NewNode:
    """Return the node to store. Raises InvalidInput."""
    _known("node", values, NODE_KEYS)
    properties = {**_mapping(values, "metadata"), **_mapping(values, "properties")}
    properties |= {name: values[name] for name in (CONTENT, "weight") if values.get(name) is not None}
    return NewNode(
        id=_text(values, "id"),
        type=values.get("type") or ENTITY,
        name=values.get("name"),
        aliases=tuple(values.get("aliases") or ()),
        properties=properties,
        valid_from=values.get("valid_from"),
        valid_until=values.get("valid_until"),
        origin=values.get("origin"),
        trust=values.get("trust"),
    )


def new_edge(values: Mapping[str, Any]) -> NewEdge:
    """Return the edge to store. Raises InvalidInput."""
    _known("edge", values, EDGE_KEYS)
    weight = values.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise InvalidInput("edge.weight", "must be a number")
    return NewEdge(
        source=_text(values, "source_id", "source"),
        target=_text(values, "target_id", "target"),
        type=values.get("type") or RELATED,
        weight=float(weight),
        properties={**_mapping(values, "metadata"), **_mapping(values, "properties")},
        valid_from=values.get("valid_from"),
        valid_until=values.get("valid_until"),
        single=bool(values.get("single", False)),
        evidence=values.get("evidence"),
        origin=values.get("origin"),
        trust=values.get("trust"),
    )


def node_dict(node: Node) -> dict[str, Any]:
    """Convert a node to a dictionary."""
    values: dict[str, Any] = {name: getattr(node, name) for name in ("id", "type", "name")}
    values["properties"] = dict(node.properties)
    if node.aliases:
        values["aliases"] = list(node.aliases)
    values |= _level(node)
    return values | {"valid_from": node.valid_from, "valid_until": node.valid_until}


def edge_dict(edge: Edge) -> dict[str, Any]:
    """Convert an edge to a dictionary."""
    values: dict[str, Any] = {
        "id": edge.id,
        "source_id": edge.source,
        "target_id": edge.target,
        "type": edge.type,
        "weight": edge.weight,
    }
    if edge.properties:
        values["properties"] = dict(edge.properties)
    later = {"evidence": edge.evidence, "closed_by": edge.closed_by}
    values |= {name: value for name, value in later.items() if value is not None}
    values |= _level(edge)
    return values | {"valid_from": edge.valid_from, "valid_until": edge.valid_until}


def _level(part: Node | Edge) -> dict[str, str]:
    """Return origin and trust of what is not a person's own."""
    is_own = (part.origin, part.trust) == ("user", "trusted")
    return {} if is_own else {"origin": part.origin, "trust": part.trust}


def neighbor_dict(neighbor: Neighbor) -> dict[str, Any]:
    """Convert a neighbor to a dictionary; `decay` is the product of the weights on its path."""
    last = neighbor.steps[-1]
    return {
        **node_dict(neighbor.node),
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
    """Return the content or description of a node, or else its name."""
    said = node.properties.get(CONTENT) or node.properties.get("description")
    return said if isinstance(said, str) else node.name


def exported_graph(nodes: Iterable[Node], edges: Iterable[Edge]) -> dict[str, Any]:
    """Return a graph as JSON values."""
    return {
        "nodes": [_timeless(node_dict(each)) for each in nodes],
        "edges": [_timeless(edge_dict(each)) for each in edges],
    }


def _timeless(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: canonical(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value is not None
    }


def _known(what: str, values: Mapping[str, Any], words: frozenset[str]) -> None:
    if not isinstance(values, Mapping):
        raise InvalidInput(what, "must be a dictionary")
    for each in values:
        if each not in words:
            reason = f"is not one of {', '.join(sorted(words))}; put it into the properties"
            raise InvalidInput(f"{what}.{each}", reason)


def _text(values: Mapping[str, Any], *names: str) -> str:
    for each in names:
        if isinstance(values.get(each), str):
            return str(values[each])
    raise InvalidInput(names[0], "is missing, or is not text")


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidInput(name, "must be a dictionary")
    return value
