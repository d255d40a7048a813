"""Keys of the relations of stored edges, where an older program wrote the rows."""

from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from conspectus.records.graph.rows import IN_GRAPH
from conspectus.records.tables.graph import WITHOUT_KEY, edges
from conspectus.text.name_keys import relation_key

_TYPES_WITHOUT_KEY = select(edges.c.type).where(WITHOUT_KEY).distinct()
_FILL = (
    update(edges)
    .where(WITHOUT_KEY, edges.c.type == bindparam("named"))
    .values(type_key=bindparam("relation"))
)
_TWO_SPELLINGS = """
    SELECT DISTINCT one.source, one.type_key FROM graph_edges one JOIN graph_edges other
    ON other.source = one.source AND other.type_key = one.type_key AND other.aside = one.aside
    WHERE one.aside = 0 AND one.single = 1 AND other.type <> one.type AND other.target <> one.target
"""
_OF_RELATION = (
    select(
        edges.c.number, edges.c.target, edges.c.began, edges.c.single, edges.c.valid_until, edges.c.closed_by
    )
    .where(
        edges.c.source == bindparam("from"),
        edges.c.type_key == bindparam("relation"),
        edges.c.aside == IN_GRAPH,
    )
    .order_by(edges.c.began, edges.c.number)
)
_CLOSE = (
    update(edges)
    .where(edges.c.number == bindparam("at"))
    .values(valid_until=bindparam("until"), closed_by=bindparam("by"))
)


def has_missing_keys(connection: Connection) -> bool:
    """Return whether any edge has no key of its relation."""
    return connection.execute(_TYPES_WITHOUT_KEY.limit(1)).first() is not None


def fill_missing_keys(connection: Connection) -> None:
    """Give each edge the key of its relation, and end facts that one in another spelling supersedes."""
    types = connection.execute(_TYPES_WITHOUT_KEY).scalars().all()
    if not types:
        return
    connection.execute(_FILL, [{"named": type, "relation": relation_key(type)} for type in types])
    for source, relation in connection.exec_driver_sql(_TWO_SPELLINGS).all():
        _end_superseded(connection, source, relation)


def _end_superseded(connection: Connection, source: int, relation: str) -> None:
    """End the facts of one subject and relation that a later single one with another object supersedes."""
    rows = connection.execute(_OF_RELATION, {"from": source, "relation": relation}).all()
    for position, row in enumerate(rows):
        later = (edge for edge in rows[position + 1 :] if edge.single and edge.target != row.target)
        superseding: Any = next(later, None)
        is_open = row.valid_until is None or row.closed_by is not None
        if superseding is None or not is_open or row.valid_until == superseding.began:
            continue
        if row.valid_until is None or superseding.began < row.valid_until:
            closing = {"at": row.number, "until": superseding.began, "by": superseding.number}
            connection.execute(_CLOSE, closing)
