"""Access rules: the only place that turns a person into a filter and decides who may do what."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.errors import InvalidInput, PermissionDenied
from conspectus.model.access import (
    ROLES,
    SCOPES,
    Access,
    Grant,
    Key,
    Person,
    Role,
    RoleOrigin,
    RoleOriginKind,
    Scope,
    User,
)
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In, Or, among_sources
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.jobs import Job
from conspectus.model.records import Collection
from conspectus.model.trust import least_trusted
from conspectus.ports.jobs import JobPlace

GRANTS_UP_TO: dict[Role, Role] = {"manager": "editor", "owner": "owner"}
"""The highest role that a role may grant or revoke."""


def access_of(person: Person, collection: Collection, grants: Sequence[Grant]) -> Access:
    """Return what a person may do in a collection, given their own grants and those of their groups."""
    if person.owner or collection.owner == person.id:
        return Access("owner")
    here = [grant for grant in grants if grant.collection == collection.id]
    sources: dict[SourceId, Role] = {}
    for grant in here:
        if grant.source is not None:
            sources[grant.source] = highest([grant.role, *_roles(sources.get(grant.source))])
    collection_roles = [grant.role for grant in here if grant.source is None]
    return Access(highest(collection_roles) if collection_roles else None, sources)


def without_hidden(
    access: Access,
    sources: Iterable[SourceId],
    hidden: Iterable[SourceId],
    unreadable: Iterable[SourceId] = (),
) -> Access:
    """Return access to these sources of a collection but for the hidden ones, which only managers read.

    Nobody reads an `unreadable` one, whose remote does not name the person among its viewers.
    """
    barred = frozenset(source for source in hidden if not includes_role(role_on(access, source), "manager"))
    barred |= frozenset(unreadable)
    if not barred:
        return access
    roles = {source: role_on(access, source) for source in sources if source not in barred}
    readable = {source: role for source, role in roles.items() if role is not None}
    return Access(access.collection, readable, barred)


def with_verified(access: Access, sources: Iterable[SourceId], verified: Mapping[SourceId, str]) -> Access:
    """Return access to these sources of a collection, of which the readable `verified` ones are marked."""
    roles = {source: role_on(access, source) for source in sources}
    readable = {source: role for source, role in roles.items() if role is not None}
    marked = {source: verified[source] for source in readable if source in verified}
    if not marked:
        return access
    unverified = among_sources(source for source in readable if source not in marked)
    return replace(access, sources=readable, verified=marked, unverified=unverified)


def origins_of(
    user: User, collection: Collection, grants: Sequence[Grant], groups: Mapping[str, str]
) -> dict[SourceId | None, list[RoleOrigin]]:
    """Return the reasons for a user's roles on a collection (None) and on single sources.

    `groups` are names of groups by id.
    """
    owned: dict[RoleOriginKind, bool] = {
        "store_owner": user.owner,
        "collection_owner": collection.owner == user.id,
    }
    origins: dict[SourceId | None, list[RoleOrigin]]
    origins = {None: [RoleOrigin(kind, "owner") for kind, is_owner in owned.items() if is_owner]}
    for grant in grants:
        if grant.collection == collection.id:
            kind, name = grant.grantee.kind, groups.get(grant.grantee.id)
            origins.setdefault(grant.source, []).append(RoleOrigin(kind, grant.role, grant.source, name))
    return origins


def can_see(access: Access) -> bool:
    """Return whether the person may read anything; otherwise the collection does not exist for them."""
    return access.collection is not None or bool(access.sources)


def can_edit_any(access: Access) -> bool:
    """Whether the person has the role editor on the collection or on one of its sources."""
    return any(includes_role(role_on(access, source), "editor") for source in (None, *access.sources))


def visible(access: Access) -> Filter:
    """Return the filter for all that the person may read in a collection.

    It matches nothing without grants.
    """
    if access.is_whole:
        return EVERYTHING
    if access.readable is not None:
        return access.readable
    return In("source", tuple(sorted(access.sources))) if access.sources else Or()


def can_see_source(access: Access, source: SourceId) -> bool:
    """Return whether `visible` matches what is in a source."""
    return access.is_whole or source in access.sources


def restrict_filter(access: Access, where: Filter) -> Filter:
    """Restrict a filter to what the person may read."""
    allowed = visible(access)
    return where if allowed == EVERYTHING else And((allowed, where))


def select_counted_sources(access: Access, where: Filter) -> tuple[SourceId, ...]:
    """Return the sources whose term frequencies count: those in the filter that the person may read."""
    return tuple(sorted(source for source in bound(where) or () if can_see_source(access, source)))


def among(sources: Iterable[SourceId]) -> Filter:
    """Return the filter for readable sources."""
    return In("source", tuple(sorted(sources)))


def bound(where: Filter) -> frozenset[SourceId] | None:
    """Return the sources to which a filter is restricted; None if it is not restricted."""
    match where:
        case And(inner):
            restrictions = [sources for sources in map(bound, inner) if sources is not None]
            return frozenset.intersection(*restrictions) if restrictions else None
        case Or(inner):
            restrictions = [sources for sources in map(bound, inner) if sources is not None]
            is_restricted = len(restrictions) == len(inner)
            return frozenset[SourceId]().union(*restrictions) if is_restricted else None
        case Eq("source", value):
            return frozenset({SourceId(str(value))})
        case In("source", values):
            return frozenset(SourceId(str(source)) for source in values)
    return None


def visible_jobs(access: Access, person: Person, collection: CollectionId) -> JobPlace:
    """Return the filter for a person's visible jobs: all, or those of readable sources and their own."""
    if access.is_whole:
        return JobPlace(collection)
    return JobPlace(collection, tuple(sorted(access.sources)), person.id if can_see(access) else None)


