"""Reading a thread as a whole, and the newest of a source."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, select

from conspectus.errors import InvalidInput
from conspectus.model.ids import SourceId
from conspectus.model.records import StoredChunk
from conspectus.records.reading import WITH_NEIGHBOURS, stored_chunks
from conspectus.records.tables import DATED, THREADED, chunks, documents

_PLACE = (documents.c.order_sequence, documents.c.order_start, documents.c.id, chunks.c.position)
_HERE = documents.c.source == bindparam("source")
_IN_THREAD = (_HERE, documents.c.thread == bindparam("thread"), THREADED)
_FIRST_CHUNK = documents.c.last_chunk - documents.c.chunks + 1

_SIZE = select(func.coalesce(func.sum(documents.c.chunks), 0)).where(*_IN_THREAD)
_LATEST = (
    WITH_NEIGHBOURS.where(_HERE, DATED, chunks.c.id == _FIRST_CHUNK)
    .order_by(documents.c.order_start.desc(), documents.c.id.desc())
    .limit(bindparam("most"))
)


def _end(*order: ColumnElement[Any]) -> Select[*tuple[Any, ...]]:
    return WITH_NEIGHBOURS.where(*_IN_THREAD).order_by(*order).limit(bindparam("most"))


_FROM_THE_FIRST = _end(*_PLACE)
_FROM_THE_LAST = _end(*(column.desc() for column in _PLACE))


def thread_chunks(
    connection: Connection, source: SourceId, thread: str, *, limit: int
) -> tuple[list[StoredChunk], int]:
    """The chunks of a thread in its order, of a long one both ends, and how many there are in all."""
    _require_positive(limit)
    wanted = {"source": source, "thread": thread}
    total: int = connection.execute(_SIZE, wanted).scalar_one()
    first = limit if total <= limit else limit - limit // 2
    rows: list[Row[*tuple[Any, ...]]] = []
    rows += connection.execute(_FROM_THE_FIRST, wanted | {"most": first}).all()
    if total > limit:
        rows += reversed(connection.execute(_FROM_THE_LAST, wanted | {"most": limit // 2}).all())
    return stored_chunks(rows), total


def latest(connection: Connection, source: SourceId, *, limit: int) -> Sequence[StoredChunk]:
    """The first chunk of each of the newest documents of a source, newest first."""
    _require_positive(limit)
    return stored_chunks(connection.execute(_LATEST, {"source": source, "most": limit}).all())


def _require_positive(limit: int) -> None:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
