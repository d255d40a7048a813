"""Collections that are written at once, by two processes as the server sees them: no change is overtaken."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from conspectus.model.ids import CollectionId, DocumentId, SourceId
from conspectus.model.records import Change, PreparedDocument
from conspectus.records.store import SqlRecords, open_records
from tests.support.samples import SPACE, notes, prepared, shelf, vector

PLACES = [CollectionId(f"place {number}") for number in range(5)]
ROUNDS = 12


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[tuple[SqlRecords, SqlRecords]]:
    first, second = await open_records(postgres_url), await open_records(postgres_url)
    for collection in PLACES:
        await first.create_collection(shelf(collection))
        await first.put_source(notes(f"notes of {collection}", collection))
    yield first, second
    await first.close()
    await second.close()


def text_of(collection: CollectionId, key: str, *chunks: str) -> PreparedDocument:
    return prepared(
        f"{collection} {key}", *chunks, collection=collection, source=SourceId(f"notes of {collection}")
    )


async def write_in_turn(records: SqlRecords, writer: int, collection: CollectionId) -> None:
    """Add, replace, embed and delete; now and then in a batch for two collections."""
    for number in range(ROUNDS):
        key = f"{writer}.{number % 4}"
        batch = [text_of(collection, key, *[f"{number} "] * (1 + number % 3))]
        if number % 5 == 4:
            other = PLACES[(PLACES.index(collection) + 1) % len(PLACES)]
            batch.append(text_of(other, f"{collection} {key}", f"{number} "))
        await records.write(batch)
        waiting = await records.list_unembedded(collection, SPACE, limit=5)
        await records.put_vectors(collection, SPACE, [(missing.chunk.id, vector(1)) for missing in waiting])
        if number % 3 == 2:
            await records.delete([DocumentId(f"{collection} {key}")])


async def follow_changes(records: SqlRecords, collection: CollectionId, ended: asyncio.Event) -> list[Change]:
    """All changes in the order in which they are seen, each asked for after the one before it."""
    reader, seen = records.reader(collection, SPACE), list[Change]()
    last_round = False
    while not last_round:
        last_round = ended.is_set()
        while changes := await reader.changes_since(seen[-1].sequence if seen else 0, limit=3):
            seen += changes
        await asyncio.sleep(0)
    return seen


async def test_no_change_is_overtaken_by_a_later_one(stores: tuple[SqlRecords, SqlRecords]) -> None:
    ended = asyncio.Event()
    following = [asyncio.create_task(follow_changes(stores[1], collection, ended)) for collection in PLACES]
    await asyncio.gather(
        *(
            write_in_turn(records, 2 * number + collection_number % 2, collection)
            for number, records in enumerate(stores)
            for collection_number, collection in enumerate(PLACES)
        )
    )
    ended.set()
    for collection, seen in zip(PLACES, await asyncio.gather(*following), strict=True):
        history = await stores[0].reader(collection, SPACE).changes_since(0, limit=100_000)
        assert seen == list(history)
        assert len({change.sequence for change in seen}) == len(seen) > ROUNDS
    assert await stores[0].check() == []
