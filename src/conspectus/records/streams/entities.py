"""Who and what the captions and events of a stream name, read without the documents."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CompoundSelect, Connection, func, select, union

from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Period
from conspectus.model.streams import ENTITIES
from conspectus.ports.timelines import EntityOccurrence, Span
from conspectus.records.core.dialects import members, text_of
from conspectus.records.core.rows import blocks
from conspectus.records.streams.timeline import numbered, timed
from conspectus.records.tables.core import SEEN, documents
from conspectus.text.times import from_microseconds

_SHOWN = (documents.c.id, documents.c.occurred_start, documents.c.occurred_end)


def names(connection: Connection, source: SourceId, span: Span) -> dict[str, int]:
    """In how many captions and events each name is among the entities, or that of the speaker."""
    given = _given(connection, source, span).subquery()
    chosen = select(given.c.name, func.count()).group_by(given.c.name).order_by(given.c.name)
    return {row.name: row[1] for row in connection.execute(chosen)}


def mentions(
    connection: Connection, source: SourceId, span: Span, *, called: Sequence[str]
) -> list[EntityOccurrence]:
    """Where any of these names is given, as it is spelt."""
    given = _given(connection, source, span).subquery()
    chosen = select(given)
    found = []
    for block in blocks(called):
        for document, start, end, name in connection.execute(chosen.where(given.c.name.in_(block))):
            found.append(EntityOccurrence(DocumentId(document), name, _period(start, end)))
    return found


def _given(connection: Connection, source: SourceId, span: Span) -> CompoundSelect[Any]:
    """Each document with each of its names once."""
    here = documents.c.source == source
    bounds = [*numbered(span), *timed(connection, source, span)]
    entities = members(documents.c.metadata, ENTITIES)
    named = select(*_SHOWN, text_of(entities).label("name")).select_from(documents).join(entities, SEEN)
    speakers = select(*_SHOWN, documents.c.author.label("name"))
    return union(
        named.where(here, SEEN, *bounds, text_of(entities).is_not(None)),
        speakers.where(here, SEEN, *bounds, documents.c.author.is_not(None)),
    )


def _period(start: int | None, end: int) -> Period | None:
    return None if start is None else Period(from_microseconds(start), from_microseconds(end))
