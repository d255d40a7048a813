"""Arguments of the agent API: owners, scopes and what is stored with a memory."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, TypedDict

from conspectus.errors import InvalidInput
from conspectus.model.graph import (
    Fact,
)
from conspectus.model.memory import (
    MemoryKind,
    Scope,
)
from conspectus.text.times import parse_instant

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
    `relationships` are edges of the graph, dictionaries as for `add_edges`, which cite the memory; the nodes
    that they name and the graph lacks are added, with the types of `entities`.
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
    relationships: Sequence[Mapping[str, Any]]


SCOPE_KEYS: Final = frozenset(AgentScope.__annotations__)
MEMORY_KEYS: Final = frozenset(StoredWith.__annotations__)


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
    for name in arguments:
        if name not in words:
            raise TypeError(f"{name!r} is not an argument; expected one of: {', '.join(sorted(words))}")


def split_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split arguments into those of the scope and those of the memory. Raises TypeError for others."""
    require_known(arguments, MEMORY_KEYS)
    scope = {name: argument for name, argument in arguments.items() if name in SCOPE_KEYS}
    return scope, {name: argument for name, argument in arguments.items() if name not in SCOPE_KEYS}


def instant_of(value: Instant | None) -> datetime | None:
    """Parse an instant; the default time zone is UTC. Raises InvalidInput."""
    return None if value is None else parse_instant(value)


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
