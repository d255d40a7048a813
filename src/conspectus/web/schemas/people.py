"""People, groups, keys and grants."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from conspectus.access.account_names import LONGEST
from conspectus.model.access import GranteeKind, Role, Scope
from conspectus.web.schemas.base import Identifier, Instant, Name, RequestModel, ResponseModel

AccountName = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class PersonAnswer(ResponseModel):
    """Who a request is answered for, and what its key may be used for."""

    id: str
    name: str
    owner: bool
    scopes: list[Scope]


class UserAnswer(ResponseModel):
    """An account."""

    id: str
    name: str
    created: datetime
    owner: bool
    disabled: bool


class UserBody(RequestModel):
    """An account to make."""

    name: AccountName = Field(examples=["alice"])


class UserChange(RequestModel):
    """What to change of an account."""

    disabled: bool = Field(description="A disabled account can do nothing, and keeps what it has.")


class GroupAnswer(ResponseModel):
    """A named set of users."""

    id: str
    name: str
    created: datetime


class GroupBody(RequestModel):
    """A group to make."""

    name: AccountName = Field(examples=["editors"])


class KeyAnswer(ResponseModel):
    """An API key without its secret."""

    id: str
    user: str
    label: str
    scopes: list[Scope]
    created: datetime
    expires: datetime | None
    last_used: datetime | None
    revoked: datetime | None


class NewKeyAnswer(ResponseModel):
    """A key just made, with the secret that is shown this once."""

    key: KeyAnswer
    secret: str


class KeyBody(RequestModel):
    """A key to make, for oneself or, by the owner account, for another user."""

    user: Identifier | None = None
    label: str = Field("", max_length=LONGEST)
    scopes: list[Scope] = Field(default=["read", "write", "admin"], min_length=1, max_length=3)
    expires: Instant | None = None


class GranteeBody(RequestModel):
    """Who is granted a role: a user or a group, by id."""

    kind: GranteeKind
    id: Identifier


class GrantBody(RequestModel):
    """A role to give on a collection, or with `source` on one source of it."""

    grantee: GranteeBody
    role: Role
    source: Name | None = None


class GranteeAnswer(ResponseModel):
    """Who holds a role."""

    kind: GranteeKind
    id: str


class GrantAnswer(ResponseModel):
    """A role on a collection with all its sources, or on one source of it."""

    collection: str
    source: str | None
    grantee: GranteeAnswer
    role: Role
    created: datetime


class RevokedAnswer(ResponseModel):
    """Whether there was a role to take away."""

    revoked: bool
