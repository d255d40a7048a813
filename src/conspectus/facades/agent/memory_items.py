"""Memories of the agent API as items and dictionaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.facades.agent.arguments import MEMORY_KEYS, Entity, FactLike, require_known
from conspectus.facades.agent.json_values import plain_value, with_iso_times
from conspectus.model.graph import (
    Fact,
)
from conspectus.model.memory import (
    AGENT,
    CONVERSATION,
    USER,
    Memory,
    MemoryHit,
    NewMemory,
    Scope,
)
from conspectus.model.parameters import Vector
from conspectus.text.name_keys import key_of


@dataclass
class MemoryItem:
    """A memory: text, time, metadata and entities.

    Fields can also be read by key.
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
        return (field.name for field in fields(self))


class StoredItem(MemoryItem):
    """An item that was read. Its `embedding` is that of its beginning, None while it is pending.

    It is made again from the content when the item is stored.
    """


Document: TypeAlias = str | Mapping[str, Any] | MemoryItem


def parse_item(item: Document, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of an item and its arguments; those of the item override the shared ones."""
    if isinstance(item, str):
        return item, dict(arguments)
    if not isinstance(item, Mapping | MemoryItem):
        raise InvalidInput("content", f"is a {type(item).__name__}, and neither a text nor a dictionary")
    values = dict(item)
    if isinstance(item, StoredItem):
        del values["embedding"]
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
    metadata = {name: plain_value(value) for name, value in (arguments.get("metadata") or {}).items()}
    for tag, owner in (("user_id", scope.user), ("agent_id", scope.agent)):
        if owner is not None and metadata.get(tag) not in {None, owner}:
            reason = (
                f"says {metadata[tag]!r}, which a tag cannot decide: say {tag}={metadata[tag]!r} beside it"
            )
            raise InvalidInput(f"metadata.{tag}", reason)
    if arguments.get("relationships"):
        raise InvalidInput("relationships", "are edges of a graph: store the memory with AgentContext")
    embedding = arguments.get("embedding")
    same = ("key", "role", "speaker", "kind", "pinned", "valid_from", "valid_until")
    return NewMemory(
        text=content,
        **{name: arguments[name] for name in same if name in arguments},
        at=arguments.get("timestamp"),
        fact=None if arguments.get("fact") is None else fact_of(arguments["fact"]),
        entities=names_of(arguments.get("entities") or ()),
        metadata=metadata,
        vector=tuple(map(float, embedding)) if embedding is not None and len(embedding) else None,
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
    for entity in entities:
        name = entity
        if isinstance(entity, Mapping):
            name = entity.get("name") or entity.get("text") or entity.get("id") or ""
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("entities", "must be names, or dictionaries with a name")
        names.append(name)
    return tuple(dict.fromkeys((*names, *(key_of(name) for name in names))))


def item_of(memory: Memory, vector: Vector | None = None) -> StoredItem:
    """Convert a stored memory to an item, with its vector."""
    document = memory.document
    return StoredItem(
        content=memory.text,
        timestamp=time_of(memory),
        metadata=dict(memory.metadata),
        embedding=None if vector is None else list(vector),
        entities=entities_of(memory),
        id=memory.id,
        role=document.role,
        speaker=document.author,
    )


def entities_of(memory: Memory) -> list[dict[str, Any]]:
    """Return the entities of a memory, each in its first spelling."""
    first: dict[str, str] = {}
    for name in memory.entities:
        first.setdefault(key_of(name), name)
    return [{"name": name} for name in first.values()]


def memory_dict(memory: Memory) -> dict[str, Any]:
    """Convert a stored memory to a dictionary of JSON values; times are ISO 8601 texts.

    Metadata of the caller are only under `metadata`.
    """
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
    return with_iso_times(values)


def hit_dict(hit: MemoryHit) -> dict[str, Any]:
    """Convert a search result to a dictionary with its sources and the parts of its score."""
    sources = [origin for origin in hit.origins if origin != "recent"]
    return {
        **memory_dict(hit.memory),
        "score": hit.score,
        "source": sources[0],
        "sources": sources,
        "parts": dict(hit.parts),
        "similarity": hit.similarity,
        "through": list(hit.through),
        "why": list(hit.why),
        "related_entities": entities_of(hit.memory),
    }


def time_of(memory: Memory) -> datetime:
    """Return when a memory occurred or, if unknown, when it was stored."""
    occurred = memory.document.occurred
    return memory.document.recorded if occurred is None else occurred.start
