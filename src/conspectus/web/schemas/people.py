"""People, groups, keys and grants."""

from datetime import datetime

from pydantic import Field

from conspectus.model.access import GranteeKind, Role, Scope
from conspectus.web.schemas.base import NAME, Answer, Body, Identifier, Instant, Name


class PersonAnswer(Answer):
    """Who a request is answered for, and what its key may be used for."""

    id: str
    name: str
    owner: bool
    scopes: list[Scope]


class UserAnswer(Answer):
    """An account."""

    id: str
    name: str
    created: datetime
    owner: bool
    disabled: bool


class UserBody(Body):
    """An account to make."""

    name: Name = Field(examples=["alice"])


class UserChange(Body):
    """What to change of an account."""

    disabled: bool = Field(description="A disabled account can do nothing, and keeps what it has.")


class GroupAnswer(Answer):
    """A named set of users."""

    id: str
    name: str
    created: datetime


class GroupBody(Body):
    """A group to make."""

    name: Name = Field(examples=["editors"])


class KeyAnswer(Answer):
    """An API key without its secret."""

    id: str
    user: str
    label: str
    scopes: list[Scope]
    created: datetime
    expires: datetime | None
    last_used: datetime | None
    revoked: datetime | None


class NewKeyAnswer(Answer):
    """A key just made, with the secret that is shown this once."""

    key: KeyAnswer
    secret: str


class KeyBody(Body):
    """A key to make, for oneself or, by the owner account, for another user."""

    user: Identifier | None = None
    label: str = Field("", max_length=NAME)
    scopes: list[Scope] = Field(default=["read", "write", "admin"], max_length=3)
    expires: Instant | None = None


class GranteeBody(Body):
    """Who is granted a role: a user or a group, by id."""

    kind: GranteeKind
    id: Identifier


class GrantBody(Body):
    """A role to give on a collection, or with `source` on one source of it."""

    grantee: GranteeBody
    role: Role
    source: Name | None = None


class GranteeAnswer(Answer):
    """Who holds a role."""

    kind: GranteeKind
    id: str


class GrantAnswer(Answer):
    """A role on a collection with all its sources, or on one source of it."""

    collection: str
    source: str | None
    grantee: GranteeAnswer
    role: Role
    created: datetime


class RevokedAnswer(Answer):
    """Whether there was a role to take away."""

    revoked: bool
