"""Two works that look at the same, the second while the first is not committed: as one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TypeAlias

import pytest
from sqlalchemy import Connection, text
from tests.contracts.accounts_contract import a_key, a_user
from tests.contracts.alerts_contract import PLAIN, match
from tests.contracts.ledger_contract import job
from tests.support.samples import NOON, notes, prepared, shelf

from conspectus.errors import Conflict, NotFound, TooLarge
from conspectus.model.access import AuditEntry, Grant, Group, Principal
from conspectus.model.connections import Connection as Wiki
from conspectus.model.ids import CollectionId, DocumentId, GroupId, JobId, SourceId, UserId
from conspectus.model.memory import Retention
from conspectus.model.records import Collection
from conspectus.model.results import Feedback
from conspectus.ports.memories import StoredRetention
from conspectus.ports.streams import Checked
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.feedback import SqlFeedback
from conspectus.records.jobs.store import SqlJobStore
from conspectus.records.memories.store import SqlMemories
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.alerts import SqlAlerts

Work: TypeAlias = Callable[[SqlRecords], Awaitable[object]]
Expected: TypeAlias = type[Exception] | None

HERE, THERE = CollectionId("here"), CollectionId("there")
ANN, BEN, TEAM = UserId("ann-id"), UserId("ben-id"), GroupId("team-id")
NOTES, OTHERS = SourceId("notes of here"), SourceId("notes of there")
CAPTION = DocumentId("caption")
JOB = JobId("job")
LONG = 60.0


def accounts(records: SqlRecords) -> SqlAccounts:
    return SqlAccounts(records.transactions)


def owned(owner: UserId, name: str) -> Collection:
    return replace(shelf(name), owner=owner)


def grant(who: Principal, source: SourceId | None = None) -> Work:
    return lambda records: accounts(records).put_grant(Grant(HERE, source, who, "viewer", NOON))


def write(records: SqlRecords) -> Awaitable[object]:
    return records.write([prepared("new", "tides", collection=HERE, source=NOTES)])


def put_alert(name: str, home: CollectionId) -> Work:
    alert = replace(PLAIN, id=name, owner=BEN, collection=home, name=name)
    return lambda records: SqlAlerts(records.transactions).put(alert, maximum=2)


async def record_match(records: SqlRecords) -> object:
    """Record that the stored alert has matched."""
    alerts = SqlAlerts(records.transactions)
    stored = replace(PLAIN, id="stored", owner=BEN, collection=HERE, name="stored")
    newest, _ = await records.state(HERE)
    checked = Checked(replace(stored, checked=newest), newest + 1, (match(CAPTION),))
    return await alerts.record([checked], now=NOON)


async def add_feedback(records: SqlRecords) -> None:
    other = DocumentId("other memory")
    chunk = (await records.document_chunks(other))[0].chunk.id
    feedback = Feedback("judged", THERE, OTHERS, other, chunk, BEN, "tides", True, NOON)
    await SqlFeedback(records.transactions).add([feedback])


def forget(memory: str) -> Work:
    documents = [DocumentId(memory)]
    return lambda records: SqlMemories(records.transactions).forget(
        documents, pinned=False, now=NOON, job=JOB
    )


WIKI = Wiki("wiki", HERE, ANN, "pages", "markdown")
RULE = StoredRetention("rule", HERE, "memories/", Retention(days=1), ANN)
AUDITED = AuditEntry("entry", ANN, BEN, HERE, "tides", NOON)
TO_BEN, TO_TEAM = grant(Principal("user", BEN)), grant(Principal("group", TEAM))
TO_SOURCE = grant(Principal("user", BEN), NOTES)


def delete_ann(records: SqlRecords) -> Awaitable[object]:
    return accounts(records).delete_user(ANN, transfer_to=BEN)


def delete_ben(records: SqlRecords) -> Awaitable[object]:
    return accounts(records).delete_user(BEN)


def delete_team(records: SqlRecords) -> Awaitable[object]:
    return accounts(records).delete_group(TEAM)


def delete_here(records: SqlRecords) -> Awaitable[object]:
    return records.delete_collection(HERE)


def rename_here(records: SqlRecords) -> Awaitable[object]:
    return records.change_collection(HERE, name="new")


def create_new(records: SqlRecords) -> Awaitable[object]:
    return records.create_collection(owned(BEN, "new"))


def join(records: SqlRecords) -> Awaitable[object]:
    return accounts(records).join(TEAM, BEN)


def delete_alert(records: SqlRecords) -> Awaitable[object]:
    return SqlAlerts(records.transactions).delete("stored")


CASES: dict[str, tuple[Work, Work, Expected]] = {
    "a grant to a deleted user": (delete_ben, TO_BEN, NotFound),
    "a deleted user with a new grant": (TO_BEN, delete_ben, None),
    "a deleted user in a group": (delete_ben, join, NotFound),
    "a deleted user who joined": (join, delete_ben, None),
    "a key of a deleted user": (
        delete_ben,
        lambda records: accounts(records).add_key(a_key("k", BEN), "x"),
        NotFound,
    ),
    "a user who got a collection": (create_new, delete_ben, Conflict),
    "an heir who is deleted": (delete_ann, delete_ben, Conflict),
    "an heir who was deleted": (delete_ben, delete_ann, NotFound),
    "feedback of a deleted user": (add_feedback, delete_ben, None),
    "feedback after its user": (delete_ben, add_feedback, None),
    "an alert of a deleted user": (record_match, delete_ben, None),
    "a match for a deleted user": (delete_ben, record_match, None),
    "a member of a deleted group": (delete_team, join, NotFound),
    "a deleted group with a new member": (join, delete_team, None),
    "a grant to a deleted group": (delete_team, TO_TEAM, NotFound),
    "a deleted group with a new grant": (TO_TEAM, delete_team, None),
    "a document of a deleted collection": (delete_here, write, NotFound),
    "a deleted collection with a new document": (write, delete_here, None),
    "a grant on a deleted collection": (delete_here, TO_BEN, NotFound),
    "a deleted collection with a new grant": (TO_BEN, delete_here, None),
    "a job for a deleted collection": (
        delete_here,
        lambda records: SqlJobStore(records.transactions).add(job("j", collection=HERE)),
        NotFound,
    ),
    "a connection of a deleted collection": (
        delete_here,
        lambda records: SqlJobStore(records.transactions).put_connection(WIKI),
        NotFound,
    ),
    "a rule for a deleted collection": (
        delete_here,
        lambda records: SqlMemories(records.transactions).put_retention(RULE),
        NotFound,
    ),
    "an audit of a deleted collection": (
        delete_here,
        lambda records: accounts(records).add_audit(AUDITED),
        NotFound,
    ),
    "an alert on a deleted collection": (delete_here, put_alert("a", HERE), NotFound),
    "another name of a deleted collection": (delete_here, rename_here, NotFound),
    "a deleted collection twice": (delete_here, delete_here, NotFound),
    "a document of a renamed collection": (rename_here, write, None),
    "a collection with a taken name": (rename_here, create_new, None),
    "another name that was taken": (create_new, rename_here, Conflict),
    "a grant on a deleted source": (lambda records: records.delete_source(NOTES), TO_SOURCE, NotFound),
    "an alert more than allowed": (put_alert("a", HERE), put_alert("b", THERE), TooLarge),
    "a match of a deleted alert": (delete_alert, record_match, None),
    "a deleted alert with a match": (record_match, delete_alert, None),
    "a job that counts what it deletes": (forget("memory"), forget("other memory"), None),
    "a job of a deleted collection": (delete_here, forget("memory"), None),
}


async def stocked(records: SqlRecords) -> None:
    """Two people and a group, Ann's collection with a text, an alert and a memory, and another one."""
    for name in ("ann", "ben"):
        await accounts(records).add_user(a_user(name))
    await accounts(records).add_group(Group(TEAM, "team", NOON))
    await records.create_collection(owned(ANN, HERE))
    await records.create_collection(shelf(THERE))
    await records.put_source(notes(NOTES, HERE))
    await records.put_source(notes(OTHERS, THERE))
    await records.write(
        [
            prepared(CAPTION, "tides", collection=HERE, source=NOTES),
            prepared("memory", "tides", collection=HERE, source=NOTES, kind="memory"),
            prepared("other memory", "tides", collection=THERE, source=OTHERS, kind="memory"),
        ]
    )
    await SqlJobStore(records.transactions).add(job(JOB, collection=THERE))
    await put_alert("stored", HERE)(records)


