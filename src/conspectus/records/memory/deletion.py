"""Memories on their way out: all that hangs on them, counted in the transaction in which it goes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, func, select, update

from conspectus.model.ids import DocumentId, JobId, SourceId
from conspectus.model.memory import FACT, KNOWN_FROM, PINNED, MemoryReceipt
from conspectus.model.records import Document, Metadata
from conspectus.ports.memories import HomeSpan
from conspectus.records.core.dialects import as_list, kind_of
from conspectus.records.core.query_choice import given
from conspectus.records.core.reads import texts_of
from conspectus.records.core.rows import DOCUMENT_COLUMNS, blocks, to_document, to_json, to_metadata
from conspectus.records.deletion import delete_documents
from conspectus.records.graph.reads import resting_edges
from conspectus.records.tables.core import REMEMBERED, VERSIONED, chunks, documents, vectors
from conspectus.records.tables.jobs import jobs
from conspectus.records.tables.mentions import mentions
from conspectus.text.times import from_microseconds

IS_PINNED = kind_of(documents.c.metadata, PINNED).is_not_distinct_from("true")
STATES_A_FACT = kind_of(documents.c.metadata, FACT).is_not_distinct_from("object")
"""Exactly what is said of the memory itself, whatever its caller's own metadata are called."""

COUNTED: Final = ("memories", "versions", "chunks", "vectors", "edges")
_IDS = given("ids")
"""Any number of ids as one value, so that what hangs on all of them together can be asked at once."""

_CHOSEN = select(documents.c.id).where(documents.c.id.in_(_IDS), REMEMBERED)
_ROOTS = select(documents.c.id).where(documents.c.id.in_(_IDS)).cte("tree", recursive=True)
_TREE = _ROOTS.union(select(documents.c.id).join(_ROOTS, documents.c.parent == _ROOTS.c.id))
_WHOLE = documents.c.id.in_(select(_TREE.c.id))
_SIZES = select(
    func.count().filter(VERSIONED).label("versions"),
    func.coalesce(func.sum(documents.c.chunks), 0).label("chunks"),
).where(_WHOLE)
_NAMES = select(documents.c.id).where(_WHOLE)
_VECTORS = (
    select(func.count())
    .select_from(
        documents.join(chunks, chunks.c.document == documents.c.number).join(
            vectors, vectors.c.chunk == chunks.c.id
        )
    )
    .where(_WHOLE)
)


def forget(
    connection: Connection,
    memories: Sequence[DocumentId],
    *,
    pinned: bool,
    now: datetime,
    preview: bool,
    job: JobId | None,
) -> MemoryReceipt:
    """Delete memories with all that hangs on them, unless this is a preview, and say what it was."""
    receipt = _weighed(connection, memories, pinned=pinned)
    if preview:
        return replace(receipt, preview=True)
    delete_documents(connection, [DocumentId(each) for each in receipt.ids], now=now)
    if job is not None:
        _count_in(connection, job, receipt)
    return receipt


def histories(
    connection: Connection, memories: Sequence[DocumentId]
) -> Mapping[DocumentId, Sequence[tuple[Document, str]]]:
    """Memories with their versions before them, oldest first, as they are at one time."""
    found: dict[DocumentId, list[Document]] = {}
    for block in blocks(memories):
        now = select(*DOCUMENT_COLUMNS).where(documents.c.id.in_(block), REMEMBERED)
        before = select(*DOCUMENT_COLUMNS).where(documents.c.parent.in_(block), VERSIONED)
        versions = [to_document(row) for row in connection.execute(before.order_by(documents.c.number))]
        for version in sorted(versions, key=_known):
            found.setdefault(DocumentId(str(version.parent)), []).append(version)
        for row in connection.execute(now):
            memory = to_document(row)
            found.setdefault(memory.id, []).append(memory)
    texts = texts_of(connection, [each.id for history in found.values() for each in history])
    return {memory: [(each, texts.get(each.id, "")) for each in history] for memory, history in found.items()}


def spans(connection: Connection, homes: Sequence[SourceId]) -> list[HomeSpan]:
    """How many memories each source has that has any, and when the first and the last of them were said."""
    start = documents.c.occurred_start
    found = []
    for block in blocks(homes):
        counted = select(documents.c.source, func.count(), func.min(start), func.max(start))
        counted = counted.where(documents.c.source.in_(block), REMEMBERED).group_by(documents.c.source)
        for source, memories, first, last in connection.execute(counted):
            found.append(HomeSpan(SourceId(source), memories, _instant(first), _instant(last)))
    return found


def names(connection: Connection, homes: Sequence[SourceId]) -> int:
    """How many different names the memories of these sources mention, as far as they were looked for."""
    found: set[str] = set()
    joined = documents.join(chunks, chunks.c.document == documents.c.number).join(
        mentions, mentions.c.chunk == chunks.c.id
    )
    for block in blocks(homes):
        chosen = select(mentions.c.key).distinct().select_from(joined)
        found |= set(connection.execute(chosen.where(documents.c.source.in_(block), REMEMBERED)).scalars())
    return len(found)


def _known(version: Document) -> tuple[str, datetime]:
    """From when and, of the same time, until when a version was known."""
    return str(version.metadata.get(KNOWN_FROM) or ""), version.recorded


def _weighed(connection: Connection, memories: Sequence[DocumentId], *, pinned: bool) -> MemoryReceipt:
    """All that would go with those of these memories that are there, and free to go."""
    chosen = _CHOSEN if pinned else _CHOSEN.where(~IS_PINNED)
    there = set(connection.execute(chosen, {"ids": as_list(memories)}).scalars())
    going = tuple(str(each) for each in dict.fromkeys(memories) if each in there)
    asked = {"ids": as_list(going)}
    sizes = connection.execute(_SIZES, asked).one()
    return MemoryReceipt(
        memories=len(going),
        versions=sizes.versions,
        chunks=sizes.chunks,
        vectors=connection.execute(_VECTORS, asked).scalar_one(),
        edges=len(resting_edges(connection, connection.execute(_NAMES, asked).scalars().all())),
        ids=going,
    )


def _count_in(connection: Connection, job: JobId, receipt: MemoryReceipt) -> None:
    """Add to what the row of a job says is gone, so that it says no more and no less whenever it ends."""
    stored = connection.execute(select(jobs.c.result).where(jobs.c.id == job)).scalar_one_or_none()
    before: Metadata = to_metadata(stored) if stored else {}
    told: dict[str, Any] = {**before}
    for name in COUNTED:
        told[name] = int(told.get(name) or 0) + getattr(receipt, name)
    connection.execute(update(jobs).where(jobs.c.id == job).values(result=to_json(told)))


def _instant(stored: int | None) -> datetime | None:
    return None if stored is None else from_microseconds(stored)
