"""Users and groups that share a group, or a role on a collection or source, with a user."""

from sqlalchemy import Connection, and_, or_, select, union

from conspectus.model.access import Acquaintances, Group, User
from conspectus.model.ids import UserId
from conspectus.records.core.rows import to_model
from conspectus.records.tables.core import collections, grants, groups, members, users


def list_acquaintances(connection: Connection, user: UserId) -> Acquaintances:
    memberships, own_grants, own_collections = members.alias(), grants.alias(), collections.alias()
    own_groups = select(memberships.c.group).where(memberships.c.user == user)
    is_own = or_(own_grants.c.user == user, own_grants.c.group.in_(own_groups))
    owned = select(own_collections.c.id).where(own_collections.c.owner == user)
    granted_whole = select(own_grants.c.collection).where(is_own, own_grants.c.source.is_(None))
    granted_sources = select(own_grants.c.source).where(is_own, own_grants.c.source.is_not(None))
    with_a_role = union(owned, select(own_grants.c.collection).where(is_own))
    is_shared = or_(
        grants.c.collection.in_(union(owned, granted_whole)),
        grants.c.source.in_(granted_sources),
        and_(grants.c.source.is_(None), grants.c.collection.in_(with_a_role)),
    )
    shared_groups = select(grants.c.group).where(is_shared, grants.c.group.is_not(None))
    known_groups = union(own_groups, shared_groups)
    known_users = union(
        select(grants.c.user).where(is_shared, grants.c.user.is_not(None)),
        select(members.c.user).where(members.c.group.in_(known_groups)),
        select(collections.c.owner).where(collections.c.id.in_(with_a_role)),
    )
    is_known = or_(users.c.id == user, users.c.owner == 1, users.c.id.in_(known_users))
    user_rows = connection.execute(select(users).where(is_known).order_by(users.c.name))
    group_rows = connection.execute(
        select(groups).where(groups.c.id.in_(known_groups)).order_by(groups.c.name)
    )
    return Acquaintances(
        tuple(to_model(User, row._mapping) for row in user_rows),
        tuple(to_model(Group, row._mapping) for row in group_rows),
    )
