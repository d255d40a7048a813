"""Reads of documents and their texts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    func,
    select,
    true,
    tuple_,
)

from conspectus.errors import InvalidInput, NotFound, RecordsDamaged
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, Status
from conspectus.records.core.collections import state
from conspectus.records.core.filters import compile_filter
from conspectus.records.core.pages import from_cursor, to_cursor
from conspectus.records.core.rows import (
    DOCUMENT_COLUMNS,
    to_document,
)
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows
from conspectus.records.tables.core import chunks, documents
from conspectus.text.hashing import content_hash

PAGE_ROWS = 500

_BY_ID = select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(IDS))
_WITH_ID = select(*DOCUMENT_COLUMNS).where(documents.c.id == bindparam("id"))
_BY_NUMBER = select(*DOCUMENT_COLUMNS).where(documents.c.number.in_(IDS))
_TEXTS = (
    select(documents.c.id, documents.c.content_hash, chunks.c.start, chunks.c.end, chunks.c.text)
    .outerjoin(chunks, documents.c.number == chunks.c.document)
    .where(documents.c.id.in_(IDS))
    .order_by(documents.c.number, chunks.c.position)
)


def documents_by_id(connection: Connection, ids: Sequence[DocumentId]) -> dict[DocumentId, Document]:
    """Return the documents that exist."""
    if len(ids) == 1:
        rows: Iterable[Sequence[Any]] = fetch_rows(connection, _WITH_ID, {"id": ids[0]})
    else:
        rows = fetch_in_blocks(connection, _BY_ID, ids)
    return {document.id: document for document in map(to_document, rows)}


def documents_by_number(connection: Connection, numbers: Iterable[int]) -> dict[int, Document]:
    """Return documents by the number that chunks refer to."""
    rows = fetch_in_blocks(connection, _BY_NUMBER, numbers)
    return {document.number: document for document in map(to_document, rows)}


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
    matching_rows = _read_matching(
        connection, collection, where=where, after=after, page=min(limit + 1, PAGE_ROWS), status=status
    )
    page: list[Document] = []
    last_row: Any = None
    for row, document in matching_rows:
        if len(page) == limit:
            return page, to_cursor(last_row.recorded, last_row.id)
        page.append(document)
        last_row = row
    return page, None


def list_by_key(
    connection: Connection, source: SourceId, *, start: str = "", end: str | None = None, limit: int
) -> list[Document]:
    query = select(*DOCUMENT_COLUMNS).where(documents.c.source == source, documents.c.key >= start)
    if end is not None:
        query = query.where(documents.c.key < end)
    return [to_document(row) for row in connection.execute(query.order_by(documents.c.key).limit(limit))]


def count_documents(
    connection: Connection, collection: CollectionId, where: Filter, *, status: Status | None = None
) -> int:
    state(connection, collection)
    condition = compile_filter(where)
    if not condition.exact:
        matching_rows = _read_matching(
            connection, collection, where=where, after=None, page=PAGE_ROWS, status=status
        )
        return sum(1 for _ in matching_rows)
    count = select(func.count()).select_from(documents)
    query = count.where(documents.c.collection == collection, condition.sql, _has_status(status))
    total: int = connection.execute(query).scalar_one()
    return total


def text_of(connection: Connection, document: DocumentId) -> str:
    texts = texts_of(connection, [document])
    if document not in texts:
        raise NotFound("document", document)
    return texts[document]


def texts_of(connection: Connection, documents: Sequence[DocumentId]) -> dict[DocumentId, str]:
    """Return the full texts of documents that exist. Raises RecordsDamaged for a wrong checksum."""
    rows = fetch_in_blocks(connection, _TEXTS, documents)
    return {
        DocumentId(name): _join_chunks(name, stored_hash, pieces)
        for (name, stored_hash), pieces in groupby(rows, key=itemgetter(0, 1))
    }


def with_texts(connection: Connection, documents: Sequence[Document]) -> list[tuple[Document, str]]:
    """Return documents with their full texts."""
    texts = texts_of(connection, [document.id for document in documents])
    return [(document, texts.get(document.id, "")) for document in documents]


def _join_chunks(document: str, stored_hash: str, rows: Iterable[Any]) -> str:
    """Join the chunks of a document. Chunks overlap, so each adds only its part beyond the previous one."""
    pieces: list[str] = []
    covered = 0
    for *_, start, end, text in rows:
        if text is not None:
            pieces.append(text[covered - start :])
            covered = end
    joined = "".join(pieces)
    # Texts without visible characters have no chunks.
    if pieces and content_hash(joined) != stored_hash:
        raise RecordsDamaged(f"document {document}: its text does not match its checksum")
    return joined


def _has_status(status: Status | None) -> ColumnElement[bool]:
    if status == "unindexable":
        return documents.c.unindexable.is_not(None)
    if status is None:
        return true()
    return and_(documents.c.status == status, documents.c.unindexable.is_(None))


def _read_matching(
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
    position = None if after is None else tuple(from_cursor(after, (int, str)))
    query = select(*DOCUMENT_COLUMNS).where(
        documents.c.collection == collection, condition.sql, _has_status(status)
    )
    key = (documents.c.recorded, documents.c.id)
    while True:
        following = query if position is None else query.where(tuple_(*key) > position)
        rows = connection.execute(following.order_by(*key).limit(page)).all()
        for row in rows:
            document = to_document(row)
            if condition.exact or matches(where, document_row(document)):
                yield row, document
        if len(rows) < page:
            return
        page = PAGE_ROWS
        position = (rows[-1].recorded, rows[-1].id)
