"""Users, groups, API keys and grants."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example
from conspectus.model.checks import Checked
from conspectus.model.filter import In
from conspectus.model.ids import LOCAL, NOBODY, CollectionId, GroupId, KeyId, SourceId, UserId
from conspectus.model.parameters import AskedQuery, PersonName, StoredCollection, StoredId, StoredSource
from conspectus.model.trust import Origin

Role = Literal["viewer", "editor", "manager", "owner"]
"""Each includes the one before: read; write documents; create sources and grant roles; everything."""
ROLES: tuple[Role, ...] = get_args(Role)
Scope = Literal["read", "write", "admin"]
"""What a key may be used for, within the rights of its user; `admin` is for users, keys and grants."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
GranteeKind = Literal["user", "group"]
Expiry = datetime | Literal["never"]
"""When a key expires."""


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a request, and the `key` or `session` used. The owner of the store may do everything.

    `identity` is the one of a token of an issuer, which ends at `expires`.

    With an `origin`, nothing that is written has a higher level than texts of that origin. `syncs` is the
    connection of a running sync, which reads and writes what the connection mirrors, whoever its viewers are.
    `seen_by` is the user who sees as this person, without the mirrored sources that this user may not read.
    """

    name: PersonName
    owner: bool = False
    id: UserId = NOBODY
    scopes: tuple[Scope, ...] = SCOPES
    key: KeyId | None = field(default=None, compare=False)
    origin: Origin | None = None
    session: str | None = field(default=None, compare=False)
    identity: str | None = field(default=None, compare=False)
    expires: datetime | None = field(default=None, compare=False)
    syncs: str | None = field(default=None, compare=False)
    seen_by: UserId | None = field(default=None, compare=False)

    @property
    def credential(self) -> str | None:
        """The id of the key, session or identity of the request; None if the server needs none."""
        return self.key or self.session or self.identity


LOCAL_OWNER = Person(name="local", owner=True, id=LOCAL)
PROVISIONER = Person(name="scim", id=UserId("scim"), scopes=(), identity="scim")
"""The identity provider that manages people by SCIM, in the audit log. It may do nothing else."""
DIRECTORY = Person(name="ldap", id=UserId("ldap"), scopes=(), identity="ldap")
"""The directory whose groups give memberships, in the audit log. It may do nothing else."""


@dataclass(frozen=True, slots=True)
class User:
    """An account. A disabled one has no access; its data are kept."""

    id: UserId
    name: PersonName
    created: datetime
    owner: bool = False
    disabled: bool = False

    @property
    def person(self) -> Person:
        """The user with every scope."""
        return Person(self.name, self.owner, self.id)


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of users that can be granted roles together."""

    id: GroupId
    name: Annotated[str, Example("operators")]
    created: datetime


