"""Whose memories a source holds, as its name says it."""

from collections.abc import Callable
from urllib.parse import quote, unquote

from conspectus.errors import InvalidInput
from conspectus.model.memory import Scope
from conspectus.text.clean import clean

MEMORIES = "memory"
GRAPHS = "graph"
LONGEST = 300
_NEXT = "0"
"""The character after the slash."""


def checked(scope: Scope) -> Scope:
    """The scope, if each of its names is one. Raises InvalidInput."""
    for field in ("user", "agent", "conversation"):
        name = getattr(scope, field)
        if name is None:
            continue
        if not isinstance(name, str) or not name.strip() or clean(name) != name:
            raise InvalidInput(field, "must be a name of characters that can be stored, or None")
        if len(quote(name, safe="")) > LONGEST:
            raise InvalidInput(field, f"is longer than {LONGEST} characters when it is URL-encoded")
    return scope


def home_name(scope: Scope) -> str:
    """The name of the source that memories of exactly this scope are written into."""
    return "/".join((MEMORIES, *_parts(scope)))


def graph_name(scope: Scope) -> str:
    """The name of the graph of exactly this scope."""
    return "/".join((GRAPHS, *_parts(scope)))


def scope_of(source: str) -> Scope:
    """The scope that the name of a source of memories, or of their graph, stands for. Raises InvalidInput."""
    kind, *parts = source.split("/")
    if kind not in {MEMORIES, GRAPHS} or len(parts) != 3:
        raise InvalidInput("source", f"{source!r} holds no memories")
    return Scope(*(unquote(each) or None for each in parts))


def beginning(scope: Scope, kind: str = MEMORIES) -> str:
    """What the names of all sources begin with that reading in a scope may look into, and of some others."""
    user, agent, conversation = _parts(scope)
    if scope.agent is None:
        return f"{kind}/{user}/"
    return f"{kind}/{user}/{agent}/" + (conversation if scope.conversation is not None else "")


def beyond(beginning: str) -> str:
    """A name above all that begin so, and below all others that come after them."""
    return beginning.removesuffix("/") + _NEXT if beginning.endswith("/") else beginning + "\x7f"


def holds(asked: Scope, home: Scope) -> bool:
    """Whether memories of the scope `home` may be read in the scope that was asked for."""
    return (
        asked.user == home.user
        and asked.agent in {None, home.agent}
        and asked.conversation in {None, home.conversation}
    )


def readable(asked: Scope) -> Callable[[str], bool]:
    """The same of the name of a source; compared as it is written, since a scope can have thousands."""
    names = [*zip((asked.user, asked.agent, asked.conversation), _parts(asked), strict=True)]
    wanted = [(place, part) for place, (name, part) in enumerate(names, start=1) if name is not None]

    def is_held(source: str) -> bool:
        written = source.split("/")
        return len(written) == 1 + len(names) and all(written[place] == part for place, part in wanted)

    return is_held


def reaches(home: Scope, scope: Scope) -> bool:
    """Whether a note of `home` is for who is in `scope`: it is for all of what it does not name."""
    return (
        home.user == scope.user
        and (home.agent is None or scope.agent in {None, home.agent})
        and (home.conversation is None or scope.conversation in {None, home.conversation})
    )


def _parts(scope: Scope) -> tuple[str, str, str]:
    names = (scope.user, scope.agent, scope.conversation)
    user, agent, conversation = ("" if each is None else quote(each, safe="") for each in names)
    return user, agent, conversation
