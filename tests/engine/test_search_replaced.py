"""A search while documents are replaced: it has the others, and says that some may be missing."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument
from conspectus.engine import Engine
from conspectus.errors import StorageBusy
from conspectus.model.ids import ChunkId
from conspectus.model.records import StoredChunk
from conspectus.records.store import SqlRecords
from conspectus.retrieval.pipeline import REPLACED_NOTICE

HOT = "berths.md"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


async def add_document(engine: Engine, key: str, text: str) -> None:
    await engine.documents.add(NewDocument(text, key=key), source="harbour")


class RecordsBesideAWriter(SqlRecords):
    """Records of which somebody replaces the hot document before each of so many reads of rows."""

    def __init__(self, engine: Engine, *, replacements: int) -> None:
        super().__init__(engine._context.parts.records.transactions)
        self._engine = engine
        self._versions = iter(range(replacements))

    async def hydrate(self, ids: Sequence[ChunkId]) -> Sequence[StoredChunk]:
        version = next(self._versions, None)
        if version is not None:
            await add_document(self._engine, HOT, f"berths, version {version}")
        return await super().hydrate(ids)


def beside_a_writer(engine: Engine, *, replacements: int) -> Engine:
    records = RecordsBesideAWriter(engine, replacements=replacements)
    return Engine(replace(engine._context.parts, records=records))


@pytest.mark.parametrize(("replacements", "notices"), [(1, ()), (4, ()), (1_000, (REPLACED_NOTICE,))])
async def test_documents_that_stay_are_hits(
    engine: Engine, replacements: int, notices: tuple[str, ...]
) -> None:
    await add_document(engine, HOT, "berths, the first version")
    await add_document(engine, "plan.md", "the plan of berths in the harbour")
    reading = beside_a_writer(engine, replacements=replacements)
    retrieval = await reading.retrieve("berths", retrievers=["keyword"])
    keys = {hit.document.key for hit in retrieval.hits}
    assert keys == ({"plan.md"} if notices else {HOT, "plan.md"})
    assert retrieval.notices == notices


async def test_a_search_of_nothing_but_replaced_documents_is_an_error(engine: Engine) -> None:
    await add_document(engine, HOT, "berths, the first version")
    reading = beside_a_writer(engine, replacements=1_000)
    with pytest.raises(StorageBusy, match="try again"):
        await reading.retrieve("berths", retrievers=["keyword"])


async def test_a_document_that_is_replaced_now_and_then_is_found(engine: Engine) -> None:
    await add_document(engine, HOT, "berths, the first version")
    reading = beside_a_writer(engine, replacements=7)
    retrieval = await reading.retrieve("berths", retrievers=["keyword"])
    assert [hit.chunk.text for hit in retrieval.hits] == ["berths, version 6"]
