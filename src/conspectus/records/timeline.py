"""Stretches of a stream: captions and events in the order of time, found without reading the others."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, false, func, literal, or_, select, tuple_

from conspectus.errors import InvalidInput
from conspectus.model.ids import SourceId
from conspectus.model.records import Document, Kind
from conspectus.ports.timelines import Extent, Span, TimelinePage
from conspectus.records.reading import texts_of
from conspectus.records.rows import DOCUMENT_COLUMNS, to_document
from conspectus.records.tables import SEEN, documents
from conspectus.text.times import from_microseconds, to_microseconds

_HERE = (documents.c.source == bindparam("source"), documents.c.kind == bindparam("kind"), SEEN)
_DATED = documents.c.occurred_start.is_not(None)
_BY_TIME = (
    documents.c.occurred_start,
    documents.c.occurred_end,
    documents.c.order_sequence,
    documents.c.key,
)
_BY_NUMBER = (documents.c.order_sequence, documents.c.key)
_LENGTH = documents.c.occurred_end - documents.c.occurred_start
_LONGEST = (
    select(_LENGTH)
    .where(documents.c.source == bindparam("source"), SEEN, _LENGTH.is_not(None))
    .order_by(_LENGTH.desc())
    .limit(1)
)
_EXTENT = select(
    func.count(), func.min(documents.c.occurred_start), func.max(documents.c.occurred_end)
).where(*_HERE)


def timeline(
    connection: Connection, source: SourceId, span: Span, *, kind: Kind, after: str | None, limit: int
) -> TimelinePage:
    """Those with times first, then, where no time was named, those without."""
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    place = None if after is None else _from_cursor(after)
    here = {"source": str(source), "kind": str(kind)}
    rows: list[Any] = []
    if place is None or len(place) == len(_BY_TIME):
        condition = [*numbered(span), *timed(connection, source, span), _DATED]
        rows += _page(connection, here, condition, order=_BY_TIME, place=place, limit=limit + 1)
        place = None
    if span.start is None and span.end is None and len(rows) <= limit:
        condition = [*numbered(span), ~_DATED]
        rest = limit + 1 - len(rows)
        rows += _page(connection, here, condition, order=_BY_NUMBER, place=place, limit=rest)
    found = [to_document(row) for row in rows[:limit]]
    texts = texts_of(connection, [each.id for each in found])
    cursor = _to_cursor(rows[limit - 1]) if len(rows) > limit else None
    return TimelinePage(tuple((each, texts.get(each.id, "")) for each in found), cursor)


def stretches(
    connection: Connection, source: SourceId, spans: Sequence[Span], *, limit: int, last: bool
) -> list[tuple[Document, str]]:
    """What lies in any of the spans, each once, in the order of time."""
    inside = or_(false(), *(and_(*numbered(span), *timed(connection, source, span)) for span in spans))
    chosen = select(*DOCUMENT_COLUMNS).where(documents.c.source == source, SEEN, _DATED, inside)
    order = [column.desc() for column in _BY_TIME] if last else _BY_TIME
    rows = connection.execute(chosen.order_by(*order).limit(limit)).all()
    found = [to_document(row) for row in (reversed(rows) if last else rows)]
    texts = texts_of(connection, [each.id for each in found])
    return [(each, texts.get(each.id, "")) for each in found]


def extent(connection: Connection, source: SourceId) -> Extent:
    """The number of captions, and their first start and last end."""
    count, first, last = connection.execute(_EXTENT, {"source": source, "kind": "caption"}).one()
    return Extent(
        count,
        None if first is None else from_microseconds(first),
        None if last is None else from_microseconds(last),
    )


def _page(
    connection: Connection,
    here: dict[str, str],
    condition: Sequence[ColumnElement[bool]],
    *,
    order: Sequence[ColumnElement[Any]],
    place: Sequence[Any] | None,
    limit: int,
) -> Sequence[Any]:
    chosen = select(*DOCUMENT_COLUMNS, documents.c.order_sequence).where(*_HERE, *condition)
    if place is not None:
        chosen = chosen.where(tuple_(*order) > tuple_(*map(literal, place)))
    return connection.execute(chosen.order_by(*order).limit(limit), here).all()


def numbered(span: Span) -> list[ColumnElement[bool]]:
    """What has a number within the bounds of the span."""
    bounds = []
    if span.first is not None:
        bounds.append(documents.c.sequence >= span.first)
    if span.last is not None:
        bounds.append(documents.c.sequence <= span.last)
    return bounds


def timed(connection: Connection, source: SourceId, span: Span) -> list[ColumnElement[bool]]:
    """What shares an instant with the span, or lies in it; an instant counts as itself."""
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
    # Nothing that began earlier than the longest lasts can reach into the span: a bound for the database.
    longest = connection.execute(_LONGEST, {"source": source}).scalar() or 0
    return [*bounds, start >= first - longest, or_(end > first, and_(end == first, start == first))]


def _to_cursor(row: Any) -> str:
    times = () if row.occurred_start is None else (row.occurred_start, row.occurred_end)
    place = json.dumps([*times, row.order_sequence, row.key])
    return base64.urlsafe_b64encode(place.encode()).decode()


def _from_cursor(cursor: str) -> list[Any]:
    """Numbers and then a key, as a page gave them."""
    try:
        place = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError) as error:
        raise InvalidInput("after", "is not a cursor that a page gave") from error
    if not isinstance(place, list) or len(place) not in {len(_BY_TIME), len(_BY_NUMBER)}:
        raise InvalidInput("after", "is not a cursor that a page gave")
    numbers, key = place[:-1], place[-1]
    if not isinstance(key, str) or not all(
        type(each) is int and -(2**63) <= each < 2**63 for each in numbers
    ):
        raise InvalidInput("after", "is not a cursor that a page gave")
    return place
