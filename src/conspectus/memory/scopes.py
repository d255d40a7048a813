"""Memory scopes and the names of their sources."""

from collections.abc import Callable, Mapping
from typing import TypeVar, cast
from urllib.parse import quote, unquote

from conspectus.errors import InvalidInput
from conspectus.model.memory import NO_SCOPE, Scope, ScopeNames
from conspectus.text.clean import clean

MEMORIES = "memory"
GRAPHS = "graph"
MAX_LENGTH = 300
_NEXT = "0"
"""The character after the slash in ASCII."""


T = TypeVar("T")


def choose_scope(scope: Scope, names: ScopeNames) -> Scope:
    """Return the scope of a call: the given one, or that of the names. Raises InvalidInput."""
    if not names:
        if scope is NO_SCOPE:
            raise InvalidInput("scope", 'is missing; give user="ann", or agent and conversation, or a Scope')
        return scope
    if scope is not NO_SCOPE:
        raise InvalidInput("scope", f"is given besides {', '.join(names)}; give one of the two")
    return Scope(**names)


def choose_scope_or_all(scope: Scope | None, names: ScopeNames) -> Scope | None:
    """Return the scope of a call that may be to all scopes. Raises InvalidInput."""
    if scope is None and not names:
        return None
    return choose_scope(NO_SCOPE if scope is None else scope, names)


def scope_and_options(scope: Scope, options: Mapping[str, object], rest: type[T]) -> tuple[Scope, T]:
    """Return the scope of a call, and its options without the names of the scope. Raises InvalidInput."""
    names = {name: option for name, option in options.items() if name in ScopeNames.__annotations__}
    other_options = {name: option for name, option in options.items() if name not in names}
    return choose_scope(scope, cast(ScopeNames, names)), cast(T, other_options)


def check_scope(scope: Scope) -> Scope:
    """Validate the names of a scope. Raises InvalidInput."""
    for field in ("user", "agent", "conversation"):
        name = getattr(scope, field)
        if name is None:
            continue
        if not isinstance(name, str) or not name.strip() or clean(name) != name:
            raise InvalidInput(field, "must be a name of characters that can be stored, or None")
        if len(quote(name, safe="")) > MAX_LENGTH:
            raise InvalidInput(field, f"is longer than {MAX_LENGTH} characters when it is URL-encoded")
    return scope


def source_name(scope: Scope) -> str:
    """Return the name of the source for memories of exactly this scope."""
    return "/".join((MEMORIES, *_parts(scope)))


def graph_name(scope: Scope) -> str:
    """Return the name of the graph of exactly this scope."""
    return "/".join((GRAPHS, *_parts(scope)))


def scope_of(source: str) -> Scope:
    """Return the scope of a source of memories or of a graph, by its name. Raises InvalidInput."""
    kind, *parts = source.split("/")
    if kind not in {MEMORIES, GRAPHS} or len(parts) != 3:
        raise InvalidInput("source", f"{source!r} holds no memories")
    return Scope(*(unquote(part) or None for part in parts))


def common_prefix(scope: Scope, kind: str = MEMORIES) -> str:
    """Return a common prefix of the sources that are readable in a scope. Other sources may share it."""
    user, agent, conversation = _parts(scope)
    if scope.agent is None:
        return f"{kind}/{user}/"
    return f"{kind}/{user}/{agent}/" + (conversation if scope.conversation is not None else "")


def end_of_prefix(beginning: str) -> str:
    """Return an upper bound for names with this prefix, in sort order."""
    if beginning.endswith("/"):
        return beginning.removesuffix("/") + _NEXT
    return beginning + "\x7f"


def includes_scope(scope: Scope, memory_scope: Scope) -> bool:
    """Return whether memories of the scope `memory_scope` are readable in the scope `scope`."""
    return (
        scope.user == memory_scope.user
        and scope.agent in {None, memory_scope.agent}
        and scope.conversation in {None, memory_scope.conversation}
    )


def readable(scope: Scope) -> Callable[[str], bool]:
    """Return a check of `holds` by source name. It compares quoted names: a scope can have thousands."""
    names = [*zip((scope.user, scope.agent, scope.conversation), _parts(scope), strict=True)]
    required = [(at, part) for at, (name, part) in enumerate(names, start=1) if at == 1 or name is not None]

    def is_held(source: str) -> bool:
        written = source.split("/")
        return len(written) == 1 + len(names) and all(
            written[position] == part for position, part in required
        )

    return is_held


def applies_in(memory_scope: Scope, scope: Scope) -> bool:
    """Return whether a note of `memory_scope` applies in `scope`. A part of it that is None matches all."""
    return (
        memory_scope.user == scope.user
        and (memory_scope.agent is None or scope.agent in {None, memory_scope.agent})
        and (memory_scope.conversation is None or scope.conversation in {None, memory_scope.conversation})
    )


def _parts(scope: Scope) -> tuple[str, str, str]:
    names = (scope.user, scope.agent, scope.conversation)
    user, agent, conversation = ("" if name is None else quote(name, safe="") for name in names)
    return user, agent, conversation
