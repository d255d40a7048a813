"""Reads of threads, and of the newest documents of a source."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, or_, select

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import Document, StoredChunk, StoredThread
from conspectus.records.core.chunk_reads import WITH_NEIGHBORS, stored_chunks
from conspectus.records.core.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, MAX_INT64, MIN_INT64
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows, fetch_scalar
from conspectus.records.tables.core import DATED, THREADED, chunks, documents
from conspectus.text.times import to_microseconds

_THREAD_ORDER = (documents.c.order_sequence, documents.c.order_start, documents.c.number)
_FROM_SOURCE = documents.c.source == bindparam("source")
_IN_THREAD = (_FROM_SOURCE, documents.c.thread == bindparam("thread"), THREADED)
_IS_FIRST_CHUNK = chunks.c.id == documents.c.last_chunk - documents.c.chunks + 1
_FIRST_CHUNKS = WITH_NEIGHBORS.where(_IS_FIRST_CHUNK)

_SIZE = select(func.count()).select_from(documents).where(*_IN_THREAD)
_THREAD_START = (
    select(*CHUNK_COLUMNS, *DOCUMENT_COLUMNS, documents.c.last_chunk)
    .join(documents, documents.c.number == chunks.c.document)
    .where(_IS_FIRST_CHUNK, *_IN_THREAD)
    .order_by(*_THREAD_ORDER)
    .limit(bindparam("maximum"))
)
_BY_DOCUMENT = _FIRST_CHUNKS.where(documents.c.id.in_(IDS))
_POSITION = (func.row_number().over(order_by=_THREAD_ORDER) - 1).label("position")
_NUMBERED = select(documents.c.id, _POSITION).where(*_IN_THREAD).subquery()
_POSITIONS_OF = select(_NUMBERED.c.position).where(_NUMBERED.c.id.in_(IDS))
_AT_POSITIONS = select(_NUMBERED.c.id, _NUMBERED.c.position).where(_NUMBERED.c.position.in_(IDS))
_LATEST = (
    _FIRST_CHUNKS.where(_FROM_SOURCE, DATED, documents.c.order_start <= bindparam("until"))
    .order_by(documents.c.order_start.desc(), documents.c.number.desc())
    .limit(bindparam("maximum"))
)
_LATEST_UNDATED = (
    _FIRST_CHUNKS.where(_FROM_SOURCE, documents.c.occurred_start.is_(None))
    .order_by(documents.c.order_sequence.desc(), documents.c.number.desc())
    .limit(bindparam("maximum"))
)
_BEFORE_TIME = _LATEST.where(
    or_(documents.c.order_start < bindparam("until"), documents.c.number < bindparam("number"))
)
_UNDATED_BEFORE = _LATEST_UNDATED.where(
    documents.c.order_sequence <= bindparam("sequence"),
    or_(documents.c.order_sequence < bindparam("sequence"), documents.c.number < bindparam("number")),
)


def read_thread(
    connection: Connection, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId] = ()
) -> StoredThread:
    """Return a thread; of a long one both ends and the surroundings of some of its documents."""
    _require_positive(limit)
    condition = {"source": source, "thread": thread}
    start_rows = fetch_rows(connection, _THREAD_START, {**condition, "maximum": limit + 1})
    if len(start_rows) <= limit:
        thread_chunks = stored_chunks(_with_neighbors(start_rows))
        positions = {stored.document.id: position for position, stored in enumerate(thread_chunks)}
        return StoredThread(tuple(thread_chunks), positions, len(thread_chunks))
    total: int = fetch_scalar(connection, _SIZE, condition)
    anchors = connection.execute(_POSITIONS_OF, {**condition, "ids": list(around)}).scalars().all()
    selection = _positions_to_read(anchors, limit, total)
    position_rows = connection.execute(_AT_POSITIONS, {**condition, "ids": selection}).all()
    positions = {DocumentId(document): position for document, position in position_rows}
    thread_chunks = stored_chunks(connection.execute(_BY_DOCUMENT, {"ids": list(positions)}).all())
    thread_chunks.sort(key=lambda stored: positions[stored.document.id])
    return StoredThread(tuple(thread_chunks), positions, total)


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
    if before is not None and before.occurred is None:
        condition |= {"number": before.number, "sequence": _order_sequence(before)}
        return stored_chunks(fetch_rows(connection, _UNDATED_BEFORE, condition))
    if before is not None and before.occurred is not None:
        condition |= {"number": before.number, "until": to_microseconds(before.occurred.start)}
        rows = fetch_rows(connection, _BEFORE_TIME, condition)
    else:
        bound = MAX_INT64 if until is None else to_microseconds(until)
        rows = fetch_rows(connection, _LATEST, {**condition, "until": bound})
    if until is None and len(rows) < limit:
        rest = {"source": source, "maximum": limit - len(rows)}
        rows = [*rows, *fetch_rows(connection, _LATEST_UNDATED, rest)]
    return stored_chunks(rows)


def beginnings(connection: Connection, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
    rows = list(fetch_in_blocks(connection, _BY_DOCUMENT, documents))
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


def _order_sequence(document: Document) -> int:
    """Return the sequence by which a document is ordered."""
    return MIN_INT64 if document.sequence is None else document.sequence


def _require_positive(limit: int) -> None:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
