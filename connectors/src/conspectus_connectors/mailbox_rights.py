"""Who may read a mailbox, by its access control list (RFC 4314). What cannot be decided lets nobody read.

Servers differ in what an entry for one user or group does beside one for everybody: some join their rights,
others let the narrower entry decide. Only who may read under both readings does so here.
"""

from collections.abc import Iterable
from typing import Final

from conspectus.connectors import EVERYONE

READ_RIGHTS: Final = frozenset("lr")
"""To see the mailbox in a listing, and to open it."""
EVERYBODY: Final = frozenset({"anyone", "authenticated"})
NOBODY: Final = frozenset({"anonymous", "owner"})
"""Names that stand for no person whom the server names."""
NEGATIVE: Final = "-"
OVERRIDING_GROUP: Final = ("!$", "!group=")
GROUP: Final = ("$", "group=", "group:")
"""Names of groups begin so with Dovecot, Courier and Cyrus. IMAP lists no members of a group."""
GLOBAL: Final = "#"
"""Dovecot puts it before entries of its own configuration."""


def person_name(user: str) -> str:
    """Return the name of a user of the server among viewers."""
    return f"user:{user}"


def list_viewers(entries: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return who may read by entries of an identifier and its rights, as GETACL lists them."""
    readers: dict[str, bool] = {}
    denied: set[str] = set()
    for listed_identifier, rights in entries:
        identifier = listed_identifier.removeprefix(GLOBAL)
        if not identifier.startswith(NEGATIVE):
            readers[identifier] = set(rights) >= READ_RIGHTS
        elif READ_RIGHTS & set(rights):
            denied.add(identifier.removeprefix(NEGATIVE))
    limited = {identifier for identifier, may_read in readers.items() if not may_read} - EVERYBODY
    if any(not _is_person(name) for name in denied) or any(map(_is_overriding, limited)):
        return ()  # Nobody can say who is in a group.
    allowed = {identifier for identifier, may_read in readers.items() if may_read}
    viewers = {person_name(name) for name in allowed - denied if _is_person(name)}
    if allowed & EVERYBODY and not limited | denied:
        viewers.add(EVERYONE)
    return tuple(sorted(viewers))


def _is_overriding(identifier: str) -> bool:
    return identifier.startswith(OVERRIDING_GROUP)


def _is_person(identifier: str) -> bool:
    is_group = identifier.startswith((*GROUP, *OVERRIDING_GROUP))
    return not is_group and identifier not in EVERYBODY | NOBODY
