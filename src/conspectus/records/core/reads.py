"""Reads of documents and their texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    not_,
    select,
    true,
)

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, NotFound, RecordsDamaged
from conspectus.model.filter import Filter, document_row, matches
from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Document, DocumentSort, Status
from conspectus.records.core.collections import state
from conspectus.records.core.filters import Condition, compile_filter
from conspectus.records.core.pages import KeysetOrder
from conspectus.records.core.rows import (
    DOCUMENT_COLUMNS,
    to_document,
)
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows
from conspectus.records.tables.core import chunks, documents
from conspectus.text.hashing import content_hash

PAGE_ROWS = 500

SORTED_LETTERS = 100
"""As many letters of a title are compared, so that a cursor stays short."""
_TITLE_OR_KEY = func.lower(
    func.substr(case((documents.c.title != "", documents.c.title), else_=documents.c.key), 1, SORTED_LETTERS)
)
"""What a document is called in a list. Databases ignore the case of ASCII letters only."""
_SORT_KEYS: Mapping[str, tuple[ColumnElement[Any], type]] = {
    "added": (documents.c.recorded, int),
    "changed": (documents.c.updated, int),
    "title": (_TITLE_OR_KEY, str),
    "size": (documents.c.characters, int),
}

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


@dataclass(frozen=True, slots=True)
class DocumentListing:
    """Which documents of a collection are listed, and in which order."""

    collection: CollectionId
    where: Filter
    status: Status | None = None
    sort: DocumentSort = "added"

    @property
    def order(self) -> KeysetOrder:
        """The order of the rows. That in which documents were added is the default."""
        key, key_type = _SORT_KEYS[self.sort.removeprefix("-")]
        mark = "" if self.sort == "added" else self.sort
        return KeysetOrder(key, documents.c.id, key_type, mark, descending=self.sort.startswith("-"))

    @property
    def condition(self) -> Condition:
        """The compiled filter."""
        return compile_filter(self.where)

    def restrict(self, query: Select[Any]) -> Select[Any]:
        """Return a query for rows that the compiled filter lets pass."""
        return query.where(
            documents.c.collection == self.collection, self.condition.sql, _has_status(self.status)
        )


def list_documents(
    connection: Connection, listing: DocumentListing, *, after: str | None, limit: int
) -> tuple[list[Document], str | None]:
    if limit < 1:
        raise InvalidInput("limit", "must be at least 1")
    state(connection, listing.collection)
    matching_rows = _read_matching(connection, listing, after=after, page=min(limit + 1, PAGE_ROWS))
    page: list[Document] = []
    last_row: Any = None
    for row, document in matching_rows:
        if len(page) == limit:
            return page, listing.order.cursor_of(last_row)
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
    listing = DocumentListing(collection, where, status)
    condition = listing.condition
    query = listing.restrict(select(func.count()).select_from(documents)).where(condition.certain)
    total: int = connection.execute(query).scalar_one()
    if condition.exact:
        return total
    uncertain = _read_matching(connection, listing, not_(condition.certain), after=None, page=PAGE_ROWS)
    return total + sum(1 for _ in uncertain)


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
    listing: DocumentListing,
    restriction: ColumnElement[bool] | None = None,
    *,
    after: str | None,
    page: int,
) -> Iterator[tuple[Any, Document]]:
    """Yield every matching document in order, reading `page` rows at first and then more."""
    condition, order = listing.condition, listing.order
    columns = select(*DOCUMENT_COLUMNS, order.labeled_key)
    # Only the order in which they were added has an index. For others, numbers are sorted in place of rows.
    query = listing.restrict(select(documents.c.number) if order.mark else columns)
    if restriction is not None:
        query = query.where(restriction)
    while True:
        page_query = order.page(query, after=after).limit(page)
        if order.mark:
            page_query = order.sort(columns.where(documents.c.number.in_(page_query.correlate(None))))
        rows = connection.execute(page_query).all()
        for row in rows:
            document = to_document(row)
            if condition.exact or matches(listing.where, document_row(document)):
                yield row, document
        if len(rows) < page:
            return
        page = PAGE_ROWS
        after = order.cursor_of(rows[-1])