def can_see_job(access: Access, person: Person, job: Job) -> bool:
    """Return whether the person may read a job of that collection."""
    return access.is_whole or (can_see(access) and (job.owner == person.id or job.source in access.sources))


def may_change_job(access: Access, person: Person, job: Job) -> bool:
    """Return whether the person may cancel and retry a job: an own one, or with the role editor."""
    is_editor = includes_role(role_on(access, job.source), "editor")
    return "write" in person.scopes and (job.owner == person.id or is_editor)


def role_on(access: Access, source: SourceId | None) -> Role | None:
    """Return the highest role on a source, or with None on the whole collection; None without a role."""
    if source in access.hidden:
        return None
    roles = [*_roles(access.collection), *_roles(None if source is None else access.sources.get(source))]
    return highest(roles) if roles else None


def includes_role(role: Role | None, needed: Role) -> bool:
    """Return whether a role includes another."""
    return role is not None and ROLES.index(role) >= ROLES.index(needed)


def highest(roles: Iterable[Role]) -> Role:
    """Return the highest of at least one role."""
    return max(roles, key=ROLES.index)


def require_role(role: Role | None, needed: Role, action: str) -> None:
    """Raise PermissionDenied unless the role, on something readable, is high enough."""
    if not includes_role(role, needed):
        raise PermissionDenied(action, f"the role {needed}")


def require_scope(person: Person, scope: Scope, action: str) -> None:
    """Raise PermissionDenied unless the person's key has the scope."""
    if scope not in person.scopes:
        raise PermissionDenied(action, f"a key with the scope {scope}")


def require_scopes(person: Person, scopes: Iterable[Scope], action: str) -> None:
    """Raise PermissionDenied unless the person's key has each scope."""
    for scope in scopes:
        require_scope(person, scope, action)


def order_scopes(default: Sequence[Scope], scopes: Sequence[Scope] | None) -> tuple[Scope, ...]:
    """Return scopes in order, or the default if none are given. Raises InvalidInput for unknown ones."""
    chosen = default if scopes is None else scopes
    ordered = tuple(scope for scope in SCOPES if scope in chosen)
    if not ordered or set(chosen) - set(SCOPES):
        raise InvalidInput("scopes", f"must be some of {', '.join(SCOPES)}")
    return ordered


def require_future(expires: datetime, now: datetime) -> None:
    """Raise InvalidInput for an expiry without a time zone or in the past."""
    if expires.tzinfo is None or expires <= now:
        raise InvalidInput("expires", "must be an instant in the future, with a time zone")


def require_lasting_key(mine: Key | None, until: datetime, action: str) -> None:
    """Raise PermissionDenied if the key of the request, `mine`, expires before what it would allow."""
    if mine is not None and mine.expires is not None and mine.expires < until:
        raise PermissionDenied(action, "a key that does not expire before it")


def require_within(person: Person, mine: Key | None, key: Key, action: str) -> None:
    """Raise PermissionDenied for a key that may do more than the key of the request, `mine`.

    That is one with another scope, a later expiry or a more trusted origin.
    """
    require_scopes(person, key.scopes, action)
    ends = None if mine is None else mine.expires
    if ends is not None and (key.expires is None or key.expires > ends):
        raise PermissionDenied(action, "a key that does not expire before it")
    origin = key.origin or "user"
    if least_trusted(origin, person.origin) != origin:
        raise PermissionDenied(action, "a key whose origin is trusted as much")


def choose_scopes(user: User, *, owns_collection: bool, grants: Sequence[Grant]) -> tuple[Scope, ...]:
    """Return the scopes of what a user may do: `admin` only with a role that gives roles to others."""
    manages = any(includes_role(grant.role, "manager") for grant in grants)
    return SCOPES if user.owner or owns_collection or manages else ("read", "write")


def require_account(person: Person, collection: Collection, action: str) -> None:
    """Raise PermissionDenied unless the person owns the collection or the store."""
    if not person.owner and collection.owner != person.id:
        raise PermissionDenied(action, "the account that it belongs to")


def require_own_origin(person: Person, action: str) -> None:
    """Raise PermissionDenied unless a person acts: a key or request with a lower origin acts for none."""
    if person.origin not in {None, "user"}:
        raise PermissionDenied(action, "a person: a key and request without an origin")


def require_owner(person: Person, action: str) -> None:
    """Raise PermissionDenied unless the person is the owner of the store."""
    require_scope(person, "admin", action)
    if not person.owner:
        raise PermissionDenied(action, "the owner account")


def require_owner_in_person(person: Person, action: str) -> None:
    """Raise PermissionDenied unless the owner of the store acts, and not a model or crawler for it."""
    require_owner(person, action)
    require_own_origin(person, action)


def require_embedder(person: Person, embedder: str, usual: str) -> None:
    """Raise PermissionDenied for an embedder that may read local files or cost money.

    Everyone may use the default one with any number of dimensions, an included one, none, or their own
    vectors.
    """
    names = {usual, usual.partition("@")[0], "minilm", "multilingual", "none"}
    own_vectors = embedder.startswith("vectors:")
    if not (person.owner or own_vectors) and names.isdisjoint({embedder, embedder.partition("@")[0]}):
        raise PermissionDenied("choose another embedder than the store's", "the owner account")


def require_grantor(role: Role | None, granted: Role) -> None:
    """Raise PermissionDenied unless a role may grant or revoke another."""
    limit = GRANTS_UP_TO.get(role) if role is not None else None
    if limit is None or not includes_role(limit, granted):
        raise PermissionDenied(
            f"grant or revoke the role {granted}", "the role owner" if limit else "the role manager"
        )


def _roles(role: Role | None) -> list[Role]:
    return [] if role is None else [role]
