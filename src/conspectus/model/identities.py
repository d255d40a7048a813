"""People as an identity provider names them, and what its tokens say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

from conspectus.deferred import dataclass
from conspectus.model.access import Scope, User
from conspectus.model.annotations import Example
from conspectus.model.ids import GroupId, UserId
from conspectus.model.parameters import PersonName

DIRECTORY_ISSUER: Final = "ldap"
"""The issuer of identities and group claims of a directory. No issuer of tokens has that name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The account of a user at an identity provider: its issuer and subject, and never a name or e-mail.

    `last_issued` is the issue time of the newest token that changed anything; None before the first sign-in.
    `mapped_by` is who mapped it, the user itself at a first sign-in that creates one; None: not noted.
    """

    id: str
    issuer: Annotated[str, Example("https://login.example.org")]
    subject: Annotated[str, Example("248289761001")]
    user: UserId
    created: datetime
    last_issued: datetime | None = None
    mapped_by: UserId | None = None
    mapped_by_name: PersonName | None = None


@dataclass(frozen=True, slots=True)
class RefusedSignIn:
    """A subject whose valid tokens were refused, because nobody is mapped to it; kept for 30 days."""

    id: str
    issuer: Annotated[str, Example("https://login.example.org")]
    subject: Annotated[str, Example("248289761001")]
    first: datetime
    last: datetime


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
class DirectoryMembership:
    """A membership by a directory: a group, a user, and the identity by which the user is named there."""

    group: GroupId
    user: UserId
    identity: str


@dataclass(frozen=True, slots=True)
class GroupSyncReport:
    """What reading the mapped groups of a directory changed, or would change.

    `members` are people in them, nested groups included; `unmapped` are subjects of which no identity is
    mapped, at most 100. Groups in `gone` are deleted there, and their memberships end.
    """

    groups: Annotated[int, Example(20)]
    members: Annotated[int, Example(500)]
    joined: Annotated[int, Example(3)]
    left: Annotated[int, Example(1)]
    unmapped: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


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
