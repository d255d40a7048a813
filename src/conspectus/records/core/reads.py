"""Reads of documents and chunks, for users, retrieval and indexes."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    null,
    or_,
    select,
    true,
    tuple_,
)

from conspectus.errors import InvalidInput, NotFound, RecordsDamaged
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Document, EmbeddingSpace, Status, StoredChunk, StoredThread
from conspectus.records.core.collections import state
from conspectus.records.core.dialects import listed, plain_rows
from conspectus.records.core.filters import compile_filter
from conspectus.records.core.rows import (
    CHUNK_COLUMNS,
    CHUNK_WIDTH,
    DOCUMENT_COLUMNS,
    IDS,
    MIN_INT64,
    blocks,
    from_cursor,
    rows_in,
    to_chunk,
    to_cursor,
    to_document,
    to_indexed,
)
from conspectus.records.tables.core import DATED, THREADED, chunks, documents, vectors
from conspectus.text.hashing import content_hash
from conspectus.text.times import to_microseconds

PAGE = 500
SCAN = 2_000

_OTHER = documents.alias("other")


# For a comparison of two columns, SQLite uses only the first field of the index; with an expression, it uses
# all.
_POSITION = tuple_(documents.c.order_sequence + 0, documents.c.order_start + 0, documents.c.number + 0)
_OTHER_POSITION = tuple_(_OTHER.c.order_sequence, _OTHER.c.order_start, _OTHER.c.number)


def _indexed(*, with_vectors: bool) -> Select[*tuple[Any, ...]]:
    """Return a query of chunks of a collection with their vectors of a model."""
    joined = documents.join(chunks, chunks.c.document == documents.c.number)
    chosen = select(*CHUNK_COLUMNS, null()).select_from(joined)
    if with_vectors:
        here = and_(vectors.c.chunk == chunks.c.id, vectors.c.space == bindparam("space"))
        chosen = select(*CHUNK_COLUMNS, vectors.c.vector).select_from(joined.outerjoin(vectors, here))
    return chosen.where(documents.c.collection == bindparam("of"))


# PostgreSQL would join all documents of the collection to a few chunks; subqueries are looked up for each
# chunk.
_COLLECTION = select(documents.c.collection).where(documents.c.number == chunks.c.document)
_OF = _COLLECTION.scalar_subquery() == bindparam("of")
_VECTOR = (
    select(vectors.c.vector)
    .where(vectors.c.chunk == chunks.c.id, vectors.c.space == bindparam("space"))
    .scalar_subquery()
)
_BETWEEN = {
    told: select(*CHUNK_COLUMNS, _VECTOR if told else null())
    .where(chunks.c.id >= bindparam("first"), chunks.c.id <= bindparam("last"), _OF)
    .order_by(chunks.c.id)
    for told in (False, True)
}
_SCANS = {
    told: _indexed(with_vectors=told)
    .where(documents.c.last_chunk > bindparam("after"), chunks.c.id > bindparam("after"))
    .order_by(documents.c.last_chunk, chunks.c.position)
    .limit(SCAN)
    for told in (False, True)
}


def _in_thread(
    condition: ColumnElement[Any], beyond: ColumnElement[bool], *, back: bool
) -> ScalarSelect[Any]:
    """Return the end of the next document of the same thread in one direction, by one index lookup."""
    place = (_OTHER.c.order_sequence, _OTHER.c.order_start, _OTHER.c.number)
    chosen = select(condition).where(
        _OTHER.c.source == documents.c.source,
        _OTHER.c.thread == documents.c.thread,
        _OTHER.c.chunks > literal_column("0"),
        beyond,
    )
    ordered = chosen.order_by(*(column.desc() if back else column for column in place))
    return ordered.limit(1).correlate(documents).scalar_subquery()


_BEFORE = _in_thread(_OTHER.c.last_chunk, _OTHER_POSITION < _POSITION, back=True)
_AFTER = _in_thread(_OTHER.c.last_chunk - _OTHER.c.chunks + 1, _OTHER_POSITION > _POSITION, back=False)
_THREADED = documents.c.thread.is_not(None)

_BY_ID = select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(IDS))
_WITH_ID = select(*DOCUMENT_COLUMNS).where(documents.c.id == bindparam("wanted"))
_BY_NUMBER = select(*DOCUMENT_COLUMNS).where(documents.c.number.in_(IDS))
WITH_NEIGHBOURS = select(
    *CHUNK_COLUMNS,
    *DOCUMENT_COLUMNS,
    documents.c.last_chunk,
    case((and_(_THREADED, chunks.c.position == 0), _BEFORE), else_=None),
    case((and_(_THREADED, chunks.c.id == documents.c.last_chunk), _AFTER), else_=None),
).join(documents, documents.c.number == chunks.c.document)
_BY_CHUNK = WITH_NEIGHBOURS.where(chunks.c.id.in_(IDS))
_BY_LISTED_CHUNK = WITH_NEIGHBOURS.where(chunks.c.id.in_(select(listed("ids").c.value)))
_OF_DOCUMENT = WITH_NEIGHBOURS.where(documents.c.id == bindparam("wanted")).order_by(chunks.c.position)
_TEXTS = (
    select(documents.c.id, documents.c.content_hash, chunks.c.start, chunks.c.end, chunks.c.text)
    .outerjoin(chunks, documents.c.number == chunks.c.document)
    .where(documents.c.id.in_(IDS))
    .order_by(documents.c.number, chunks.c.position)
)


def documents_by_id(connection: Connection, ids: Sequence[DocumentId]) -> dict[DocumentId, Document]:
    """Return the documents that exist."""
    if len(ids) == 1:
        return {row[1]: to_document(row) for row in plain_rows(connection, _WITH_ID, {"wanted": ids[0]})}
    return {row[1]: to_document(row) for row in rows_in(connection, _BY_ID, ids)}


def documents_by_number(connection: Connection, numbers: Iterable[int]) -> dict[int, Document]:
    """Return documents by the number that chunks refer to."""
    return {row[0]: to_document(row) for row in rows_in(connection, _BY_NUMBER, numbers)}


def list_documents(
    connection: Connection,
    collection: CollectionId,
    where: Filter,
    *,
    after: str | None = None,
    limit: int = 100,
    status: Status | None = None,
) -> tuple[list[Document], str | None]:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    state(connection, collection)
    found: list[tuple[Any, Document]] = []
    for row, document in _matching(
        connection, collection, where=where, after=after, page=min(limit + 1, PAGE), status=status
    ):
        if len(found) == limit:
            return [each for _, each in found], to_cursor(found[-1][0].recorded, found[-1][0].id)
        found.append((row, document))
    return [each for _, each in found], None


def list_by_key(
    connection: Connection, source: SourceId, *, start: str = "", end: str | None = None, limit: int
) -> list[Document]:
    chosen = select(*DOCUMENT_COLUMNS).where(documents.c.source == source, documents.c.key >= start)
    if end is not None:
        chosen = chosen.where(documents.c.key < end)
    return [to_document(row) for row in connection.execute(chosen.order_by(documents.c.key).limit(limit))]


def count_documents(
    connection: Connection, collection: CollectionId, where: Filter, *, status: Status | None = None
) -> int:
    state(connection, collection)
    condition = compile_filter(where)
    if not condition.exact:
        found = _matching(connection, collection, where=where, after=None, page=PAGE, status=status)
        return sum(1 for _ in found)
    counted = select(func.count()).select_from(documents)
    chosen = counted.where(documents.c.collection == collection, condition.sql, _of_status(status))
    total: int = connection.execute(chosen).scalar_one()
    return total


def text_of(connection: Connection, document: DocumentId) -> str:
    found = texts_of(connection, [document])
    if document not in found:
        raise NotFound("document", document)
    return found[document]


def texts_of(connection: Connection, documents: Sequence[DocumentId]) -> dict[DocumentId, str]:
    """Return the full texts of documents that exist. Raises RecordsDamaged for a wrong checksum."""
    rows = rows_in(connection, _TEXTS, documents)
    return {
        DocumentId(name): _joined(name, written, pieces)
        for (name, written), pieces in groupby(rows, key=itemgetter(0, 1))
    }


def with_texts(connection: Connection, found: Sequence[Document]) -> list[tuple[Document, str]]:
    """Return documents with their full texts."""
    texts = texts_of(connection, [each.id for each in found])
    return [(each, texts.get(each.id, "")) for each in found]


def _joined(document: str, written: str, rows: Iterable[Any]) -> str:
    """Join the chunks of a document. Chunks overlap, so each adds only its part beyond the previous one."""
    pieces: list[str] = []
    covered = 0
    for *_, start, end, text in rows:
        if text is not None:
            pieces.append(text[covered - start :])
            covered = end
    joined = "".join(pieces)
    # Texts without visible characters have no chunks.
    if pieces and content_hash(joined) != written:
        raise RecordsDamaged(f"document {document}: its text does not match its checksum")
    return joined


def document_chunks(connection: Connection, document: DocumentId) -> list[StoredChunk]:
    """Return a document's chunks by position. Raises NotFound."""
    rows = connection.execute(_OF_DOCUMENT, {"wanted": document}).all()
    if not rows and not documents_by_id(connection, [document]):
        raise NotFound("document", document)
    return stored_chunks(rows)


