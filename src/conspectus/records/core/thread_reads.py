"""Reads of threads, and of the newest documents of a source."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, or_, select

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Document, StoredChunk, StoredThread
from conspectus.records.core.chunk_reads import WITH_NEIGHBOURS, stored_chunks
from conspectus.records.core.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, MAX_INT64, MIN_INT64
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows
from conspectus.records.tables.core import DATED, THREADED, chunks, documents
from conspectus.text.times import to_microseconds

_ORDER = (documents.c.order_sequence, documents.c.order_start, documents.c.number)
_FROM_SOURCE = documents.c.source == bindparam("source")
_IN_THREAD = (_FROM_SOURCE, documents.c.thread == bindparam("thread"), THREADED)
_FIRST = chunks.c.id == documents.c.last_chunk - documents.c.chunks + 1
_FIRST_CHUNKS = WITH_NEIGHBOURS.where(_FIRST)

_SIZE = select(func.count()).select_from(documents).where(*_IN_THREAD)
_FROM_THE_FIRST = (
    select(*CHUNK_COLUMNS, *DOCUMENT_COLUMNS, documents.c.last_chunk)
    .join(documents, documents.c.number == chunks.c.document)
    .where(_FIRST, *_IN_THREAD)
    .order_by(*_ORDER)
    .limit(bindparam("maximum"))
)
_SOME = _FIRST_CHUNKS.where(documents.c.id.in_(IDS))
_PLACE = (func.row_number().over(order_by=_ORDER) - 1).label("place")
_NUMBERED = select(documents.c.id, _PLACE).where(*_IN_THREAD).subquery()
_PLACES = select(_NUMBERED.c.place).where(_NUMBERED.c.id.in_(IDS))
_AT_PLACES = select(_NUMBERED.c.id, _NUMBERED.c.place).where(_NUMBERED.c.place.in_(IDS))
_LATEST = (
    _FIRST_CHUNKS.where(_FROM_SOURCE, DATED, documents.c.order_start <= bindparam("until"))
    .order_by(documents.c.order_start.desc(), documents.c.number.desc())
    .limit(bindparam("maximum"))
)
_LAST = (
    _FIRST_CHUNKS.where(_FROM_SOURCE)
    .order_by(documents.c.order_sequence.desc(), documents.c.number.desc())
    .limit(bindparam("maximum"))
)
_EARLIER = _LATEST.where(
    or_(documents.c.order_start < bindparam("until"), documents.c.number < bindparam("number"))
)
_EARLIER_BY_SEQUENCE = _LAST.where(
    documents.c.order_sequence <= bindparam("sequence"),
    or_(documents.c.order_sequence < bindparam("sequence"), documents.c.number < bindparam("number")),
)


def read_thread(
    connection: Connection, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId] = ()
) -> StoredThread:
    """Return a thread; of a long one both ends and the surroundings of some of its documents."""
    _require_positive(limit)
    condition = {"source": source, "thread": thread}
    begun = fetch_rows(connection, _FROM_THE_FIRST, {**condition, "maximum": limit + 1})
    if len(begun) <= limit:
        rows = stored_chunks(_with_neighbors(begun))
        return StoredThread(tuple(rows), {row.document.id: at for at, row in enumerate(rows)}, len(rows))
    ((total,),) = fetch_rows(connection, _SIZE, condition)
    anchors = connection.execute(_PLACES, {**condition, "ids": list(around)}).scalars().all()
    positions = _positions_to_read(anchors, limit, total)
    position_rows = connection.execute(_AT_PLACES, {**condition, "ids": positions}).all()
    places: dict[DocumentId, int] = {DocumentId(document): position for document, position in position_rows}
    rows = stored_chunks(connection.execute(_SOME, {"ids": list(places)}).all())
    return StoredThread(tuple(sorted(rows, key=lambda row: places[row.document.id])), places, total)


def _with_neighbors(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of a whole thread with their neighbors, which need no lookup then."""
    before = [None, *(row[-1] for row in rows)]
    after = [*(row[0] for row in rows[1:]), None]
    return [(*row, *links) for row, *links in zip(rows, before, after, strict=False)]


def latest(
    connection: Connection,
    source: SourceId,
    *,
    limit: int,
    until: datetime | None = None,
    before: Document | None = None,
) -> Sequence[StoredChunk]:
    _require_positive(limit)
    condition: dict[str, str | int] = {"source": source, "maximum": limit}
    if before is not None:
        condition |= {
            "number": before.number,
            "sequence": MIN_INT64 if before.sequence is None else before.sequence,
        }
        if before.occurred is None:
            return stored_chunks(fetch_rows(connection, _EARLIER_BY_SEQUENCE, condition))
        condition["until"] = to_microseconds(before.occurred.start)
        return stored_chunks(fetch_rows(connection, _EARLIER, condition))
    bound = MAX_INT64 if until is None else to_microseconds(until)
    rows = fetch_rows(connection, _LATEST, {**condition, "until": bound})
    if not rows and until is None:
        rows = fetch_rows(connection, _LAST, condition)
    return stored_chunks(rows)


def beginnings(connection: Connection, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
    rows = list(fetch_in_blocks(connection, _SOME, documents))
    by_document = {stored.document.id: stored for stored in stored_chunks(rows)}
    return [by_document[document] for document in documents if document in by_document]


def _positions_to_read(anchors: Sequence[int], limit: int, total: int) -> list[int]:
    """Return positions in a thread: equal parts for its beginning, its end, and around each anchor."""
    share = limit // (2 + len(anchors))
    last = max(share, 1)
    positions = {*range(limit - last - share * len(anchors)), *range(total - last, total), *anchors}
    for anchor in anchors:
        first = max(anchor - share // 2, 0)
        positions.update(range(first, min(first + share, total)))
    return sorted(position for position in positions if position < total)


def _require_positive(limit: int) -> None:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
