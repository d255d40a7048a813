"""Answer records: windows, recalls and chats that were given, with the documents whose texts they have."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)

from conspectus.model.answers import (
    AnswerAccess,
    AnswerLimits,
    AnswerPage,
    AnswerRecord,
    AnswerSelection,
    NewAnswer,
)
from conspectus.model.ids import CollectionId, DocumentId, UserId
from conspectus.model.query import EVERYWHERE
from conspectus.records.answer_rows import AnswerRow, candidates_of, rows_of, to_record, to_summary
from conspectus.records.core.dialects import json_list, json_list_param
from conspectus.records.core.pages import newest_page
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks
from conspectus.records.core.store_methods import SqlStore, reading, writing
from conspectus.records.tables.answers import answer_documents, answers
from conspectus.records.tables.core import QUARANTINED, Number, String, documents
from conspectus.text.times import to_microseconds

ANSWERS_LOCK: Final = "answers"
_JOINED = answer_documents.join(documents, documents.c.number == answer_documents.c.document)
_READABLE = or_(
    documents.c.collection.in_(json_list_param("collections")),
    documents.c.source.in_(json_list_param("sources")),
)
_READABLE_DOCUMENTS = (
    select(func.count())
    .select_from(_JOINED)
    .where(answer_documents.c.answer == answers.c.id, ~QUARANTINED, _READABLE)
    .correlate(answers)
    .scalar_subquery()
)
_VISIBLE = and_(
    answers.c.created >= bindparam("since"),
    answers.c.documents == _READABLE_DOCUMENTS,
    or_(answers.c.documents > 0, answers.c.user == bindparam("reader")),
)
"""A record without documents has a question only, which concerns nobody but who asked it."""
_SUMMARY_COLUMNS = tuple(
    answers.c[name]
    for name in (
        "id", "kind", "user", "collection", "created", "question", "outcome", "passages", "tokens", "model",
        "failure",
    )
)  # fmt: skip
CHANGED_SINCE: Final = ""
"""Fingerprint of a document that changed after the question was asked: the record has its earlier text."""
_LINK_DOCUMENTS = (
    insert(answer_documents)
    .from_select(
        ["answer", "document", "fingerprint"],
        select(
            bindparam("answer", type_=String),
            documents.c.number,
            case(
                (documents.c.updated > bindparam("asked", type_=Number), CHANGED_SINCE),
                else_=documents.c.fingerprint,
            ),
        ).where(documents.c.id.in_(json_list_param("linked"))),
    )
    .execution_options(preserve_rowcount=True)
)
_CHANGED = (
    select(documents.c.id)
    .select_from(_JOINED)
    .where(
        answer_documents.c.answer == bindparam("of"),
        answer_documents.c.fingerprint != documents.c.fingerprint,
    )
    .order_by(documents.c.id)
)
_NAMED = select(documents.c.id, documents.c.source, documents.c.key, documents.c.title).where(
    documents.c.id.in_(IDS)
)
_SIZES_FROM_OLDEST = select(answers.c.id, answers.c.bytes).order_by(answers.c.created, answers.c.id)
_LINKED_ROWS = (
    select(func.count())
    .select_from(answer_documents)
    .where(answer_documents.c.answer == answers.c.id)
    .correlate(answers)
    .scalar_subquery()
)
_DELETE_INCOMPLETE = delete(answers).where(answers.c.documents != _LINKED_ROWS)
"""A document that is deleted while a record of it is written leaves a record that lacks a row.