def chunks_by_id(connection: Connection, ids: Sequence[int]) -> dict[int, StoredChunk]:
    found: dict[int, StoredChunk] = {}
    for block in blocks(ids):
        rows: Sequence[Sequence[Any]]
        if connection.dialect.name == "sqlite":
            if max(block) > LARGEST:
                raise InvalidInput("number", "does not fit into 64 bits")
            rows = plain_rows(connection, _BY_LISTED_CHUNK, {"ids": json.dumps(block)})
        else:
            rows = connection.execute(_BY_CHUNK, {"ids": block}).all()
        found.update((stored.chunk.id, stored) for stored in stored_chunks(rows))
    return found


def chunks_between(
    connection: Connection, collection: CollectionId, *, space: EmbeddingSpace | None, first: int, last: int
) -> list[IndexedChunk]:
    """Return a collection's chunks with first ≤ id ≤ last, by id, with their vectors of the model."""
    parameters = {"of": collection, "first": first, "last": last}
    return _indexed_chunks(connection, _BETWEEN[space is not None], space, parameters)


def scan(
    connection: Connection, collection: CollectionId, *, space: EmbeddingSpace | None, after: int
) -> list[IndexedChunk]:
    """Return the next batch of a collection's chunks by id, read in the order of its documents."""
    return _indexed_chunks(connection, _SCANS[space is not None], space, {"of": collection, "after": after})


