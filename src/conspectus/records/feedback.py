"""Feedback: judgments of chunks for queries."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, select

from conspectus.errors import NotFound
from conspectus.model.ids import CollectionId, SourceId, UserId
from conspectus.model.results import Feedback, FeedbackPage
from conspectus.ports import Judgment
from conspectus.records.core.changes import ChangeRange, append
from conspectus.records.core.lock_names import Locks, row_lock
from conspectus.records.core.pages import newest_page
from conspectus.records.core.rows import NO_CHUNK, columns_of
from conspectus.records.core.statements import (
    IDS,
    execute_in_blocks,
    fetch_in_blocks,
    fetch_rows,
    insert_rows,
)
from conspectus.records.core.store_methods import SqlStore, cached, reading, writing
from conspectus.records.tables.core import chunks, documents, feedback, users
from conspectus.text.times import from_microseconds

_JOINED = feedback.join(chunks, chunks.c.id == feedback.c.chunk).join(
    documents, documents.c.number == chunks.c.document
)
_COLUMNS = (
    feedback.c.id,
    feedback.c.collection,
    documents.c.source,
    documents.c.id.label("document"),
    feedback.c.chunk,
    feedback.c.user,
    feedback.c.query,
    feedback.c.used,
    feedback.c.created,
)
_FEEDBACK = select(*_COLUMNS).select_from(_JOINED)
_JUDGMENT_COLUMNS = (feedback.c.chunk, feedback.c.user, feedback.c.query, feedback.c.used)
_ANY = select(feedback.c.id).where(feedback.c.collection == bindparam("of")).limit(1)
_NEWEST_FIRST = (feedback.c.created.desc(), feedback.c.id.desc())


def forget_feedback(connection: Connection, user: UserId) -> None:
    """Delete the feedback of a user."""
    deletion = delete(feedback).where(feedback.c.user == user).returning(feedback.c.collection)
    _append_change(connection, set(connection.execute(deletion).scalars()))


def _append_change(connection: Connection, collections: set[CollectionId]) -> None:
    """Append a change of no chunk, so that processes read the feedback again."""
    steps = [ChangeRange(collection, "put", NO_CHUNK, NO_CHUNK) for collection in sorted(collections)]
    append(connection, steps)


def _add(
    connection: Connection,
    judgments: Sequence[Feedback],
    *,
    space: str | None = None,
    vector: bytes | None = None,
) -> None:
    collections = {judgment.chunk: judgment.collection for judgment in judgments}
    owners = select(chunks.c.id, documents.c.collection).where(chunks.c.id.in_(IDS))
    joined = owners.join(documents, documents.c.number == chunks.c.document)
    stored_collections = {row.id: row.collection for row in fetch_in_blocks(connection, joined, collections)}
    for chunk, collection in collections.items():
        if stored_collections.get(chunk) != collection:
            raise NotFound("chunk", str(chunk))
    execute_in_blocks(
        connection, delete(feedback).where(feedback.c.id.in_(IDS)), [judgment.id for judgment in judgments]
    )
    rows = [
        {name: value for name, value in columns_of(judgment).items() if name in feedback.c}
        | {"space": space, "vector": vector}
        for judgment in judgments
    ]
    insert_rows(connection, feedback, rows)
    _append_change(connection, set(collections.values()))


def _locks(judgments: Sequence[Feedback]) -> Locks:
    """Return the locks of the collections, and of the users: a deleted one loses its feedback."""
    return {lock for judgment in judgments for lock in (judgment.collection, row_lock(users, judgment.user))}


def _get(connection: Connection, feedback_id: str) -> Feedback | None:
    row = connection.execute(_FEEDBACK.where(feedback.c.id == feedback_id)).first()
    return None if row is None else _to_feedback(row)


def _delete(connection: Connection, feedback_id: str) -> bool:
    deletion = delete(feedback).where(feedback.c.id == feedback_id).returning(feedback.c.collection)
    collections = set(connection.execute(deletion).scalars())
    _append_change(connection, collections)
    return bool(collections)


def _has_any(connection: Connection, collection: CollectionId) -> bool:
    return bool(fetch_rows(connection, _ANY, {"of": collection}))


def _judgments(connection: Connection, collection: CollectionId, *, limit: int) -> Sequence[Judgment]:
    query = select(*_JUDGMENT_COLUMNS, feedback.c.space, feedback.c.vector)
    query = query.where(feedback.c.collection == collection).order_by(*_NEWEST_FIRST).limit(limit)
    return [
        Judgment(row.chunk, row.user, row.query, bool(row.used), row.space, row.vector)
        for row in connection.execute(query)
    ]


def _page(
    connection: Connection,
    collection: CollectionId,
    *,
    user: UserId | None,
    sources: Sequence[SourceId] | None,
    after: str | None,
    limit: int,
) -> FeedbackPage:
    query = _FEEDBACK.where(feedback.c.collection == collection)
    if user is not None:
        query = query.where(feedback.c.user == user)
    if sources is not None:
        query = query.where(documents.c.source.in_(sources))
    rows, following = newest_page(connection, query, feedback, after=after, limit=limit)
    return FeedbackPage(tuple(map(_to_feedback, rows)), following)


def _to_feedback(row: Row[*tuple[Any, ...]]) -> Feedback:
    collection, source, document = row.collection, row.source, row.document
    judged = (row.chunk, row.user, row.query, bool(row.used), from_microseconds(row.created))
    return Feedback(row.id, collection, source, document, *judged)


def _count(connection: Connection, sources: Sequence[SourceId]) -> int:
    counted = select(func.count()).select_from(_JOINED).where(documents.c.source.in_(IDS))
    return sum(row[0] for row in fetch_in_blocks(connection, counted, sources))


class SqlFeedback(SqlStore):
    """The methods of the port `FeedbackStore`, each as one transaction; see the port for their docs."""

    add = writing(_add, locks=lambda judgments, **_: _locks(judgments))
    get = reading(_get)
    count = reading(_count)
    delete = writing(_delete, rows=feedback)
    list = reading(_page)
    _has_any = cached(_has_any, single=True)
    _judgments = reading(_judgments)

    async def judgments(self, collection: CollectionId, *, limit: int) -> Sequence[Judgment]:
        """Return the newest; after each write, whether there are any is read without a thread."""
        return await self._judgments(collection, limit=limit) if await self._has_any(collection) else []
