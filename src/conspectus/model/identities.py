"""People as an identity provider names them, and what its tokens say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from conspectus.deferred import dataclass
from conspectus.model.access import Scope, User
from conspectus.model.annotations import Example
from conspectus.model.ids import GroupId, UserId


@dataclass(frozen=True, slots=True)
class Identity:
    """The account of a user at an identity provider: its issuer and subject, and never a name or e-mail.

    `last_issued` is the issue time of the newest token that changed anything; None before the first sign-in.
    """

    id: str
    issuer: Annotated[str, Example("https://login.example.org")]
    subject: Annotated[str, Example("248289761001")]
    user: UserId
    created: datetime
    last_issued: datetime | None = None


@dataclass(frozen=True, slots=True)
class SignedIn:
    """An identity with its user, and for each group of the user the issuer whose claim made it a member.

    None is the issuer of memberships that people made: no token ends them.
    """

    identity: Identity
    user: User
    memberships: Mapping[GroupId, str | None]


@dataclass(frozen=True, slots=True)
class GroupClaim:
    """A group claim of an issuer whose bearers are members of a group, as long as their tokens have it."""

    id: str
    issuer: Annotated[str, Example("https://login.example.org")]
    claim: Annotated[str, Example("context-operators")]
    group: GroupId
    created: datetime


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a valid token says: who it is about, what it may be used for, and the groups of its bearer.

    `groups` is None if it says nothing of groups. `issuer_session` is the claim `sid` of an ID token.
    """

    issuer: str
    subject: str
    name: str
    scopes: tuple[Scope, ...]
    groups: frozenset[str] | None
    issued: datetime
    expires: datetime
    issuer_session: str | None = None


@dataclass(frozen=True, slots=True)
class LogoutClaims:
    """What a valid logout token says: whose sessions end, or which one; only those that began before."""

    subject: str | None
    issuer_session: str | None
    issued: datetime


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """The secrets of one sign-in on the pages of the issuer, which only the browser that began it knows."""

    state: str
    nonce: str
    code_verifier: str
