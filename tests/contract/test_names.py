"""Every keeper of names, held to its contract: in memory, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.names_contract import NamesContract, everything, name
from tests.support.in_memory_names import MemoryNames
from tests.support.samples import SHELF, prepared

from conspectus.model.ids import ChunkId
from conspectus.model.records import PreparedDocument
from conspectus.ports.graphs import MentionStore
from conspectus.records.graph.mentions import SqlNames
from conspectus.records.store import SqlRecords, open_records


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(tmp_path / "records.sqlite")
    yield opened
    await opened.close()


class TestSqlNames(NamesContract):
    @pytest.fixture
    def store(self, records: SqlRecords) -> MentionStore:
        return SqlNames(records.transactions)

    async def test_mentions_that_come_with_texts_are_stored_unless_earlier_texts_lack_theirs(
        self, store: MentionStore, records: SqlRecords, passages: list[ChunkId]
    ) -> None:
        def named(key: str) -> PreparedDocument:
            return replace(prepared(key, "Ada. ", "Bob."), mentions=[[name("Ada")], [name("Bob")]])

        assert not (await records.write([named("while it is off")])).has_mentions
        await store.enable(SHELF, True)
        assert not (await records.write([named("behind others")])).has_mentions
        waiting = await everything(store)
        assert len(waiting) == 3 + 2 + 2
        await store.put(SHELF, {stored.chunk: [] for stored in waiting})
        assert (await records.write([named("d"), named("e")])).has_mentions
        assert (
            await records.write([replace(named("d"), chunks=prepared("", "Eve. ", "Bob.").chunks)])
        ).has_mentions
        assert await everything(store) == []
        assert {
            entity.key: entity.passages for entity in await store.counts(None, SHELF, begins="", limit=9)
        } == {
            "ada": 2,
            "bob": 2,
        }
        assert not (await records.write([named("f"), prepared("g", "without")])).has_mentions
        assert len(await everything(store)) == 3


class TestPostgresNames(TestSqlNames):
    @pytest.fixture
    def records(self, postgres_records: SqlRecords) -> SqlRecords:
        return postgres_records


class TestMemoryNames(NamesContract):
    @pytest.fixture
    def store(self, records: SqlRecords) -> MentionStore:
        return MemoryNames(records)
