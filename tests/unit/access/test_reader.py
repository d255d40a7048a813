"""Threads and the newest of a source, as one person may see them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.samples import NOON, NOTES, SHELF, notes, prepared, shelf

from conspectus.access.reader import AuthorizedReader
from conspectus.errors import NotFound
from conspectus.model.access import LOCAL_OWNER, Grant, Person, Principal, User
from conspectus.model.ids import SourceId, UserId
from conspectus.model.records import Period
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.store import SqlRecords, open_records

HIDDEN = SourceId("hidden")
BOB = Person("bob", id=UserId("bob"))


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    """Two channels with a thread of the same name."""
    opened = await open_records(tmp_path / "records.sqlite")
    await opened.create_collection(shelf())
    now = Period(NOON, NOON)
    for source in (NOTES, HIDDEN):
        await opened.put_source(notes(source))
        said = {"kind": "message", "thread": "t", "occurred": now, "source": source}
        await opened.write([prepared(f"{source}{number}", f"{source}{number}", **said) for number in (1, 2)])
    yield opened
    await opened.close()


async def sight_of(records: SqlRecords, person: Person) -> AuthorizedReader:
    """What a person sees who was granted the notes only."""
    accounts = SqlAccounts(records.transactions)
    if await accounts.user("bob") is None:
        await accounts.add_user(User(BOB.id, "bob", NOON))
    await accounts.put_grant(Grant(SHELF, NOTES, Principal("user", "bob"), "viewer", NOON))
    return AuthorizedReader(person, records, accounts, lambda: NOON)


async def test_a_thread_is_that_of_the_channel_of_the_document(records: SqlRecords) -> None:
    sight = await sight_of(records, BOB)
    document, _ = await sight.document(f"{NOTES}1")
    found, total = await sight.thread(document, limit=10)
    assert ([each.chunk.text for each in found], total) == (["notes1", "notes2"], 2)


async def test_the_latest_of_a_hidden_channel_are_not_told(records: SqlRecords) -> None:
    sight, owner = await sight_of(records, BOB), await sight_of(records, LOCAL_OWNER)
    access, everything = await sight.collection(SHELF), await owner.collection(SHELF)
    assert [each.document.source for each in await sight.latest(access, notes(), limit=9)] == [NOTES] * 2
    assert len(await owner.latest(everything, notes(HIDDEN), limit=9)) == 2
    for wrong in (notes(HIDDEN), notes(NOTES, collection="elsewhere")):
        with pytest.raises(NotFound):
            await sight.latest(access, wrong, limit=9)


async def test_only_what_is_seen_begins(records: SqlRecords) -> None:
    sight, owner = await sight_of(records, BOB), await sight_of(records, LOCAL_OWNER)
    asked = [f"{HIDDEN}1", f"{NOTES}2", "nobody", f"{NOTES}1"]
    assert [each.chunk.text for each in await sight.beginnings(asked)] == ["notes2", "notes1"]
    assert [each.chunk.text for each in await owner.beginnings(asked)] == ["hidden1", "notes2", "notes1"]
    access, everything = await sight.collection(SHELF), await owner.collection(SHELF)
    assert [each.id for each in await sight.inside(access, asked)] == [f"{NOTES}2", f"{NOTES}1"]
    assert len(await owner.inside(everything, asked)) == 3


async def test_a_name_that_is_the_id_of_a_hidden_source_is_a_name(records: SqlRecords) -> None:
    """An id comes before a name, but not one that is hidden."""
    await records.change_source(HIDDEN, name="y")
    await records.change_source(NOTES, name=HIDDEN)
    sight, owner = await sight_of(records, BOB), await sight_of(records, LOCAL_OWNER)
    for seer, expected in ((sight, NOTES), (owner, HIDDEN)):
        found = await seer.source(await seer.collection(SHELF), HIDDEN)
        assert found is not None
        assert found.id == expected
    assert await sight.source(await sight.collection(SHELF), "y") is None
