"""The conditions on which a stored response is repeated to its user.

A response shows what its user could read when it was made. It is repeated while the user has every role of
then, and while all rows that the response names are as they were. Names of rows are kept as digests only.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Connection, Select, String, cast, literal, or_, select, union_all

from conspectus.model.access import ROLES, Role
from conspectus.model.ids import CollectionId, UserId
from conspectus.records.accounts.viewers import list_unreadable_sources
from conspectus.records.core.statements import IDS, MAX_BLOCK_VALUES
from conspectus.records.tables.core import (
    collections,
    documents,
    feedback,
    grants,
    groups,
    keys,
    members,
    retentions,
    sources,
    users,
)
from conspectus.records.tables.experiments import question_sets, questions, runs
from conspectus.records.tables.graph import edges, nodes
from conspectus.records.tables.jobs import connections, jobs
from conspectus.records.tables.streams import alerts

RoleHeld: TypeAlias = tuple[str, str, Role]
"""A collection, one of its sources or `""` for all of them, and the role of a user there."""
MAX_NAME_LENGTH: Final = 1_000
"""Longer strings of a response are texts, and not ids."""
DIGEST_LENGTH: Final = 16
_HIDDEN_FROM: Final = (
    select(sources.c.hidden_from).where(sources.c.id == documents.c.source).scalar_subquery()
)
_ROW_KINDS: Final = (
    (documents.c.id, (documents.c.source, _HIDDEN_FROM, documents.c.kind, documents.c.fingerprint)),
    (nodes.c.id, (nodes.c.graph, nodes.c.aside, nodes.c.updated)),
    (edges.c.id, (edges.c.graph, edges.c.aside, edges.c.updated)),
    (sources.c.id, (sources.c.collection, sources.c.name, sources.c.metadata, sources.c.hidden_from)),
    (collections.c.id, (collections.c.owner, collections.c.name, collections.c.description)),
    *(
        (table.c.id, ())
        for table in (alerts, connections, feedback, grants, groups, jobs, keys, retentions, users)
    ),
    *((table.c.id, ()) for table in (question_sets, questions, runs)),
)
"""The id of each kind of row, and the columns that change when the row shows something else."""


def conditions_of(
    connection: Connection, person: str, body: str, roles: Sequence[RoleHeld]
) -> Mapping[str, Any]:
    """Return the conditions for repeating a response: the roles of the user, and the named rows."""
    all_roles = {*roles, *roles_of(connection, person)}
    return {"roles": sorted(all_roles), "rows": sorted(_rows_named(connection, body))}


def conditions_hold(
    connection: Connection, person: str, body: str, conditions: Mapping[str, Any] | None
) -> bool:
    """Return whether a response may be repeated now; one of an older version, without conditions, may not."""
    if conditions is None:
        return False
    roles = roles_of(connection, person)
    lost = [(*target, role) for *target, role in conditions["roles"] if not _has_role(roles, target, role)]
    if any(_exists(connection, collection, source) for collection, source, _ in lost):
        return False
    if _names_unreadable(connection, person, body):
        return False
    return set(conditions["rows"]) <= _rows_named(connection, body)


def _names_unreadable(connection: Connection, person: str, body: str) -> bool:
    """Return whether a response names a mirrored source of which the user is no viewer, or its documents."""
    mirrored: dict[str, set[str]] = {}
    for names in _blocks_of_names(body):
        for row in connection.execute(_MIRRORED_SOURCES, {"ids": names}):
            mirrored.setdefault(row.collection, set()).add(row.id)
    return any(
        named & list_unreadable_sources(connection, CollectionId(collection), UserId(person)).keys()
        for collection, named in mirrored.items()
    )


def roles_of(connection: Connection, person: str) -> list[RoleHeld]:
    """Return the roles of a user by ownership, grants and groups; the store's owner owns everything."""
    owner = select(users.c.owner).where(users.c.id == person)
    if connection.execute(owner).scalar():
        return [("", "", "owner")]
    owned = select(collections.c.id).where(collections.c.owner == person)
    through = select(members.c.group).where(members.c.user == person)
    to_user = or_(grants.c.user == person, grants.c.group.in_(through))
    granted = select(grants.c.collection, grants.c.source, grants.c.role).where(to_user)
    return [
        *((collection, "", "owner") for collection in connection.execute(owned).scalars()),
        *((row.collection, row.source or "", row.role) for row in connection.execute(granted)),
    ]


def _has_role(roles: Iterable[RoleHeld], target: Sequence[str], role: Role) -> bool:
    """Return whether current roles include an earlier role on a collection and source."""
    collection, source = target
    return any(
        current_collection in {"", collection}
        and current_source in {"", source}
        and ROLES.index(current) >= ROLES.index(role)
        for current_collection, current_source, current in roles
    )


def _exists(connection: Connection, collection: str, source: str) -> bool:
    """Return whether the collection or source of a role still exists."""
    if not collection:
        return True
    row = select(sources.c.id).where(sources.c.id == source)
    if not source:
        row = select(collections.c.id).where(collections.c.id == collection)
    return connection.execute(row).first() is not None


def _rows_named(connection: Connection, body: str) -> set[str]:
    """Return digests of the rows whose ids are in a response."""
    return {
        hashlib.sha256(repr(tuple(row)).encode()).hexdigest()[:DIGEST_LENGTH]
        for names in _blocks_of_names(body)
        for row in connection.execute(_NAMED_ROWS, {"ids": names})
    }


def _blocks_of_names(body: str) -> Iterator[list[str]]:
    """Yield the strings of a response that can be ids, as many at once as a statement takes."""
    try:
        document = json.loads(body)
    except ValueError:
        return
    names = sorted({text for text in _strings(document) if _is_storable(text)})
    for start in range(0, len(names), _NAMES_AT_ONCE):
        yield names[start : start + _NAMES_AT_ONCE]


def _is_storable(text: str) -> bool:
    """Return whether a string can be an id: databases refuse the NUL, and UTF-8 cannot encode surrogates."""
    return (
        len(text) <= MAX_NAME_LENGTH and "\0" not in text and text.encode("utf-8", "ignore").decode() == text
    )


def _strings(document: Any) -> Iterator[str]:
    match document:
        case str():
            yield document
        case list():
            for element in document:
                yield from _strings(element)
        case dict():
            for element in document.values():
                yield from _strings(element)


def _select_state(
    identifier: ColumnElement[str], state: Sequence[ColumnElement[Any]]
) -> Select[*tuple[Any, ...]]:
    columns = [cast(column, String) for column in state]
    padded = [*columns, *(literal("") for _ in range(_MAX_STATE_COLUMNS - len(columns)))]
    return select(literal(str(identifier)), identifier, *padded).where(identifier.in_(IDS))


_NAMES_AT_ONCE: Final = MAX_BLOCK_VALUES // len(_ROW_KINDS)
"""The statement has its parameters once for each kind of row."""
_MAX_STATE_COLUMNS: Final = max(len(state) for _, state in _ROW_KINDS)
_MIRRORED_SOURCES: Final = select(sources.c.id, sources.c.collection).where(
    sources.c.mirrored.is_not(None),
    or_(sources.c.id.in_(IDS), sources.c.id.in_(select(documents.c.source).where(documents.c.id.in_(IDS)))),
)
_NAMED_ROWS: Final = union_all(*(_select_state(identifier, state) for identifier, state in _ROW_KINDS))
