"""What belongs to one collection waits for its writers, and for those of no other collection."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Event

import pytest
from tests.contracts.accounts_contract import ANNA
from tests.contracts.alerts_contract import PLAIN
from tests.contracts.ledger_contract import job
from tests.support.samples import SPACE, notes, prepared, shelf

from conspectus.model.access import AuditEntry, Grant, Group, Principal, User
from conspectus.model.connections import Connection as Wiki
from conspectus.model.graph import Edge, Node
from conspectus.model.ids import CollectionId, DocumentId, GroupId, JobId, SourceId, UserId
from conspectus.model.memory import Retention
from conspectus.model.records import PreparedDocument, Source
from conspectus.ports.graphs import Adding
from conspectus.ports.memories import StoredRetention
from conspectus.ports.streams import NewSummary
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.core.lock_names import row_lock
from conspectus.records.graph.store import SqlGraphs
from conspectus.records.jobs.store import SqlJobStore
from conspectus.records.memories.store import SqlMemories
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.alerts import SqlAlerts
from conspectus.records.streams.summaries import SqlSummaries
from conspectus.records.tables.core import collections

HERE, THERE, BESIDE = CollectionId("here"), CollectionId("there"), CollectionId("beside")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Work = Callable[[SqlRecords, CollectionId], Awaitable[object]]


def source(home: CollectionId) -> SourceId:
    return SourceId(f"notes of {home}")


def document(home: CollectionId) -> DocumentId:
    return DocumentId(f"text of {home}")


def text_in(home: CollectionId) -> PreparedDocument:
    return prepared(document(home), "tides", collection=home, source=source(home))


async def add_to_graph(records: SqlRecords, home: CollectionId) -> object:
    graph = Source(source(home), home, "notes")
    ends = tuple(Node(f"{home} {name}", graph, "town", name, (), {}, NOW, NOW) for name in ("Rome", "Oslo"))
    await SqlGraphs(records.transactions).add(Adding(nodes=ends))
    edge = Edge(f"{home} edge", graph, ends[0].id, ends[1].id, "near", 1.0, {}, NOW, NOW)
    return await SqlGraphs(records.transactions).add(Adding(edges=(edge,)))


async def delete_from_graph(records: SqlRecords, home: CollectionId) -> object:
    return await SqlGraphs(records.transactions).delete_nodes(source(home), ["Rome"])


async def forget(records: SqlRecords, home: CollectionId, job: JobId | None = None) -> object:
    memories = SqlMemories(records.transactions)
    return await memories.forget([document(home)], pinned=True, now=NOW, job=job)


async def alert(records: SqlRecords, home: CollectionId) -> object:
    new_alert = replace(PLAIN, id=f"alert of {home}", owner=UserId(home), collection=home)
    return await SqlAlerts(records.transactions).put(new_alert, maximum=9)


async def delete_alert(records: SqlRecords, home: CollectionId) -> object:
    return await SqlAlerts(records.transactions).delete(f"alert of {home}")


async def audit(records: SqlRecords, home: CollectionId) -> None:
    entry = AuditEntry(f"entry of {home}", ANNA, ANNA, home, "tides", NOW)
    await SqlAccounts(records.transactions).add_audit(entry)


async def connect(records: SqlRecords, home: CollectionId) -> object:
    wiki = Wiki(f"wiki of {home}", home, ANNA, "pages", "markdown")
    return await SqlJobStore(records.transactions).put_connection(wiki)


async def keep(records: SqlRecords, home: CollectionId) -> None:
    rule = StoredRetention(f"rule of {home}", home, "memories/", Retention(days=1), ANNA)
    await SqlMemories(records.transactions).put_retention(rule)


async def grant(records: SqlRecords, home: CollectionId) -> None:
    people = SqlAccounts(records.transactions)
    await people.add_user(User(UserId(f"reader of {home}"), f"reader-of-{home}", NOW))
    new_grant = Grant(home, None, Principal("user", UserId(f"reader of {home}")), "viewer", NOW)
    await people.put_grant(new_grant)
    await people.revoke(home, None, new_grant.grantee)


async def leave(records: SqlRecords, home: CollectionId) -> None:
    people, user, group = SqlAccounts(records.transactions), UserId(f"guest {home}"), GroupId(f"team {home}")
    await people.add_user(User(user, f"guest-{home}", NOW))
    await people.add_group(Group(group, f"team-{home}", NOW))
    await people.join(group, user)
    await people.delete_group(group)
    await people.delete_user(user)


async def summarize(records: SqlRecords, home: CollectionId) -> None:
    summary = NewSummary(f"summary of {home}", "recipe", "text", (), ())
    await SqlSummaries(records.transactions).add(source(home), summary)


WORKS: dict[str, Work] = {
    "delete": lambda records, home: records.delete([document(home)], now=NOW),
    "fail": lambda records, home: records.fail(document(home), "refused"),
    "put a source": lambda records, home: records.put_source(Source(SourceId(f"new {home}"), home, "new")),
    "change a source": lambda records, home: records.change_source(source(home), name="other"),
    "delete a source": lambda records, home: records.delete_source(source(home)),
    "change the model": lambda records, home: records.switch_space(home, SPACE),
    "begin a purge": lambda records, home: records.begin_purge(home),
    "add to a graph": add_to_graph,
    "delete from a graph": delete_from_graph,
    "forget": forget,
    "forget in a job": lambda records, home: forget(records, home, JobId("a job")),
    "delete a collection": lambda records, home: records.delete_collection(home),
    "rename a collection": lambda records, home: records.change_collection(home, name=f"new {home}"),
    "put an alert": alert,
    "delete an alert": delete_alert,
    "summarize": summarize,
}


ROW_WORKS: dict[str, Work] = {
    "grant": grant,
    "add a job": lambda records, home: SqlJobStore(records.transactions).add(job(home, collection=home)),
    "connect": connect,
    "keep": keep,
    "audit": audit,
}
PEOPLE: dict[str, Work] = {
    "leave": leave,
    "create a collection": lambda records, _: records.create_collection(shelf("new")),
}


@pytest.fixture
async def two(emptied_url: str) -> AsyncIterator[tuple[SqlRecords, SqlRecords]]:
    """The records of two processes, as the server sees them."""
    first, second = await open_records(emptied_url), await open_records(emptied_url)
    for home in (HERE, THERE, BESIDE):
        await first.create_collection(shelf(home))
        await first.put_source(notes(source(home), home))
        await first.write([text_in(home)])
        await alert(first, home)
    yield first, second
    await first.close()
    await second.close()


async def held(records: SqlRecords, lock: str) -> tuple[asyncio.Task[bool], Event]:
    """A writer with the lock that stays in its transaction until the event is set."""
    begun, go = Event(), Event()

    def hold(_: object) -> bool:
        begun.set()
        return go.wait(60.0)

    task = asyncio.create_task(records.transactions.write(hold, locks={lock}))
    assert await asyncio.to_thread(begun.wait, 60.0)
    return task, go


async def require_waiting(
    two: tuple[SqlRecords, SqlRecords], work: Work, lock: str, *, alone: bool = True
) -> None:
    """A work waits for the holder of the lock, and on another collection for nobody."""
    writer, go = await held(two[0], lock)
    if alone:
        await asyncio.wait_for(work(two[1], THERE), 30.0)
    waiting = asyncio.ensure_future(work(two[1], HERE))
    assert await asyncio.wait([waiting], timeout=0.3) == (set(), {waiting})
    go.set()
    assert await writer
    await waiting
    assert await two[0].check() == []


@pytest.mark.parametrize("name", WORKS)
async def test_it_waits_for_writers_of_its_collection_alone(
    two: tuple[SqlRecords, SqlRecords], name: str
) -> None:
    await require_waiting(two, WORKS[name], HERE)


async def test_what_only_needs_a_collection_to_exist_waits_for_none_of_its_documents(
    two: tuple[SqlRecords, SqlRecords],
) -> None:
    writer, go = await held(two[0], HERE)
    async with asyncio.timeout(30.0):
        for work in (*ROW_WORKS.values(), *PEOPLE.values()):
            await work(two[1], HERE)
    go.set()
    assert await writer


@pytest.mark.parametrize("name", ROW_WORKS)
async def test_it_waits_for_its_collection_to_be_there(two: tuple[SqlRecords, SqlRecords], name: str) -> None:
    await require_waiting(two, ROW_WORKS[name], row_lock(collections, HERE))


async def test_rows_of_several_collections_wait_for_these_alone(two: tuple[SqlRecords, SqlRecords]) -> None:
    writer, go = await held(two[0], HERE)
    async with asyncio.timeout(30.0):
        await two[1].write([text_in(THERE), text_in(BESIDE)])
        receipt = await two[1].delete([document(THERE), DocumentId("unknown"), document(BESIDE)], now=NOW)
        await two[1].delete([DocumentId("unknown")], now=NOW)
    assert receipt.documents == 2
    for work in (
        lambda: two[1].write([text_in(HERE), text_in(BESIDE)]),
        lambda: two[1].delete([document(HERE), document(THERE)], now=NOW),
    ):
        waiting = asyncio.ensure_future(work())
        assert await asyncio.wait([waiting], timeout=0.3) == (set(), {waiting})
        go.set()
        await waiting
        await writer
        writer, go = await held(two[0], HERE)
    go.set()
    assert await writer
    assert await two[0].check() == []


async def test_a_collection_that_rows_come_to_meanwhile_is_locked_too(
    two: tuple[SqlRecords, SqlRecords],
) -> None:
    await two[0].delete([document(BESIDE)], now=NOW)
    writer, go = await held(two[0], THERE)
    deleting = asyncio.create_task(two[1].delete([document(THERE), document(BESIDE)], now=NOW))
    assert await asyncio.wait([deleting], timeout=0.3) == (set(), {deleting})
    await two[0].write([text_in(BESIDE)])
    other, go_on = await held(two[0], BESIDE)
    go.set()
    assert await asyncio.wait([deleting], timeout=0.3) == (set(), {deleting})
    go_on.set()
    assert await writer
    assert await other
    assert (await deleting).documents == 2
    assert await two[0].check() == []


async def test_a_row_that_nobody_knows_may_come_to_any_collection(two: tuple[SqlRecords, SqlRecords]) -> None:
    unknown = DocumentId("unknown")
    await require_waiting(two, lambda records, _: records.fail(unknown, "refused"), HERE, alone=False)
