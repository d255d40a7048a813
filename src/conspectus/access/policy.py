"""The only place that turns a person into a filter, and says who may do what."""

from collections.abc import Iterable, Mapping, Sequence

from conspectus.errors import PermissionDenied
from conspectus.model.access import (
    ROLES,
    Access,
    Grant,
    Person,
    Role,
    RoleOrigin,
    RoleOriginKind,
    Scope,
    User,
)
from conspectus.model.filter import EVERYTHING, And, Eq, Filter, In, Or
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.jobs import Job
from conspectus.model.records import Collection
from conspectus.ports.jobs import JobPlace

GRANTS_UP_TO: dict[Role, Role] = {"manager": "editor", "owner": "owner"}
"""The highest role that someone in a role may give or take."""


def access_of(person: Person, collection: Collection, held: Sequence[Grant]) -> Access:
    """What the person may do in a collection, given all grants held, directly or through groups."""
    if person.owner or collection.owner == person.id:
        return Access("owner")
    here = [grant for grant in held if grant.collection == collection.id]
    sources: dict[SourceId, Role] = {}
    for grant in here:
        if grant.source is not None:
            sources[grant.source] = highest([grant.role, *_given(sources.get(grant.source))])
    whole = [grant.role for grant in here if grant.source is None]
    return Access(highest(whole) if whole else None, sources)


def origins_of(
    user: User, collection: Collection, held: Sequence[Grant], groups: Mapping[str, str]
) -> dict[SourceId | None, list[RoleOrigin]]:
    """Why a user has roles in a collection: on all of it (None), and on single sources besides.

    `groups` are names of groups by their ids.
    """
    owned: dict[RoleOriginKind, bool] = {
        "store_owner": user.owner,
        "collection_owner": collection.owner == user.id,
    }
    found: dict[SourceId | None, list[RoleOrigin]]
    found = {None: [RoleOrigin(kind, "owner") for kind, is_so in owned.items() if is_so]}
    for grant in held:
        if grant.collection == collection.id:
            kind, name = grant.grantee.kind, groups.get(grant.grantee.id)
            found.setdefault(grant.source, []).append(RoleOrigin(kind, grant.role, grant.source, name))
    return found


def sees(access: Access) -> bool:
    """Whether there is anything at all that the person may see; if not, the collection does not exist."""
    return access.collection is not None or bool(access.sources)


def visible(access: Access) -> Filter:
    """The filter of everything the person may see in a collection; nothing at all without any grant."""
    if access.collection is not None:
        return EVERYTHING
    return In("source", tuple(sorted(access.sources))) if access.sources else Or()


def narrowed(access: Access, where: Filter) -> Filter:
    """What the person asked for, within what the person may see."""
    allowed = visible(access)
    return where if allowed == EVERYTHING else And((allowed, where))


def counted_sources(access: Access, where: Filter) -> tuple[SourceId, ...]:
    """The sources whose term frequencies count: those that the filter names and the person may read."""
    named = bound(where)
    within = named if named is None else bound(narrowed(access, where))
    return tuple(sorted(within or ()))


def among(sources: Iterable[SourceId]) -> Filter:
    """The filter of what is in these sources, each of which the person may see."""
    return In("source", tuple(sorted(sources)))


def bound(where: Filter) -> frozenset[SourceId] | None:
    """The sources outside of which a filter leaves nothing; None where it does not bound them."""
    match where:
        case And(inner):
            within = [each for each in map(bound, inner) if each is not None]
            return frozenset.intersection(*within) if within else None
        case Or(inner):
            each_of = [bound(each) for each in inner]
            known = [each for each in each_of if each is not None]
            return frozenset[SourceId]().union(*known) if len(known) == len(each_of) else None
        case Eq("source", value):
            return frozenset({SourceId(str(value))})
        case In("source", values):
            return frozenset(SourceId(str(each)) for each in values)
    return None


def visible_jobs(access: Access, person: Person, collection: CollectionId) -> JobPlace:
    """Which jobs of a collection the person may see: all, or those of sources seen and the person's own."""
    if access.collection is not None:
        return JobPlace(collection)
    return JobPlace(collection, tuple(sorted(access.sources)), person.id if sees(access) else None)


def shows_job(access: Access, person: Person, job: Job) -> bool:
    """The same for one job of that collection."""
    return access.collection is not None or (
        sees(access) and (job.owner == person.id or job.source in access.sources)
    )


def role_on(access: Access, source: SourceId | None) -> Role | None:
    """The highest role on a source, or with None on the collection as a whole; None: it does not exist."""
    roles = [*_given(access.collection), *_given(None if source is None else access.sources.get(source))]
    return highest(roles) if roles else None


def at_least(role: Role | None, needed: Role) -> bool:
    """Whether a role allows what the needed one does."""
    return role is not None and ROLES.index(role) >= ROLES.index(needed)


def highest(roles: Iterable[Role]) -> Role:
    """The one of at least one role that allows most."""
    return max(roles, key=ROLES.index)


def require_role(role: Role | None, needed: Role, action: str) -> None:
    """Raise PermissionDenied unless the role, of something the person sees, is high enough."""
    if not at_least(role, needed):
        raise PermissionDenied(action, f"the role {needed}")


def require_scope(person: Person, scope: Scope, action: str) -> None:
    """Raise PermissionDenied unless the key that the person came with is good for it."""
    if scope not in person.scopes:
        raise PermissionDenied(action, f"a key with the scope {scope}")


def require_scopes(person: Person, scopes: Iterable[Scope], action: str) -> None:
    """Raise PermissionDenied unless the key that the person came with is good for each of these."""
    for scope in scopes:
        require_scope(person, scope, action)


def require_account(person: Person, collection: Collection, action: str) -> None:
    """Raise PermissionDenied unless the person has the collection, or is the owner."""
    if not person.owner and collection.owner != person.id:
        raise PermissionDenied(action, "the account that it belongs to")


def require_owner(person: Person, action: str) -> None:
    """Raise PermissionDenied unless the person is the owner of the store."""
    require_scope(person, "admin", action)
    if not person.owner:
        raise PermissionDenied(action, "the owner account")


def require_embedder(person: Person, embedder: str, usual: str) -> None:
    """Raise PermissionDenied for an embedder that may read local files or cost money.

    Everyone may have the usual one, at any size of vector, the packaged ones, none, or vectors of their own.
    """
    names = {usual, usual.partition("@")[0], "minilm", "multilingual", "none"}
    own_vectors = embedder.startswith("vectors:")
    if not (person.owner or own_vectors) and names.isdisjoint({embedder, embedder.partition("@")[0]}):
        raise PermissionDenied("choose another embedder than the store's", "the owner account")


def require_grantor(role: Role | None, granted: Role) -> None:
    """Raise PermissionDenied unless someone in this role may give or take the given role."""
    limit = GRANTS_UP_TO.get(role) if role is not None else None
    if limit is None or not at_least(limit, granted):
        raise PermissionDenied(
            f"grant or revoke the role {granted}", "the role owner" if limit else "the role manager"
        )


def _given(role: Role | None) -> list[Role]:
    return [] if role is None else [role]