@dataclass(frozen=True, slots=True)
class Acquaintances:
    """The users and groups that share a group, or a role on a collection or source, with a user.

    The user and the owner of the store are among them.
    """

    users: tuple[User, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret. None means: does not expire, never used, not revoked, any origin."""

    id: KeyId
    user: UserId
    label: Annotated[str, Example("laptop")]
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime | None = None
    last_used: datetime | None = None
    revoked: datetime | None = None
    origin: Origin | None = None

    def valid(self, at: datetime) -> bool:
        """Whether the key is valid at that instant."""
        return self.revoked is None and (self.expires is None or at < self.expires)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key with its secret, which is returned once and not stored."""

    key: Key
    secret: Annotated[str, Example("csp_...")]


@dataclass(frozen=True, slots=True)
class Principal(Checked):
    """The user or group that receives a grant, by its id."""

    kind: Annotated[GranteeKind, "User or group.", Example("user")]
    id: Annotated[str, "Id of the user or group.", Example("ann")]


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a collection with all its sources, or on one source of it.

    `granted_by` is the user who granted it and `granted_by_name` their name then; None where it is not noted.
    """

    collection: CollectionId
    source: SourceId | None
    grantee: Principal
    role: Role
    created: datetime
    granted_by: UserId | None = None
    granted_by_name: PersonName | None = None


RoleOriginKind = Literal["store_owner", "collection_owner", "user", "group"]


@dataclass(frozen=True, slots=True)
class RoleOrigin:
    """Why a user has a role: owns the store or the collection, or has a grant, directly or through a `group`.

    `group` is the group's name. A grant is on the `source`, or with None on the whole collection.
    """

    kind: RoleOriginKind
    role: Role
    source: SourceId | None = None
    group: Annotated[str | None, Example("operators")] = None


@dataclass(frozen=True, slots=True)
class EffectiveRole:
    """The highest role of a user on a collection, or on one `source` of it; None: no role there."""

    collection: CollectionId
    collection_name: StoredCollection
    source: SourceId | None
    source_name: StoredSource | None
    role: Role | None
    origins: tuple[RoleOrigin, ...]


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """A user who can read a document, with their highest role there and its origins."""

    user: UserId
    name: PersonName
    role: Role
    origins: tuple[RoleOrigin, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A login of a browser, with what it may be used for.

    It ends by a logout, when it is not used for long, and with the key or the user that it belongs to.
    """

    id: str
    user: UserId
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime
    last_used: datetime
    key: Annotated[KeyId | None, "Key that the browser logged in with; none otherwise."] = None
    origin: Origin | None = None
    identity: Annotated[str | None, "Identity that signed in at its issuer; none otherwise."] = None
    issuer_session: Annotated[str | None, "Session at that issuer, the claim `sid`; none if unknown."] = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link with which a user without a key logs in, once."""

    id: str
    user: UserId
    scopes: tuple[Scope, ...]
    created: datetime
    expires: datetime


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation with its token and link, which are returned once and not stored."""

    invitation: Invitation
    token: Annotated[str, Example("csi_...")]
    link: Annotated[str, Example("http://localhost:8080/console/#invitation=csi_...")]


@dataclass(frozen=True, slots=True)
class AccountChange:
    """A change of a user, group, key, grant or setting: who made it, with which key, and about what.

    `action` is the name of the operation. Names are those of the time of the change. `detail` has no secrets.
    """

    id: str
    actor: UserId
    actor_name: str
    key: KeyId | None
    action: str
    subject: str
    subject_name: str
    collection: CollectionId | None
    detail: str
    created: datetime


ReviewAction = Literal["explain_as", "release", "delete_quarantined"]
"""What is noted in the audit log besides changes of users, groups, keys, grants and settings."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A query that `actor` asked as another user, `viewed_as`; a review of documents; or another change.

    `action` says which. Of a review, `query` has the ids of the documents, and of a change it is empty. All
    but queries have the actor as `viewed_as`. A change of a user, group, key, grant or setting has the names
    of the time when it was made, its `subject`, and what was set, in `detail`.
    """

    id: StoredId
    actor: UserId
    viewed_as: UserId
    collection: CollectionId | None
    query: AskedQuery
    created: datetime
    action: str = "explain_as"
    key: KeyId | None = None
    actor_name: str = ""
    subject: Annotated[str, Example("backup")] = ""
    subject_name: str = ""
    detail: Annotated[str, Example("collection 'notes' not found")] = ""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries of the audit log, newest first; `next` is the cursor of the page after this one, if any."""

    entries: tuple[AuditEntry, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Access:
    """The roles of a person in a collection: on all of it, and on single sources.

    `hidden` sources cannot be read, whatever the role on the collection; `sources` names all others then.
    `readable` is the filter for `sources`, if they are many. `verified` are readable sources, each with its
    connection, whose remote is asked for each document; `unverified` is the filter for all others then.
    """

    collection: Role | None
    sources: Mapping[SourceId, Role] = field(default_factory=dict)
    hidden: frozenset[SourceId] = frozenset()
    readable: In | None = field(default=None, compare=False)
    verified: Mapping[SourceId, StoredId] = field(default_factory=dict)
    unverified: In | None = field(default=None, compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether every document of the collection can be read."""
        return self.collection is not None and not self.hidden and not self.verified
