"""Names of pages, and what documents state about others: written with the documents, and read for them."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select

from conspectus.errors import NotFound
from conspectus.model.ids import CollectionId, DocumentId
from conspectus.model.records import PreparedDocument
from conspectus.model.relations import RelationRows, Statement, StoredStatement
from conspectus.records.core.statements import (
    IDS,
    execute_in_blocks,
    fetch_in_blocks,
    fetch_rows,
    insert_rows,
)
from conspectus.records.tables.core import chunks, document_names, document_statements, documents
from conspectus.text.document_keys import names_of
from conspectus.text.relation_rules import MAX_HEAD_CHARACTERS, header_names, statements_of

PAGES_PER_BATCH: Final = 500

_BY_PERSON = document_statements.c.basis == "person"
_STATED = (
    select(
        documents.c.id,
        document_statements.c.kind,
        document_statements.c.target,
        document_statements.c.is_inverse,
        document_statements.c.basis,
        document_statements.c.editable,
    )
    .join(documents, documents.c.number == document_statements.c.document)
    .where(document_statements.c.collection == bindparam("collection"))
    .order_by(documents.c.number)
)
_BY_DOCUMENTS = _STATED.where(documents.c.id.in_(IDS))
_ABOUT_NAMES = _STATED.where(document_statements.c.target.in_(IDS))
_NAMES = (
    select(document_names.c.name)
    .join(documents, documents.c.number == document_names.c.document)
    .where(documents.c.id.in_(IDS))
)
_NAMED = (
    select(document_names.c.name, documents.c.id)
    .join(documents, documents.c.number == document_names.c.document)
    .where(document_names.c.collection == bindparam("collection"), document_names.c.name.in_(IDS))
    .order_by(documents.c.number)
)
_ANY_STATED = (
    select(document_statements.c.document)
    .where(document_statements.c.collection == bindparam("collection"))
    .limit(1)
)
_STATED_BY_TEXT = select(
    document_statements.c.document,
    document_statements.c.kind,
    document_statements.c.target,
    document_statements.c.is_inverse,
    document_statements.c.basis,
    document_statements.c.editable,
).where(document_statements.c.document.in_(IDS), ~_BY_PERSON)
_DELETE_NAMES = delete(document_names).where(document_names.c.document.in_(IDS))
_DELETE_STATED = delete(document_statements).where(document_statements.c.document.in_(IDS), ~_BY_PERSON)
_NUMBER = select(documents.c.number, documents.c.collection).where(documents.c.id == bindparam("id"))
_PAGES = (
    select(
        documents.c.number, documents.c.collection, documents.c.title, documents.c.key, documents.c.metadata
    )
    .where(documents.c.kind == "page", documents.c.number > bindparam("after"))
    .order_by(documents.c.number)
    .limit(PAGES_PER_BATCH)
)
_BEGINNINGS = (
    select(chunks.c.document, chunks.c.text)
    .where(chunks.c.document.in_(IDS), chunks.c.start < MAX_HEAD_CHARACTERS)
    .order_by(chunks.c.document, chunks.c.position)
)


def relation_rows(
    number: int,
    prepared: PreparedDocument,
    editable_by_key: Mapping[tuple[Any, ...], str] = MappingProxyType({}),
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of a document's names and statements.

    A statement that it made before keeps the sources that its writer could edit, as in `editable_by_key`.
    """
    collection = prepared.document.collection
    names = [{"document": number, "name": name, "collection": collection} for name in prepared.names]
    statements = []
    for stated in prepared.statements:
        key = {
            "document": number,
            "kind": stated.kind,
            "target": stated.target,
            "is_inverse": int(stated.is_inverse),
            "basis": stated.basis,
        }
        editable = editable_by_key.get(tuple(key.values()), json.dumps(sorted(prepared.editable)))
        statements.append({**key, "collection": collection, "editable": editable})
    return names, statements


def replace_relations(connection: Connection, written: Sequence[tuple[int, PreparedDocument]]) -> None:
    """Replace the names and statements of stored documents, without relations that a person set."""
    if not written:
        return
    numbers = [number for number, _ in written]
    editable_by_key = {
        tuple(key): editable for *key, editable in fetch_in_blocks(connection, _STATED_BY_TEXT, numbers)
    }
    execute_in_blocks(connection, _DELETE_NAMES, numbers)
    execute_in_blocks(connection, _DELETE_STATED, numbers)
    insert_relations(connection, written, editable_by_key)


