"""People, groups, keys, and what was granted to whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from conspectus.model.checks import Checked
from conspectus.model.ids import LOCAL, NOBODY, CollectionId, GroupId, KeyId, SourceId, UserId

Role = Literal["viewer", "editor", "manager", "owner"]
"""Each may do what the one before it may: read; write documents; make sources and let others in; all."""
ROLES: tuple[Role, ...] = get_args(Role)
Scope = Literal["read", "write", "admin"]
"""What a key may be used for, whatever its user may do; `admin` is for accounts, keys and grants."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
GranteeKind = Literal["user", "group"]


@dataclass(frozen=True, slots=True)
class Person:
    """Someone the engine answers, by whichever `key`. The owner of the store may see and do everything."""

    name: str
    owner: bool = False
    id: UserId = NOBODY
    scopes: tuple[Scope, ...] = SCOPES
    key: KeyId | None = field(default=None, compare=False)


LOCAL_OWNER = Person(name="local", owner=True, id=LOCAL)


@dataclass(frozen=True, slots=True)
class User:
    """An account. A disabled one can do nothing, and keeps what it has."""

    id: UserId
    name: str
    created: datetime
    owner: bool = False
    disabled: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of users that can be granted roles together."""

    id: GroupId
    name: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret. None: it does not expire, was never used, was not revoked."""

    id: KeyId
    user: UserId
    label: str
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime | None = None
    last_used: datetime | None = None
    revoked: datetime | None = None

    def valid(self, at: datetime) -> bool:
        """Whether the key opens anything at that instant."""
        return self.revoked is None and (self.expires is None or at < self.expires)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made, with the secret that is shown once and stored nowhere."""

    key: Key
    secret: str


@dataclass(frozen=True, slots=True)
class Principal(Checked):
    """Who is granted a role: the id of a user or of a group."""

    kind: GranteeKind
    id: str


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a collection with all its sources, or on one source of it."""

    collection: CollectionId
    source: SourceId | None
    grantee: Principal
    role: Role
    created: datetime


@dataclass(frozen=True, slots=True)
class Access:
    """What one person may do in one collection: a role on all of it, and roles on single sources."""

    collection: Role | None
    sources: Mapping[SourceId, Role] = field(default_factory=dict)