Nobody can read it, and a purge deletes it.
"""


def _add_rows(connection: Connection, rows: Sequence[AnswerRow], limits: AnswerLimits) -> int:
    """Store records without those of deleted documents, and delete those beyond the limits."""
    incomplete: list[str] = []
    for columns, linked in rows:
        connection.execute(insert(answers), columns)
        links = {"answer": columns["id"], "asked": columns["created"], "linked": json_list(linked)}
        if linked and connection.execute(_LINK_DOCUMENTS, links).rowcount < len(linked):
            incomplete.append(columns["id"])
    execute_in_blocks(connection, delete(answers).where(answers.c.id.in_(IDS)), incomplete)
    _delete_beyond(connection, limits)
    return len(rows) - len(incomplete)


def _delete_beyond(connection: Connection, limits: AnswerLimits) -> None:
    """Delete records that are too old, then the oldest beyond the maximum number and size."""
    connection.execute(delete(answers).where(answers.c.created < to_microseconds(limits.since)))
    count, size = connection.execute(select(func.count(), func.coalesce(func.sum(answers.c.bytes), 0))).one()
    if count <= limits.max_count and size <= limits.max_bytes:
        return
    surplus: list[str] = []
    for id, record_bytes in connection.execute(_SIZES_FROM_OLDEST):
        if count <= limits.max_count and size <= limits.max_bytes:
            break
        surplus.append(id)
        count, size = count - 1, size - record_bytes
    execute_in_blocks(connection, delete(answers).where(answers.c.id.in_(IDS)), surplus)


def _parameters(access: AnswerAccess) -> dict[str, Any]:
    return {
        "reader": access.user,
        "collections": json_list(access.collections),
        "sources": json_list(access.sources),
        "since": to_microseconds(access.since),
    }


def _get(connection: Connection, answer: str, access: AnswerAccess) -> AnswerRecord | None:
    visible = select(answers).where(answers.c.id == answer, _VISIBLE)
    row = connection.execute(visible, _parameters(access)).one_or_none()
    if row is None:
        return None
    changed = tuple(connection.execute(_CHANGED, {"of": answer}).scalars())
    candidates = candidates_of(row)
    names = {
        document.id: document
        for document in fetch_in_blocks(connection, _NAMED, {candidate.document for candidate in candidates})
    }
    return to_record(row, candidates, names, changed)


def _list(
    connection: Connection,
    selection: AnswerSelection,
    access: AnswerAccess,
    *,
    after: str | None,
    limit: int,
) -> AnswerPage:
    conditions: list[ColumnElement[bool]] = [_VISIBLE]
    for column, selected in (
        (answers.c.user, selection.user),
        (answers.c.kind, selection.kind),
        (answers.c.collection, selection.collection),
    ):
        if selected is not None:
            conditions.append(column == selected)
    query = select(*_SUMMARY_COLUMNS).where(*conditions).params(_parameters(access))
    rows, following = newest_page(connection, query, answers, after=after, limit=limit)
    return AnswerPage(tuple(map(to_summary, rows)), following)


def _delete(connection: Connection, answer: str) -> bool:
    return bool(connection.execute(delete(answers).where(answers.c.id == answer)).rowcount)


def _documents_of(
    connection: Connection, user: UserId, digests: Sequence[str]
) -> Mapping[str, Sequence[DocumentId]]:
    """Return the documents of the answers of a person by their digests; unknown ones are left out."""
    query = (
        select(answers.c.answer_digest, documents.c.id)
        .select_from(answers.outerjoin(answer_documents).outerjoin(documents))
        .where(answers.c.user == user, answers.c.answer_digest.in_(IDS))
    )
    documents_by_digest: dict[str, list[DocumentId]] = {}
    for digest, document in fetch_in_blocks(connection, query, set(digests)):
        linked = documents_by_digest.setdefault(digest, [])
        if document is not None:
            linked.append(DocumentId(document))
    return documents_by_digest


def _list_documents(connection: Connection, record_ids: Sequence[str]) -> Mapping[str, Sequence[DocumentId]]:
    """Return the documents of records by the ids of these; records without documents are left out."""
    query = select(answer_documents.c.answer, documents.c.id).select_from(_JOINED)
    in_records = query.where(answer_documents.c.answer.in_(IDS))
    by_record: dict[str, list[DocumentId]] = {}
    for record, document in fetch_in_blocks(connection, in_records, set(record_ids)):
        by_record.setdefault(record, []).append(DocumentId(document))
    return by_record


def forget_answers(connection: Connection, numbers: Sequence[int]) -> int:
    """Delete the records that have texts of these documents; return how many."""
    linked = select(answer_documents.c.answer).where(answer_documents.c.document.in_(IDS))
    return execute_in_blocks(connection, delete(answers).where(answers.c.id.in_(linked)), numbers)


def forget_answers_of_collection(connection: Connection, collection: CollectionId) -> int:
    """Delete the records that are of a collection, or have texts of its documents; return how many."""
    linked = (
        select(answer_documents.c.answer).select_from(_JOINED).where(documents.c.collection == collection)
    )
    of_collection = or_(answers.c.collection == collection, answers.c.id.in_(linked))
    return connection.execute(delete(answers).where(of_collection)).rowcount


def erase_outdated_answers(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Delete records with texts that documents of purged collections had and have no more.

    A record without documents has a question that nothing answers; it may repeat what was deleted.
    """
    outdated = (
        select(answer_documents.c.answer)
        .select_from(_JOINED)
        .where(
            documents.c.collection.in_(IDS),
            answer_documents.c.fingerprint != documents.c.fingerprint,
        )
    )
    execute_in_blocks(connection, delete(answers).where(answers.c.id.in_(outdated)), purged)
    if purged:
        of_purged = or_(answers.c.collection.in_(("", EVERYWHERE)), answers.c.collection.in_(IDS))
        unanswered = delete(answers).where(answers.c.documents == 0, of_purged)
        execute_in_blocks(connection, unanswered, purged)
    connection.execute(_DELETE_INCOMPLETE)


class SqlAnswers(SqlStore):
    """The methods of the port `AnswerStore`, each as one transaction; see the port for their docs."""

    _add_rows = writing(_add_rows, locks=lambda rows, limits: {ANSWERS_LOCK})
    get = reading(_get)
    list = reading(_list)
    delete = writing(_delete, locks=lambda answer: {ANSWERS_LOCK})
    documents_of = reading(_documents_of)
    list_documents = reading(_list_documents)

    async def add(self, new_answers: Sequence[NewAnswer], limits: AnswerLimits) -> int:
        return await self._add_rows(await asyncio.to_thread(rows_of, new_answers), limits)
