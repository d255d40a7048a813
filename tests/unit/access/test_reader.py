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
        fields = {"kind": "message", "thread": "t", "occurred": now, "source": source}
        await opened.write(
            [prepared(f"{source}{number}", f"{source}{number}", **fields) for number in (1, 2)]
        )
    yield opened
    await opened.close()


async def open_reader(records: SqlRecords, person: Person) -> AuthorizedReader:
    """What a person sees who was granted the notes only."""
    accounts = SqlAccounts(records.transactions)
    if await accounts.user("bob") is None:
        await accounts.add_user(User(BOB.id, "bob", NOON))
    await accounts.put_grant(Grant(SHELF, NOTES, Principal("user", "bob"), "viewer", NOON))
    return AuthorizedReader(person, records, accounts, lambda: NOON)


async def test_a_thread_is_that_of_the_channel_of_the_document(records: SqlRecords) -> None:
    reader = await open_reader(records, BOB)
    document, _ = await reader.document(f"{NOTES}1")
    rows, total = await reader.thread(document, limit=10)
    assert ([row.chunk.text for row in rows], total) == (["notes1", "notes2"], 2)


async def test_the_latest_of_a_hidden_channel_are_not_told(records: SqlRecords) -> None:
    reader, owner = await open_reader(records, BOB), await open_reader(records, LOCAL_OWNER)
    access, everything = await reader.collection(SHELF), await owner.collection(SHELF)
    assert [row.document.source for row in await reader.latest(access, notes(), limit=9)] == [NOTES] * 2
    assert len(await owner.latest(everything, notes(HIDDEN), limit=9)) == 2
    for wrong in (notes(HIDDEN), notes(NOTES, collection="elsewhere")):
        with pytest.raises(NotFound):
            await reader.latest(access, wrong, limit=9)


async def test_only_what_is_seen_begins(records: SqlRecords) -> None:
    reader, owner = await open_reader(records, BOB), await open_reader(records, LOCAL_OWNER)
    documents = [f"{HIDDEN}1", f"{NOTES}2", "nobody", f"{NOTES}1"]
    assert [row.chunk.text for row in await reader.beginnings(documents)] == ["notes2", "notes1"]
    assert [row.chunk.text for row in await owner.beginnings(documents)] == ["hidden1", "notes2", "notes1"]
    access, everything = await reader.collection(SHELF), await owner.collection(SHELF)
    assert [document.id for document in await reader.inside(access, documents)] == [f"{NOTES}2", f"{NOTES}1"]
    assert len(await owner.inside(everything, documents)) == 3


async def test_a_name_that_is_the_id_of_a_hidden_source_is_a_name(records: SqlRecords) -> None:
    """An id comes before a name, but not one that is hidden."""
    await records.change_source(HIDDEN, name="y")
    await records.change_source(NOTES, name=HIDDEN)
    reader, owner = await open_reader(records, BOB), await open_reader(records, LOCAL_OWNER)
    for seer, expected in ((reader, NOTES), (owner, HIDDEN)):
        source = await seer.source(await seer.collection(SHELF), HIDDEN)
        assert source is not None
        assert source.id == expected
    assert await reader.source(await reader.collection(SHELF), "y") is None
