"""Reading a thread, and the newest of a source."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from conspectus.errors import InvalidInput
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.records import StoredChunk, StoredThread
from conspectus.records.core.reads import WITH_NEIGHBOURS, stored_chunks
from conspectus.records.core.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, blocks
from conspectus.records.tables.core import DATED, THREADED, chunks, documents
from conspectus.text.times import to_microseconds

END_OF_TIME = 2**63 - 1

_ORDER = (documents.c.order_sequence, documents.c.order_start, documents.c.id)
_HERE = documents.c.source == bindparam("source")
_IN_THREAD = (_HERE, documents.c.thread == bindparam("thread"), THREADED)
_FIRST = chunks.c.id == documents.c.last_chunk - documents.c.chunks + 1
_FIRST_CHUNKS = WITH_NEIGHBOURS.where(_FIRST)

_SIZE = select(func.count()).select_from(documents).where(*_IN_THREAD)
_FROM_THE_FIRST = (
    select(*CHUNK_COLUMNS, *DOCUMENT_COLUMNS, documents.c.last_chunk)
    .join(documents, documents.c.number == chunks.c.document)
    .where(_FIRST, *_IN_THREAD)
    .order_by(*_ORDER)
    .limit(bindparam("most"))
)
_SOME = _FIRST_CHUNKS.where(documents.c.id.in_(bindparam("ids", expanding=True)))
_PLACE = (func.row_number().over(order_by=_ORDER) - 1).label("place")
_NUMBERED = select(documents.c.id, _PLACE).where(*_IN_THREAD).subquery()
_PLACES = select(_NUMBERED.c.place).where(_NUMBERED.c.id.in_(bindparam("around", expanding=True)))
_AT_PLACES = select(_NUMBERED.c.id, _NUMBERED.c.place).where(
    _NUMBERED.c.place.in_(bindparam("places", expanding=True))
)
_LATEST = (
    _FIRST_CHUNKS.where(_HERE, DATED, documents.c.order_start <= bindparam("until"))
    .order_by(documents.c.order_start.desc(), documents.c.id.desc())
    .limit(bindparam("most"))
)
_LAST = (
    _FIRST_CHUNKS.where(_HERE)
    .order_by(documents.c.order_sequence.desc(), documents.c.id.desc())
    .limit(bindparam("most"))
)


def read_thread(
    connection: Connection, source: SourceId, thread: str, *, limit: int, around: Sequence[DocumentId]
) -> StoredThread:
    """A thread, or of a long one both ends and what stands around some of its documents."""
    _require_positive(limit)
    wanted = {"source": source, "thread": thread}
    begun = connection.execute(_FROM_THE_FIRST, {**wanted, "most": limit + 1}).all()
    if len(begun) <= limit:
        rows = stored_chunks(_linked(begun))
        return StoredThread(tuple(rows), {row.document.id: at for at, row in enumerate(rows)}, len(rows))
    total: int = connection.execute(_SIZE, wanted).scalar_one()
    anchors = connection.execute(_PLACES, {**wanted, "around": list(around)}).scalars().all()
    chosen = _worth_reading(anchors, limit, total)
    found = connection.execute(_AT_PLACES, {**wanted, "places": chosen}).all()
    places: dict[DocumentId, int] = {DocumentId(document): place for document, place in found}
    rows = stored_chunks(connection.execute(_SOME, {"ids": list(places)}).all())
    return StoredThread(tuple(sorted(rows, key=lambda row: places[row.document.id])), places, total)


def _linked(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of a whole thread with their neighbours in it, which need not be looked up then."""
    before = [None, *(row[-1] for row in rows)]
    after = [*(row[0] for row in rows[1:]), None]
    return [(*row, *links) for row, *links in zip(rows, before, after, strict=False)]


def latest(
    connection: Connection, source: SourceId, *, limit: int, until: datetime | None
) -> Sequence[StoredChunk]:
    """The first chunk of each of the newest documents of a source, newest first."""
    _require_positive(limit)
    wanted = {"source": source, "most": limit}
    bound = END_OF_TIME if until is None else to_microseconds(until)
    found = connection.execute(_LATEST, {**wanted, "until": bound}).all()
    if not found and until is None:
        found = connection.execute(_LAST, wanted).all()
    return stored_chunks(found)


def beginnings(connection: Connection, ids: Sequence[DocumentId]) -> Sequence[StoredChunk]:
    """The first chunk of each of those documents that exist and have text, in the order asked."""
    found = {
        each.document.id: each
        for block in blocks(ids)
        for each in stored_chunks(connection.execute(_SOME, {"ids": block}).all())
    }
    return [found[each] for each in ids if each in found]


def _worth_reading(anchors: Sequence[int], limit: int, total: int) -> list[int]:
    """Places in a thread: equal shares for its beginning, its end, and around each anchor."""
    share = limit // (2 + len(anchors))
    last = max(share, 1)
    chosen = {*range(limit - last - share * len(anchors)), *range(total - last, total), *anchors}
    for anchor in anchors:
        first = max(anchor - share // 2, 0)
        chosen.update(range(first, min(first + share, total)))
    return sorted(place for place in chosen if place < total)


def _require_positive(limit: int) -> None:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
