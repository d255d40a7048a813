"""What people may read in collections with mirrored sources, beside changes of any process."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.contract.test_hot_plans import recorded_statements
from tests.support.samples import NOON, NOTES, SHELF, notes, shelf

from conspectus.access.readable_sources import ReadableSources
from conspectus.model.access import Access, Person, User
from conspectus.model.filter import among_sources
from conspectus.model.ids import KeyId, SourceId, UserId
from conspectus.model.viewers import RemotePerson
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.store import SqlRecords, open_records

DRAFTS = SourceId("drafts")
ANN, BEN = (Person(name, id=UserId(name)) for name in ("ann", "ben"))
HOUR = timedelta(hours=1)


@dataclass
class Scene:
    """A collection with a mirrored source and another one, and the time."""

    records: SqlRecords
    accounts: SqlAccounts
    elsewhere: SqlAccounts
    """The same accounts, as another process opens them."""
    now: datetime = NOON
    readable: ReadableSources = field(init=False)

    def __post_init__(self) -> None:
        self.readable = ReadableSources(self.records, self.accounts, lambda: self.now)

    async def read(self, person: Person = ANN) -> set[SourceId]:
        collection = await self.records.collection(SHELF)
        assert collection is not None
        access = await self.readable.restrict(person, collection, Access("viewer"))
        if access.is_whole:
            return {source.id for source in await self.records.sources(SHELF)}
        assert access.readable in {None, among_sources(access.sources)}
        return set(access.sources)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    path = tmp_path / "records.sqlite"
    records, elsewhere = [await open_records(path) for _ in range(2)]
    try:
        await records.create_collection(shelf())
        for source in (NOTES, DRAFTS):
            await records.put_source(notes(source))
        accounts = SqlAccounts(records.transactions)
        for person in (ANN, BEN):
            await accounts.add_user(User(person.id, person.name, NOON))
        await accounts.mirror_source(NOTES, "mail", ["group:all"])
        await accounts.map_remote_person("mail", RemotePerson("ann", ANN.id), created=NOON)
        await accounts.put_remote_members("mail", {"group:all": ["ann"]})
        yield Scene(records, accounts, SqlAccounts(elsewhere.transactions))
    finally:
        await records.close()
        await elsewhere.close()


async def test_a_revocation_by_another_process_holds_for_the_next_read(scene: Scene) -> None:
    for _ in range(3):
        assert await scene.read() == {NOTES, DRAFTS}
        await scene.elsewhere.put_remote_members("mail", {"group:all": []})
        assert await scene.read() == {DRAFTS}
        await scene.elsewhere.put_remote_members("mail", {"group:all": ["ann"]})


async def test_a_source_is_hidden_at_its_instant(scene: Scene) -> None:
    await scene.accounts.hide_sources([NOTES], since=NOON + HOUR)
    assert await scene.read() == {NOTES, DRAFTS}
    scene.now += HOUR
    assert await scene.read() == {DRAFTS}
    scene.now -= HOUR
    assert await scene.read() == {NOTES, DRAFTS}


async def test_viewers_are_read_once_for_each_change(scene: Scene) -> None:
    assert (await scene.read(ANN), await scene.read(BEN)) == ({NOTES, DRAFTS}, {DRAFTS})
    await scene.accounts.note_key_use(KeyId("none"), NOON)
    with recorded_statements() as statements:
        assert (await scene.read(ANN), await scene.read(BEN)) == ({NOTES, DRAFTS}, {DRAFTS})
    assert "source_viewers" not in repr(statements)


async def test_few_sources_are_cached_at_once(scene: Scene) -> None:
    scene.readable = ReadableSources(scene.records, scene.accounts, lambda: scene.now, max_sources=2)
    for _ in range(2):
        assert (await scene.read(ANN), await scene.read(BEN)) == ({NOTES, DRAFTS}, {DRAFTS})
