"""Viewers of mirrored sources: people and groups by the names of a remote, and the users that they are."""

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, insert, literal, select, update

from conspectus.errors import NotFound
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.model.viewers import EVERYONE, RemotePerson
from conspectus.records.accounts.audit import Change, note_change
from conspectus.records.accounts.users import user_by_id
from conspectus.records.core.collections import renew_viewers_version
from conspectus.records.tables.core import collections, remote_members, remote_people, source_viewers, sources
from conspectus.text.times import to_microseconds


def mirror_source(connection: Connection, source: SourceId, remote: str, viewers: Sequence[str]) -> None:
    """Let only these viewers at the remote of a connection read a source. Raises NotFound."""
    same = sources.c.id == source
    if not connection.execute(update(sources).where(same).values(mirrored=remote)).rowcount:
        raise NotFound("source", source)
    collection = select(sources.c.collection).where(same).scalar_subquery()
    renew_viewers_version(connection, collections.c.id == collection)
    connection.execute(delete(source_viewers).where(source_viewers.c.source == source))
    if viewers:
        connection.execute(
            insert(source_viewers), [{"source": source, "viewer": viewer} for viewer in sorted(set(viewers))]
        )


def list_mirrored_sources(connection: Connection, remote: str) -> Mapping[SourceId, frozenset[str]]:
    """Return the viewers of each source that the remote of a connection mirrors."""
    mirrored = sources.outerjoin(source_viewers, source_viewers.c.source == sources.c.id)
    query = select(sources.c.id, source_viewers.c.viewer).select_from(mirrored)
    viewers: dict[SourceId, set[str]] = {}
    for source, viewer in connection.execute(query.where(sources.c.mirrored == remote)):
        viewers.setdefault(SourceId(source), set()).update([] if viewer is None else [viewer])
    return {source: frozenset(names) for source, names in viewers.items()}


def list_unreadable_sources(
    connection: Connection, collection: CollectionId, user: UserId
) -> Mapping[SourceId, str]:
    """Return the mirrored sources of a collection that a user is no viewer of, each with its connection."""
    own = remote_people.c.user == user
    names = select(remote_people.c.connection, remote_people.c.name).where(own).cte(recursive=True)
    groups = remote_members.join(
        names,
        and_(remote_members.c.connection == names.c.connection, remote_members.c.member == names.c.name),
    )
    names = names.union(
        select(remote_people.c.connection, literal(EVERYONE)).where(own),
        select(remote_members.c.connection, remote_members.c.group).select_from(groups),
    )
    readable = (
        select(sources.c.id)
        .join(source_viewers, source_viewers.c.source == sources.c.id)
        .join(
            names,
            and_(names.c.connection == sources.c.mirrored, names.c.name == source_viewers.c.viewer),
        )
    )
    mirrored = sources.c.collection == collection, sources.c.mirrored.is_not(None)
    query = select(sources.c.id, sources.c.mirrored).where(*mirrored, sources.c.id.not_in(readable))
    return {SourceId(source): remote for source, remote in connection.execute(query)}


def put_remote_members(
    connection: Connection,
    remote: str,
    members: Mapping[str, Sequence[str]],
    *,
    groups: Container[str] | None = None,
) -> None:
    """Replace all members of groups at a remote; with `groups`, those not among them have none."""
    of_remote = remote_members.c.connection == remote
    replaced = set(members)
    if groups is not None:
        stored = select(remote_members.c.group).where(of_remote).distinct()
        replaced |= {group for group in connection.execute(stored).scalars() if group not in groups}
    if replaced:
        of_group = remote_members.c.group == bindparam("replaced")
        parameters = [{"replaced": group} for group in sorted(replaced)]
        connection.execute(delete(remote_members).where(of_remote, of_group), parameters)
    rows = [
        {"connection": remote, "group": group, "member": member}
        for group, names in members.items()
        for member in sorted(set(names))
    ]
    if rows:
        connection.execute(insert(remote_members), rows)
    _renew_version(connection, remote)


def list_remote_people(connection: Connection, remote: str) -> Sequence[RemotePerson]:
    """Return the viewers and members at a remote that are no groups, and the mapped people, by name."""
    query = select(remote_people.c.name, remote_people.c.user).where(remote_people.c.connection == remote)
    mapped = {row.name: row.user for row in connection.execute(query)}
    of_remote = remote_members.c.connection == remote
    groups = set(connection.execute(select(remote_members.c.group).where(of_remote)).scalars())
    names = set(connection.execute(select(remote_members.c.member).where(of_remote)).scalars())
    viewers = select(source_viewers.c.viewer).join(sources, sources.c.id == source_viewers.c.source)
    names |= set(connection.execute(viewers.where(sources.c.mirrored == remote)).scalars())
    people = (names - groups - {EVERYONE}) | mapped.keys()
    return [RemotePerson(name, mapped.get(name)) for name in sorted(people)]


def list_remote_names(connection: Connection, remote: str, user: UserId) -> Sequence[str]:
    """Return the names at a remote of the people that a user is mapped to, sorted."""
    same = remote_people.c.connection == remote, remote_people.c.user == user
    return connection.execute(select(remote_people.c.name).where(*same).order_by("name")).scalars().all()


def map_remote_person(
    connection: Connection, remote: str, person: RemotePerson, *, created: datetime, change: Change = None
) -> None:
    """Store the user that a person at a remote is; None for none. Raises NotFound for an unknown user."""
    same = remote_people.c.connection == remote, remote_people.c.name == person.name
    connection.execute(delete(remote_people).where(*same))
    if person.user is not None:
        user_by_id(connection, person.user)
        row = {"connection": remote, "name": person.name, "user": person.user}
        connection.execute(insert(remote_people), {**row, "created": to_microseconds(created)})
    _renew_version(connection, remote)
    note_change(connection, change)


def forget_remote(connection: Connection, remote: str) -> None:
    """Delete the people and groups of a remote; what it mirrors is then read by nobody."""
    for table in (remote_members, remote_people):
        connection.execute(delete(table).where(table.c.connection == remote))
    _renew_version(connection, remote)


def _renew_version(connection: Connection, remote: str) -> None:
    mirrored = select(sources.c.collection).where(sources.c.mirrored == remote)
    renew_viewers_version(connection, collections.c.id.in_(mirrored))
