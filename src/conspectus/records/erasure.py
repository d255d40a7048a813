"""Erasure of copies of deleted texts in rows that stay, such as stored responses and job titles."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, select, update

from conspectus.model.ids import CollectionId
from conspectus.model.jobs import FINISHED
from conspectus.model.text_columns import columns_of
from conspectus.records.answers import erase_outdated_answers
from conspectus.records.core.statements import IDS, execute_in_blocks, fetch_in_blocks
from conspectus.records.experiments import erase_outdated_questions
from conspectus.records.jobs.idempotency import ERASED, LOST_ANSWER, PLAIN
from conspectus.records.tables.core import audit, sources
from conspectus.records.tables.graph import events, nodes
from conspectus.records.tables.jobs import chat_answers, connections, jobs, purges, replays

SEE_AS: Final = "explain_as"
"""The action of the audit log whose query is a text; others have ids."""

_MERGES = (
    select(events.c.number, events.c.graph, events.c.before, events.c.after)
    .join(sources, sources.c.id == events.c.graph)
    .where(sources.c.collection.in_(IDS))
)
_NODES_LEFT = select(nodes.c.number).where(nodes.c.graph == bindparam("of"), nodes.c.id.in_(IDS)).limit(1)
NOT_REPEATABLE: Final = json.dumps({"repeatable": False})
_HAS_ENDED = jobs.c.state.in_(sorted(FINISHED))
_ENDED_JOBS = (
    select(jobs.c.id, jobs.c.kind, jobs.c.result)
    .where(jobs.c.collection.in_(IDS), _HAS_ENDED)
    .order_by(jobs.c.id)
)


def erase_copies(connection: Connection) -> None:
    """Erase texts that may repeat deleted ones, in the collections that are being purged.

    Stored responses and chats are erased in all collections.
    """
    unfinished = connection.execute(select(purges.c.collection).distinct())
    purged = [CollectionId(collection) for collection in unfinished.scalars()]
    erase_outdated_answers(connection, purged)
    erase_outdated_questions(connection, purged)
    for erase in ERASERS.values():
        erase(connection, purged)


def _erase_replays(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Erase stored responses.

    A response in progress may have read the text, so it will not be stored either.
    """
    answered = update(replays).where(replays.c.answer.is_not(None), replays.c.stored != PLAIN)
    connection.execute(answered.values(answer=LOST_ANSWER))
    open_claims = update(replays).where(replays.c.answer.is_(None), replays.c.stored > 0)
    connection.execute(open_claims.values(stored=ERASED))


def _erase_chats(connection: Connection, purged: Sequence[CollectionId]) -> None:
    connection.execute(delete(chat_answers))


def _erase_audit(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Erase queries asked as another user. Who asked as whom, where and when stays."""
    queries = update(audit).where(audit.c.collection.in_(IDS), audit.c.action == SEE_AS)
    execute_in_blocks(connection, queries.values(_blanks(audit)), purged)


def _erase_connections(connection: Connection, purged: Sequence[CollectionId]) -> None:
    failed = update(connections).where(connections.c.collection.in_(IDS))
    execute_in_blocks(connection, failed.values(_blanks(connections)), purged)


def _erase_jobs(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Erase names of files, addresses, scopes and failures of jobs that have ended; their counts stay.

    A sync only names its connection, and can be repeated.
    """
    for job in list(fetch_in_blocks(connection, _ENDED_JOBS, purged)):
        texts = _blanks(jobs) | {"title": job.kind, "arguments": NOT_REPEATABLE}
        if job.result is not None:
            texts["result"] = json.dumps(_numbers_in(json.loads(job.result)))
        if job.kind == "sync":
            del texts["title"], texts["arguments"]
        connection.execute(update(jobs).where(jobs.c.id == job.id, _HAS_ENDED).values(texts))


def _erase_merges(connection: Connection, purged: Sequence[CollectionId]) -> None:
    """Delete merges of which no node is left: they have the names of the nodes."""
    for merge in list(fetch_in_blocks(connection, _MERGES, purged)):
        ids = {*json.loads(merge.before), *json.loads(merge.after)}
        if not list(fetch_in_blocks(connection, _NODES_LEFT, ids, of=merge.graph)):
            connection.execute(delete(events).where(events.c.number == merge.number))


def _blanks(table: Table) -> dict[str, str | None]:
    """Return the values for the columns of a table that `text_columns` has erased in a purge."""
    erased = [name for name, rule in columns_of(table.name) if rule.purging == "erased"]
    return {name: None if table.c[name].nullable else "" for name in erased}


def _numbers_in(result: Mapping[str, Any]) -> dict[str, float]:
    return {name: number for name, number in result.items() if isinstance(number, int | float)}


ERASERS: Final[Mapping[str, Callable[[Connection, Sequence[CollectionId]], None]]] = {
    "replays": _erase_replays,
    "chat_frames": _erase_chats,
    "audit": _erase_audit,
    "connections": _erase_connections,
    "jobs": _erase_jobs,
    "graph_events": _erase_merges,
}
"""By table: each has columns that `text_columns` says are erased."""
