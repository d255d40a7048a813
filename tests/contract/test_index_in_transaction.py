"""What a transaction writes into records in PostgreSQL is in their index when it is committed."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection
from tests.support.in_memory_index import MemoryIndex
from tests.support.samples import SPACE, notes, prepared, shelf, vector

from conspectus.bootstrap.pgvector import MAX_CHUNKS, PgvectorIndexes
from conspectus.errors import Conflict, NotFound
from conspectus.ingest.open_index import catch_up
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId, DocumentId, SourceId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import Collection
from conspectus.ports import Index, Probe, Reader
from conspectus.records.collection_reader import CollectionReader
from conspectus.records.store import SqlRecords, open_records
from conspectus.settings import Settings
from conspectus.text.analyzer import Analyzer

FOX = Probe(EVERYTHING, "fox", None, 1_000)


@dataclass
class Shop:
    """Records with their indexes, as an engine has them."""

    records: SqlRecords
    indexes: PgvectorIndexes
    collection: Collection
    reader: Reader
    index: Index

    async def behind(self) -> bool:
        """Whether an index that is opened now lacks something."""
        opened = await self.indexes.open(self.collection, SPACE, self.reader)
        return opened.applied_sequence() < await self.reader.last_sequence()

    async def is_right(self) -> bool:
        """Whether the index answers as the exact one does, and differs in nothing from the records."""
        reference = MemoryIndex(self.reader, Analyzer("english").terms)
        for index in (self.index, reference):
            await catch_up(index, self.reader, await self.reader.last_sequence())
        candidates, expected = await self.index.search(FOX), await reference.search(FOX)
        same = (candidates.ids.tolist(), candidates.words.tolist()) == (
            expected.ids.tolist(),
            expected.words.tolist(),
        )
        return same and await self.index.check() == []


@pytest.fixture
async def shop(emptied_url: str) -> AsyncIterator[Shop]:
    records = await open_records(emptied_url)
    indexes = PgvectorIndexes(records.transactions, Settings())
    records.transactions.before_commit(indexes.apply_before_commit)
    collection = await records.create_collection(shelf())
    await records.put_source(notes())
    reader = records.reader(collection.id, SPACE)
    index = await indexes.open(collection, SPACE, reader)
    await records.write([prepared("first", "a fox")])
    await catch_up(index, reader, await reader.last_sequence())
    yield Shop(records, indexes, collection, reader, index)
    await indexes.close()
    await records.close()


async def test_each_write_is_in_the_index_at_once(shop: Shop) -> None:
    done = await shop.records.write([prepared("second", "another fox", "and its fox"), prepared("third", "")])
    assert not await shop.behind()
    await shop.records.write([prepared("second", "a new fox")])
    assert not await shop.behind()
    chunks = [chunk.chunk.id for chunk in await shop.records.document_chunks(done.written[0].id)]
    await shop.records.put_vectors(shop.collection.id, SPACE, [(chunk, vector(1.0)) for chunk in chunks])
    assert not await shop.behind()
    await shop.records.delete([DocumentId("first")])
    assert not await shop.behind()
    assert await shop.is_right()


async def test_an_index_that_is_behind_is_left_to_those_who_ask(shop: Shop) -> None:
    many = [prepared(f"many {number}", "fox") for number in range(MAX_CHUNKS + 1)]
    await shop.records.write(many)
    assert await shop.behind()
    await shop.records.write([prepared("one more", "fox")])
    assert await shop.behind()
    assert await shop.is_right()
    await shop.records.write([prepared("yet one more", "fox")])
    assert not await shop.behind()
    assert await shop.is_right()


async def test_what_is_undone_is_not_in_the_index(shop: Shop) -> None:
    with pytest.raises(NotFound):
        await shop.records.write(
            [prepared("good", "fox"), prepared("bad", "fox", source=SourceId("nowhere"))]
        )
    assert not await shop.behind()
    assert await shop.is_right()


@pytest.mark.parametrize("others", [0, 1, 2])
async def test_a_work_that_is_undone_leaves_nothing_in_the_index(shop: Shop, others: int) -> None:
    """It shares its transaction with works that are not, and their numbers are the same then."""
    transactions = shop.records.transactions

    def refuse(_: Connection) -> None:
        raise Conflict("document", "bad", "is refused after it was written")

    async def refused() -> None:
        with transactions.record_in_writes(refuse), pytest.raises(Conflict):
            await shop.records.write([prepared("bad", "a bad fox")])

    wait = transactions.write(lambda _: time.sleep(0.2))
    good = [shop.records.write([prepared(f"good {number}", "a fox")]) for number in range(others)]
    await asyncio.gather(wait, refused(), *good, transactions.write(lambda _: None, locks={"another"}))
    assert not await shop.behind()
    assert await shop.is_right()
    assert len((await shop.index.search(FOX)).ids) == 1 + others


async def test_an_index_that_cannot_be_written_stops_no_writer(shop: Shop) -> None:
    tables = (await shop.index.status()).details["tables"]
    work = f"ALTER TABLE {tables}_rows ADD CONSTRAINT nothing CHECK (length > 1000) NOT VALID"
    await shop.records.transactions.write(lambda connection: connection.exec_driver_sql(work))
    await shop.records.write([prepared("second", "fox")])
    assert await shop.behind()
    await shop.index.rebuild()
    assert await shop.is_right()


async def test_many_write_and_ask_at_once(shop: Shop) -> None:
    async def write(writer: int) -> None:
        for number in range(8):
            await shop.records.write([prepared(f"{writer} {number % 3}", "fox " * (number + 1))])
            candidates = await shop.index.search(FOX)
            assert len(candidates.ids) <= candidates.total
            await catch_up(shop.index, shop.reader, await shop.reader.last_sequence())

    await asyncio.gather(*map(write, range(4)), shop.index.rebuild())
    assert await shop.is_right()


async def test_many_are_built_at_once_over_few_connections(emptied_url: str) -> None:
    """Each holds one connection and reads over another."""
    records = await open_records(emptied_url, busy_seconds=1, connections=3)
    indexes = PgvectorIndexes(records.transactions, Settings())
    readers = {}
    for number in range(6):
        collection = await records.create_collection(shelf(str(number)))
        await records.put_source(notes(str(number), collection.id))
        source, key = SourceId(str(number)), f"in {number}"
        await records.write([prepared(key, "a fox", collection=collection.id, source=source)])
        reader = records.reader(collection.id, SPACE)
        readers[reader] = await indexes.open(collection, SPACE, reader)
    await asyncio.gather(*(catch_up(index, reader, 1) for reader, index in readers.items()))
    for index in readers.values():
        assert len((await index.search(FOX)).ids) == 1
    await indexes.close()
    await records.close()


async def test_nothing_is_built_of_a_collection_that_is_deleted_meanwhile(shop: Shop) -> None:
    class Deleted(CollectionReader):
        async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
            async for batch in super().scan(after):
                yield batch
            await shop.records.delete_collection(shop.collection.id)

    reader = Deleted(shop.records.transactions, shop.collection.id, SPACE)
    before = (await shop.index.status()).details["tables"]
    with pytest.raises(NotFound):
        await (await shop.indexes.open(shop.collection, SPACE, reader)).rebuild()
    assert (await shop.index.status()).details["tables"] == before
