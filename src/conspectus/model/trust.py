"""Trust: where a text comes from, and the level that follows. A level can only fall."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from conspectus.errors import InvalidInput

Origin = Literal["user", "agent", "import", "tool", "web"]
"""Who wrote a text, and how: a person, a model, a file or connected store, a tool, a web page."""
Trust = Literal["trusted", "standard", "untrusted", "quarantined"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
ORIGIN_HEADER: Final = "Conspectus-Origin"
"""Header of a request whose writes have at most the level of this origin."""
TRUST: tuple[Trust, ...] = get_args(Trust)
"""The levels, highest first."""
MinTrust = Literal["trusted", "standard", "untrusted"]
"""The levels that a query can demand; what is quarantined is in no result."""
MIN_TRUST_LEVELS: tuple[MinTrust, ...] = get_args(MinTrust)
UNTRUSTED = "(untrusted)"
"""Marks a text of a web page or a tool in a prompt, which may hold instructions of others."""

HIGHEST: Mapping[Origin, Trust] = MappingProxyType(
    {"user": "trusted", "agent": "standard", "import": "standard", "tool": "untrusted", "web": "untrusted"}
)
"""The highest level of a text of each origin."""
_OF_ROLES: Mapping[str, Origin] = MappingProxyType(
    {
        "assistant": "agent",
        "ai": "agent",
        "model": "agent",
        "agent": "agent",
        "tool": "tool",
        "function": "tool",
    }
)
_OF_SOURCES: Mapping[str, Origin] = MappingProxyType({"web": "web", "wiki": "import"})
_SHARED = frozenset({"channel", "stream"})
"""Kinds of sources to which many people write."""


def levels_from(lowest: MinTrust | None) -> tuple[Trust, ...]:
    """Return the levels that a query allows; all without a lowest one."""
    return TRUST if lowest is None else TRUST[: TRUST.index(lowest) + 1]


def level_mark(trust: Trust) -> str:
    """Return the mark that follows the number or name of an untrusted text in a prompt."""
    return f" {UNTRUSTED}" if trust == "untrusted" else ""


def least(*levels: Trust | None) -> Trust:
    """Return the lowest of these levels: that of a text made from texts of these levels (None: no limit)."""
    return max((level for level in levels if level is not None), key=TRUST.index, default="trusted")


def least_trusted(*origins: Origin | None) -> Origin:
    """Return the first of the origins with the lowest level (None: no limit). Raises InvalidInput."""
    present_origins = [origin for origin in origins if origin is not None]
    if not HIGHEST.keys() >= set(present_origins):
        raise InvalidInput("origin", f"must be one of {', '.join(ORIGINS)}")
    return max(present_origins, key=lambda origin: TRUST.index(HIGHEST[origin]), default="user")


def origin_in(source_kind: str, role: str | None) -> Origin:
    """Return the origin of a text in a source of a kind, written in a role, if nothing else is said."""
    return least_trusted(_OF_SOURCES.get(source_kind), _OF_ROLES.get((role or "").lower()))


def highest_in(source_kind: str) -> Trust:
    """Return the highest level of a text in a source of a kind."""
    return "standard" if source_kind in _SHARED else "trusted"
