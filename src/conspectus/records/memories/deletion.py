"""The deletion of memories with everything that depends on them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, func, or_, select, update

from conspectus.model.ids import DocumentId, JobId
from conspectus.model.memory import MemoryReceipt
from conspectus.model.records import Metadata
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.rows import to_json, to_metadata
from conspectus.records.core.statements import fetch_rows, fetch_scalar
from conspectus.records.deletion import delete_documents
from conspectus.records.graph.reads import edges_without_other_evidence
from conspectus.records.memories.conditions import IS_PINNED
from conspectus.records.tables.answers import answer_documents
from conspectus.records.tables.core import QUARANTINED, REMEMBERED, VERSIONED, chunks, documents, vectors
from conspectus.records.tables.jobs import jobs

COUNTED_FIELDS: Final = ("memories", "versions", "chunks", "vectors", "edges", "facts", "answers")
_LISTED = json_list_param("ids")
"""Any number of ids as one parameter, so that everything that depends on them is one query."""

_DELETABLE = select(documents.c.id).where(documents.c.id.in_(_LISTED), or_(REMEMBERED, QUARANTINED))
_ROOTS = select(documents.c.id).where(documents.c.id.in_(_LISTED)).cte("tree", recursive=True)
_TREE = _ROOTS.union(select(documents.c.id).join(_ROOTS, documents.c.parent == _ROOTS.c.id))
_IN_TREE = documents.c.id.in_(select(_TREE.c.id))
_SIZES = select(
    func.count().filter(VERSIONED).label("versions"),
    func.count().filter(or_(REMEMBERED, QUARANTINED)).label("memories"),
    func.coalesce(func.sum(documents.c.chunks), 0).label("chunks"),
).where(_IN_TREE)
_TREE_IDS = select(documents.c.id).where(_IN_TREE)

_VECTORS = (
    select(func.count())
    .select_from(
        documents.join(chunks, chunks.c.document == documents.c.number).join(
            vectors, vectors.c.chunk == chunks.c.id
        )
    )
    .where(_IN_TREE)
)
_ANSWERS = (
    select(func.count(answer_documents.c.answer.distinct()))
    .select_from(answer_documents.join(documents, documents.c.number == answer_documents.c.document))
    .where(_IN_TREE)
)


def forget(
    connection: Connection,
    memories: Sequence[DocumentId],
    *,
    pinned: bool,
    now: datetime,
    dry_run: bool,
    job: JobId | None,
) -> MemoryReceipt:
    """Delete memories with everything that depends on them, or with a dry run only count it."""
    receipt = _count_affected(connection, memories, pinned=pinned)
    if dry_run:
        return replace(receipt, dry_run=True)
    delete_documents(connection, [DocumentId(memory) for memory in receipt.ids], now=now)
    if job is not None:
        _add_to_job(connection, job, receipt)
    return receipt


def _count_affected(connection: Connection, memories: Sequence[DocumentId], *, pinned: bool) -> MemoryReceipt:
    """Return all memories that a deletion affects, as far as they exist and may be deleted."""
    query = _DELETABLE if pinned else _DELETABLE.where(~IS_PINNED)
    stored_ids = set(connection.execute(query, {"ids": json_list(memories)}).scalars())
    ids = tuple(str(memory) for memory in dict.fromkeys(memories) if memory in stored_ids)
    parameters = {"ids": json_list(ids)}
    sizes = connection.execute(_SIZES, parameters).one()
    affected = [document for (document,) in fetch_rows(connection, _TREE_IDS, parameters)]
    return MemoryReceipt(
        memories=len(ids),
        versions=sizes.versions,
        chunks=sizes.chunks,
        vectors=fetch_scalar(connection, _VECTORS, parameters),
        edges=len(edges_without_other_evidence(connection, affected)),
        ids=ids,
        facts=sizes.memories - len(ids),
        answers=fetch_scalar(connection, _ANSWERS, parameters),
    )


def _add_to_job(connection: Connection, job: JobId, receipt: MemoryReceipt) -> None:
    """Add deleted counts to the job's row, so that it is exact whenever the job ends."""
    stored = connection.execute(select(jobs.c.result).where(jobs.c.id == job)).scalar_one_or_none()
    before: Metadata = to_metadata(stored) if stored else {}
    counts: dict[str, Any] = {**before}
    for name in COUNTED_FIELDS:
        counts[name] = int(counts.get(name) or 0) + getattr(receipt, name)
    connection.execute(update(jobs).where(jobs.c.id == job).values(result=to_json(counts)))