async def fault_of(work: Awaitable[object]) -> Expected:
    """The class of the error of a work, None if it succeeds."""
    try:
        await work
    except (Conflict, NotFound, TooLarge) as fault:
        return type(fault)
    return None


STATE = (
    "SELECT id || name || owner FROM collections",
    "SELECT id || status FROM documents",
    'SELECT id || role || coalesce("user", "group") FROM grants',
    'SELECT "group" || "user" FROM members',
    "SELECT id || owner || done || coalesce(result, '') FROM jobs",
    "SELECT id || name || collection FROM alerts",
    "SELECT alert || document FROM alert_events",
    "SELECT id FROM feedback UNION ALL SELECT id FROM audit UNION ALL SELECT id FROM keys",
    "SELECT id FROM users UNION ALL SELECT id FROM groups UNION ALL SELECT id FROM retentions",
)


def state(connection: Connection) -> list[list[str]]:
    return [sorted(connection.execute(text(query)).scalars()) for query in STATE]


async def run_in_turn(path: Path, first: Work, second: Work) -> tuple[Expected, object]:
    """The error of the second work, and what is stored then, in a database with a single writer."""
    records = await open_records(path / "records.sqlite")
    await stocked(records)
    await first(records)
    fault = await fault_of(second(records))
    stored = await records.transactions.read(state)
    await records.close()
    return fault, stored


@pytest.mark.parametrize("case", CASES)
async def test_the_second_waits_for_the_first(emptied_url: str, tmp_path: Path, case: str) -> None:
    first, second, expected = CASES[case]
    one, other = await open_records(emptied_url), await open_records(emptied_url)
    await stocked(one)
    done, go = Event(), Event()

    def hold(_: Connection) -> None:
        done.set()
        assert go.wait(LONG)

    with one.transactions.record_in_writes(hold):
        begun = asyncio.ensure_future(first(one))
        assert await asyncio.to_thread(done.wait, LONG)
    following = asyncio.create_task(fault_of(second(other)))
    await asyncio.wait([following], timeout=0.2)
    go.set()
    await begun
    outcome = (await following, await other.transactions.read(state))
    assert await other.check() == []
    await one.close()
    await other.close()
    assert outcome[0] is expected
    assert outcome == await run_in_turn(tmp_path, first, second)
