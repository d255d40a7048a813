"""Time ranges of a stream: captions and events in the order of time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    and_,
    bindparam,
    false,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
    union,
)

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Document, Kind
from conspectus.model.stream_events import ENTITIES
from conspectus.ports.streams import EntityOccurrence, Extent, Span, Spot, TimelinePage
from conspectus.records.core.dialects import element_text, json_elements
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.core.reads import with_texts
from conspectus.records.core.rows import DOCUMENT_COLUMNS, period_of, to_document
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows, fetch_scalar
from conspectus.records.tables.core import IS_CAPTION_OR_EVENT, documents
from conspectus.text.times import from_microseconds, to_microseconds

_OF_STREAM = (
    documents.c.source == bindparam("source"),
    documents.c.kind == bindparam("kind"),
    IS_CAPTION_OR_EVENT,
)
_DATED = documents.c.occurred_start.is_not(None)
_BY_TIME = (
    documents.c.occurred_start,
    documents.c.occurred_end,
    documents.c.order_sequence,
    documents.c.key,
)
_BY_NUMBER = (documents.c.order_sequence, documents.c.key)
_LENGTH = documents.c.occurred_end - documents.c.occurred_start
_LONGEST_CAPTION = (
    select(_LENGTH)
    .where(documents.c.source == bindparam("source"), IS_CAPTION_OR_EVENT, _LENGTH.is_not(None))
    .order_by(_LENGTH.desc())
    .limit(1)
)
_COUNT = select(func.count()).where(*_OF_STREAM)
_BEGINS = select(documents.c.occurred_start).where(*_OF_STREAM, _DATED).order_by(documents.c.occurred_start)
_FIRST = _BEGINS.limit(1)
_LAST = _BEGINS.order_by(None).order_by(documents.c.occurred_start.desc()).limit(1)
_ENDS = select(func.max(documents.c.occurred_end)).where(
    *_OF_STREAM, documents.c.occurred_start >= bindparam("since")
)
BEYOND_ALL_INSTANTS = 2**60
"""A number of microseconds beyond every instant."""
_POSITIONS_IN_RANGE = select(
    documents.c.id, documents.c.occurred_start, documents.c.occurred_end, documents.c.sequence
).where(
    documents.c.source == bindparam("source"),
    IS_CAPTION_OR_EVENT,
    documents.c.occurred_start >= bindparam("earliest"),
    documents.c.occurred_start < bindparam("end"),
    or_(
        documents.c.occurred_end > bindparam("start"),
        and_(
            documents.c.occurred_end == bindparam("start"),
            documents.c.occurred_start == bindparam("start"),
        ),
    ),
)


def timeline(
    connection: Connection,
    source: SourceId,
    span: Span,
    *,
    kind: Kind = "caption",
    after: str | None = None,
    limit: int,
) -> TimelinePage:
    """Return documents with times first, then, unless a time is required, those without."""
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    position = None if after is None else from_cursor(after, (int, int, int, str), (int, str))
    here = {"source": str(source), "kind": str(kind)}
    rows: list[Any] = []
    if position is None or len(position) == len(_BY_TIME):
        condition = [*filter_by_number(span), *filter_by_time(connection, source, span), _DATED]
        rows += _page(connection, here, condition, order=_BY_TIME, position=position, limit=limit + 1)
        position = None
    if span.start is None and span.end is None and len(rows) <= limit:
        condition = [*filter_by_number(span), ~_DATED]
        rest = limit + 1 - len(rows)
        rows += _page(connection, here, condition, order=_BY_NUMBER, position=position, limit=rest)
    page = [to_document(row) for row in rows[:limit]]
    cursor = _cursor(rows[limit - 1]) if len(rows) > limit else None
    return TimelinePage(tuple(with_texts(connection, page)), cursor)


def stretches(
    connection: Connection, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool = False
) -> list[tuple[Document, str]]:
    bounds = [
        and_(true(), *filter_by_number(span), *filter_by_time(connection, source, span)) for span in spans
    ]
    inside = or_(false(), *bounds)
    query = select(*DOCUMENT_COLUMNS).where(documents.c.source == source, IS_CAPTION_OR_EVENT, _DATED, inside)
    order = [column.desc() for column in _BY_TIME] if last else _BY_TIME
    rows = connection.execute(query.order_by(*order).limit(limit)).all()
    return with_texts(connection, [to_document(row) for row in (reversed(rows) if last else rows)])


def list_positions(connection: Connection, source: SourceId, spans: Sequence[Span]) -> list[Spot]:
    """Return the positions of captions in any of the ranges; each range is one index lookup."""
    longest = fetch_scalar(connection, _LONGEST_CAPTION, {"source": source}) or 0
    times_by_document: dict[str, tuple[int, int]] = {}
    for span in spans:
        start, end = _bound(span.start, -BEYOND_ALL_INSTANTS), _bound(span.end, BEYOND_ALL_INSTANTS)
        parameters = {"source": source, "earliest": start - longest, "start": start, "end": end}
        for name, begins, ends, number in fetch_rows(connection, _POSITIONS_IN_RANGE, parameters):
            if _meets_bounds(span, (begins, ends), number, within=(start, end)):
                times_by_document[name] = (begins, ends)
    return [Spot(DocumentId(name), *times) for name, times in times_by_document.items()]


def _bound(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else to_microseconds(moment)


def _meets_bounds(span: Span, times: tuple[int, int], number: int | None, *, within: tuple[int, int]) -> bool:
    """Return whether a document meets the conditions that the SQL query did not test."""
    if span.contains and not (within[0] <= times[0] and times[1] <= within[1]):
        return False
    if span.first is not None and (number is None or number < span.first):
        return False
    return span.last is None or (number is not None and number <= span.last)


def extent(connection: Connection, source: SourceId, *, counted: bool = True) -> Extent:
    here = {"source": source, "kind": "caption"}
    count: int = fetch_scalar(connection, _COUNT, here) if counted else 0
    first = fetch_scalar(connection, _FIRST, here)
    if first is None:
        return Extent(count, None, None)
    longest = fetch_scalar(connection, _LONGEST_CAPTION, {"source": source}) or 0
    since = fetch_scalar(connection, _LAST, here) - longest
    last = fetch_scalar(connection, _ENDS, {**here, "since": since})
    return Extent(count, from_microseconds(first), from_microseconds(last))


def _page(
    connection: Connection,
    here: dict[str, str],
    condition: Sequence[ColumnElement[bool]],
    *,
    order: Sequence[ColumnElement[Any]],
    position: Sequence[Any] | None,
    limit: int,
) -> Sequence[Any]:
    query = select(*DOCUMENT_COLUMNS, documents.c.order_sequence).where(*_OF_STREAM, *condition)
    if position is not None:
        query = query.where(tuple_(*order) > tuple_(*map(literal, position)))
    return connection.execute(query.order_by(*order).limit(limit), here).all()


def filter_by_number(span: Span) -> list[ColumnElement[bool]]:
    """Return the conditions of documents with a number within the bounds."""
    bounds = []
    if span.first is not None:
        bounds.append(documents.c.sequence >= span.first)
    if span.last is not None:
        bounds.append(documents.c.sequence <= span.last)
    return bounds


def filter_by_time(connection: Connection, source: SourceId, span: Span) -> list[ColumnElement[bool]]:
    """Return the conditions of documents that overlap or are inside a range; an instant overlaps itself."""
    start, end = documents.c.occurred_start, documents.c.occurred_end
    bounds = []
    if span.end is not None:
        bounds.append(start < to_microseconds(span.end))
        if span.contains:
            bounds.append(end <= to_microseconds(span.end))
    if span.start is None:
        return bounds
    first = to_microseconds(span.start)
    if span.contains:
        return [*bounds, start >= first]
    # Nothing that started earlier than the longest duration can overlap the range: a bound for the index.
    longest = fetch_scalar(connection, _LONGEST_CAPTION, {"source": source}) or 0
    return [*bounds, start >= first - longest, or_(end > first, and_(end == first, start == first))]


def _cursor(row: Any) -> str:
    times = () if row.occurred_start is None else (row.occurred_start, row.occurred_end)
    return to_cursor(*times, row.order_sequence, row.key)


_OCCURRENCE_COLUMNS = (documents.c.id, documents.c.occurred_start, documents.c.occurred_end)


def names(connection: Connection, source: SourceId, span: Span) -> dict[str, int]:
    occurrences = _with_names(connection, source, span).subquery()
    query = select(occurrences.c.name, func.count()).group_by(occurrences.c.name).order_by(occurrences.c.name)
    return {row.name: row[1] for row in connection.execute(query)}


def mentions(
    connection: Connection, source: SourceId, span: Span, *, names: Sequence[str]
) -> list[EntityOccurrence]:
    """Return the documents with any of these names, in exactly this spelling."""
    occurrences = _with_names(connection, source, span).subquery()
    rows = fetch_in_blocks(connection, select(occurrences).where(occurrences.c.name.in_(IDS)), names)
    return [
        EntityOccurrence(DocumentId(document), name, period_of(start, end))
        for document, start, end, name in rows
    ]


def _with_names(connection: Connection, source: SourceId, span: Span) -> CompoundSelect[Any]:
    """Return a query of documents, each with each of its distinct names."""
    here = documents.c.source == source
    bounds = [*filter_by_number(span), *filter_by_time(connection, source, span)]
    entities = json_elements(documents.c.metadata, ENTITIES)
    named = (
        select(*_OCCURRENCE_COLUMNS, element_text(entities).label("name"))
        .select_from(documents)
        .join(entities, IS_CAPTION_OR_EVENT)
    )
    speakers = select(*_OCCURRENCE_COLUMNS, documents.c.author.label("name"))
    return union(
        named.where(here, IS_CAPTION_OR_EVENT, *bounds, element_text(entities).is_not(None)),
        speakers.where(here, IS_CAPTION_OR_EVENT, *bounds, documents.c.author.is_not(None)),
    )
