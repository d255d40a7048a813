"""Earlier versions of memories."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from conspectus.model.ids import CollectionId, DocumentId
from conspectus.model.memory import KNOWN_FROM
from conspectus.model.records import Document
from conspectus.records.core.reads import texts_of
from conspectus.records.core.rows import DOCUMENT_COLUMNS, to_document
from conspectus.records.core.statements import IDS, fetch_in_blocks, fetch_rows
from conspectus.records.tables.core import REMEMBERED, VERSIONED, documents

_VERSION = select(documents.c.number).where(documents.c.collection == bindparam("of"), VERSIONED).limit(1)


def histories(
    connection: Connection, memories: Sequence[DocumentId]
) -> Mapping[DocumentId, Sequence[tuple[Document, str]]]:
    """Return memories with their earlier versions, oldest first, in one snapshot."""
    histories_by_memory: dict[DocumentId, list[Document]] = {}
    now = select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(IDS), REMEMBERED)
    before = select(*DOCUMENT_COLUMNS).where(documents.c.parent.in_(IDS), VERSIONED)
    versions = fetch_in_blocks(connection, before.order_by(documents.c.number), memories)
    for version in sorted(map(to_document, versions), key=_version_order):
        histories_by_memory.setdefault(DocumentId(str(version.parent)), []).append(version)
    for memory in map(to_document, fetch_in_blocks(connection, now, memories)):
        histories_by_memory.setdefault(memory.id, []).append(memory)
    texts = texts_of(
        connection, [version.id for history in histories_by_memory.values() for version in history]
    )
    return {
        memory: [(version, texts.get(version.id, "")) for version in history]
        for memory, history in histories_by_memory.items()
    }


def _version_order(version: Document) -> tuple[str, datetime]:
    """Return the time from which and, for ties, until which a version was current."""
    return str(version.metadata.get(KNOWN_FROM) or ""), version.recorded


def earlier_versions(connection: Connection, memory: DocumentId) -> list[tuple[Document, str]]:
    return list(histories(connection, [memory]).get(memory, ()))[:-1]


def has_versions(connection: Connection, collection: CollectionId) -> bool:
    return bool(fetch_rows(connection, _VERSION, {"of": collection}))