def insert_relations(
    connection: Connection,
    written: Iterable[tuple[int, PreparedDocument]],
    editable_by_key: Mapping[tuple[Any, ...], str] = MappingProxyType({}),
) -> None:
    """Insert the names and statements of documents that have none."""
    names: list[dict[str, Any]] = []
    statements: list[dict[str, Any]] = []
    for number, prepared in written:
        name_rows, statement_rows = relation_rows(number, prepared, editable_by_key)
        names += name_rows
        statements += statement_rows
    insert_rows(connection, document_names, names)
    insert_rows(connection, document_statements, statements)


def has_statements(connection: Connection, collection: CollectionId) -> bool:
    """Return whether any document of a collection states anything about another."""
    return bool(fetch_rows(connection, _ANY_STATED, {"collection": collection}))


def read_relations(
    connection: Connection, collection: CollectionId, ids: Sequence[DocumentId] | None = None
) -> RelationRows:
    """Return the statements by and about documents, or all of a collection, with the documents they name."""
    within = {"collection": collection}
    if ids is None:
        rows = connection.execute(_STATED, within).all()
    else:
        names = [row.name for row in fetch_in_blocks(connection, _NAMES, ids)]
        about = fetch_in_blocks(connection, _ABOUT_NAMES, [*names, *ids], **within)
        rows = [*fetch_in_blocks(connection, _BY_DOCUMENTS, ids, **within), *about]
    statements = tuple(dict.fromkeys(map(_to_statement, rows)))
    targets = sorted({stored.statement.target for stored in statements if stored.statement.target})
    named: dict[str, list[DocumentId]] = {}
    for name, document in fetch_in_blocks(connection, _NAMED, targets, **within):
        named.setdefault(name, []).append(document)
    return RelationRows(statements, {name: tuple(documents) for name, documents in named.items()})


def set_relation(
    connection: Connection, document: DocumentId, statement: Statement, editable: Sequence[str]
) -> None:
    """Store a relation that a person sets, in place of the same one. Raises NotFound."""
    number, collection = _number_of(connection, document)
    row = _to_row(number, statement)
    connection.execute(delete(document_statements).where(*_equal(row)))
    insert_rows(
        connection,
        document_statements,
        [{**row, "collection": collection, "editable": json.dumps(sorted(editable))}],
    )


def delete_relation(connection: Connection, document: DocumentId, statement: Statement) -> int:
    """Delete a relation that a person set; return how many there were. Raises NotFound."""
    number, _ = _number_of(connection, document)
    row = _to_row(number, statement)
    return connection.execute(delete(document_statements).where(*_equal(row))).rowcount


def _to_row(number: int, statement: Statement) -> dict[str, Any]:
    """Return what tells a statement of a document from its others."""
    return {
        "document": number,
        "kind": statement.kind,
        "target": statement.target,
        "is_inverse": int(statement.is_inverse),
        "basis": statement.basis,
    }


def fill_stored_pages(connection: Connection) -> None:
    """Read the names and statements of all stored pages, which an older program wrote."""
    last = 0
    while pages := connection.execute(_PAGES, {"after": last}).all():
        beginnings: dict[int, str] = {}
        for number, text in fetch_in_blocks(connection, _BEGINNINGS, [page.number for page in pages]):
            beginnings[number] = beginnings.get(number, "") + text
        names: list[dict[str, Any]] = []
        statements: list[dict[str, Any]] = []
        for page in pages:
            text = beginnings.get(page.number, "")[:MAX_HEAD_CHARACTERS]
            own_names = (*names_of(page.title, page.key), *header_names(text))
            stated = statements_of(page.title, page.key, text, json.loads(page.metadata))
            names += [
                {"document": page.number, "name": name, "collection": page.collection}
                for name in dict.fromkeys(own_names)
            ]
            statements += [
                {
                    "document": page.number,
                    "kind": statement.kind,
                    "target": statement.target,
                    "is_inverse": int(statement.is_inverse),
                    "basis": statement.basis,
                    "collection": page.collection,
                    "editable": "[]",
                }
                for statement in stated
            ]
        insert_rows(connection, document_names, names)
        insert_rows(connection, document_statements, statements)
        last = pages[-1].number


def _number_of(connection: Connection, document: DocumentId) -> tuple[int, str]:
    rows = fetch_rows(connection, _NUMBER, {"id": document})
    if not rows:
        raise NotFound("document", document)
    number, collection = rows[0]
    return number, collection


def _equal(row: Mapping[str, Any]) -> Iterator[ColumnElement[bool]]:
    return (document_statements.c[name] == member for name, member in row.items())


def _to_statement(row: Sequence[Any]) -> StoredStatement:
    document, kind, target, is_inverse, basis, editable = row
    statement = Statement(kind, target, bool(is_inverse), basis)
    return StoredStatement(document, statement, frozenset(json.loads(editable)))
