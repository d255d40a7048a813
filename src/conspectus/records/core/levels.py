"""Trust levels in SQL: an update never raises the level or the origin of a row."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import BindParameter, Case, Column, ColumnElement, Connection, bindparam, case, select, update

from conspectus.model.quarantine import QUARANTINE, as_given
from conspectus.model.records import Document, PreparedDocument
from conspectus.model.trust import HIGHEST, TRUST, Origin, Trust, least, least_trusted
from conspectus.records.tables.graph import edges, evidence

NEW_TRUST: BindParameter[str] = bindparam("new_trust")
NEW_ORIGIN: BindParameter[str] = bindparam("new_origin")
_TRUST_RANKS = {level: TRUST.index(level) for level in TRUST}
_ORIGIN_RANKS = {origin: TRUST.index(level) for origin, level in HIGHEST.items()}


def _rank(level: ColumnElement[Any], ranks: dict[Any, int]) -> Case[Any]:
    return case(ranks, value=level)


def lower_trust(trust: Column[Any], new: ColumnElement[Any] = NEW_TRUST) -> Case[Any]:
    """Return the lower one of a stored level and a new one.

    The level of a quarantined row is in its metadata, so the writer lowers the new one with `level_below`.
    """
    is_lower = _rank(new, _TRUST_RANKS) < _rank(trust, _TRUST_RANKS)
    return case((trust == "quarantined", new), (is_lower, trust), else_=new)


def lower_origin(origin: Column[Any], new: ColumnElement[Any] = NEW_ORIGIN) -> Case[Any]:
    """Return the one with the lower level of a stored origin and a new one; of equal ones the new one."""
    is_lower = _rank(new, _ORIGIN_RANKS) < _rank(origin, _ORIGIN_RANKS)
    return case((is_lower, origin), else_=new)


_LOWER_EDGES: Final = (
    update(edges)
    .where(edges.c.number.in_(select(evidence.c.edge).where(evidence.c.document == bindparam("of"))))
    .values(trust=lower_trust(edges.c.trust), origin=lower_origin(edges.c.origin))
)


def level_below(new: tuple[Origin, Trust], stored: tuple[Origin, Trust]) -> tuple[Origin, Trust]:
    """Return origin and level of a row that is written again: `lower_origin` and `lower_trust`."""
    return least_trusted(new[0], stored[0]), least(new[1], stored[1])


def with_level_at_most(prepared: PreparedDocument, stored: tuple[Origin, Trust]) -> PreparedDocument:
    """Return a document at most at the level of the stored one."""
    document = prepared.document
    origin, trust = level_below((document.origin, document.trust), stored)
    if (origin, trust) == (document.origin, document.trust):
        return prepared
    return replace(prepared, document=replace(document, origin=origin, trust=trust))


def level_of_quarantined(metadata: str) -> Trust:
    """Return the level that a quarantined document has once it is released, from its stored metadata."""
    quarantine: Any = json.loads(metadata)[QUARANTINE]
    level: Trust = quarantine["given"]["trust"]
    return level


def lower_edges(connection: Connection, documents: Sequence[Document]) -> None:
    """Lower the edges that documents state to their new levels."""
    if documents:
        connection.execute(
            _LOWER_EDGES,
            [
                {"of": document.id, "new_origin": document.origin, "new_trust": as_given(document).trust}
                for document in documents
            ],
        )