def _of_status(status: Status | None) -> ColumnElement[bool]:
    if status == "unindexable":
        return documents.c.unindexable.is_not(None)
    return true() if status is None else and_(documents.c.status == status, documents.c.unindexable.is_(None))


def _matching(
    connection: Connection,
    collection: CollectionId,
    *,
    where: Filter,
    after: str | None,
    page: int,
    status: Status | None,
) -> Iterator[tuple[Sequence[Any], Document]]:
    """Yield every matching document in recording order, reading `page` rows at first and then more."""
    condition = compile_filter(where)
    place = None if after is None else tuple(from_cursor(after, (int, str)))
    chosen = select(*DOCUMENT_COLUMNS).where(
        documents.c.collection == collection, condition.sql, _of_status(status)
    )
    key = (documents.c.recorded, documents.c.id)
    while True:
        following = chosen if place is None else chosen.where(tuple_(*key) > place)
        rows = connection.execute(following.order_by(*key).limit(page)).all()
        for row in rows:
            document = to_document(row)
            if condition.exact or matches(where, document_row(document)):
                yield row, document
        if len(rows) < page:
            return
        page = PAGE
        place = (rows[-1].recorded, rows[-1].id)


def stored_chunks(rows: Sequence[Sequence[Any]]) -> list[StoredChunk]:
    """Return rows of CHUNK_COLUMNS, DOCUMENT_COLUMNS, the document's last chunk and thread neighbors.

    Raises RecordsDamaged for a text with a wrong checksum.
    """
    owners: dict[int, Document] = {}
    stored = []
    for row in rows:
        document = owners.get(row[1])
        if document is None:
            document = owners[row[1]] = to_document(row[CHUNK_WIDTH:-3])
        last, before, following = row[-3:]
        chunk = to_chunk(row, document.id)
        if content_hash(chunk.text) != chunk.content_hash:
            raise RecordsDamaged(f"chunk {chunk.id}: its text does not match its checksum")
        previous = ChunkId(chunk.id - 1) if chunk.position > 0 else before
        successor = ChunkId(chunk.id + 1) if chunk.id < last else following
        stored.append(StoredChunk(chunk, document, previous, successor))
    return stored


def _indexed_chunks(
    connection: Connection,
    chosen: Select[*tuple[Any, ...]],
    space: EmbeddingSpace | None,
    parameters: Mapping[str, Any],
) -> list[IndexedChunk]:
    rows = connection.execute(
        chosen, parameters if space is None else {**parameters, "space": space.name}
    ).all()
    return to_indexed(rows, documents_by_number(connection, {row[1] for row in rows}))


LARGEST = 2**63 - 1

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
    begun = connection.execute(_FROM_THE_FIRST, {**condition, "maximum": limit + 1}).all()
    if len(begun) <= limit:
        rows = stored_chunks(_linked(begun))
        return StoredThread(tuple(rows), {row.document.id: at for at, row in enumerate(rows)}, len(rows))
    total: int = connection.execute(_SIZE, condition).scalar_one()
    anchors = connection.execute(_PLACES, {**condition, "ids": list(around)}).scalars().all()
    chosen = _worth_reading(anchors, limit, total)
    found = connection.execute(_AT_PLACES, {**condition, "ids": chosen}).all()
    places: dict[DocumentId, int] = {DocumentId(document): place for document, place in found}
    rows = stored_chunks(connection.execute(_SOME, {"ids": list(places)}).all())
    return StoredThread(tuple(sorted(rows, key=lambda row: places[row.document.id])), places, total)


def _linked(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
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
            return stored_chunks(connection.execute(_EARLIER_BY_SEQUENCE, condition).all())
        condition["until"] = to_microseconds(before.occurred.start)
        return stored_chunks(connection.execute(_EARLIER, condition).all())
    bound = LARGEST if until is None else to_microseconds(until)
    found = connection.execute(_LATEST, {**condition, "until": bound}).all()
    if not found and until is None:
        found = connection.execute(_LAST, condition).all()
    return stored_chunks(found)


def beginnings(connection: Connection, documents: Sequence[DocumentId]) -> Sequence[StoredChunk]:
    rows = list(rows_in(connection, _SOME, documents))
    found = {each.document.id: each for each in stored_chunks(rows)}
    return [found[each] for each in documents if each in found]


def _worth_reading(anchors: Sequence[int], limit: int, total: int) -> list[int]:
    """Return positions in a thread: equal parts for its beginning, its end, and around each anchor."""
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
