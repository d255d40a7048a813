"""How many statements and transactions one write takes: a budget that only falls."""

from pathlib import Path

import pytest
from tests.support.counting import Counted, counting

import conspectus
from conspectus import Settings
from conspectus.model.memory import Scope
from conspectus.testing.embedders import HashedEmbedder

ANN = Scope("ann")
SETTINGS = Settings(run_background_jobs="off", log_level="critical")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("postgres_url") if request.param == "postgresql" else str(tmp_path)


async def test_a_text_that_is_waited_for_is_written_with_its_vector(address: str) -> None:
    async with conspectus.open(address, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add("the first text", wait=True)
        with counting() as counted:
            await engine.add("the tides turn in the harbour", wait=True)
        assert (await engine.maintenance.status()).collections[0].vectors == 2
        retrieval = await engine.retrieve("the tides turn in the harbour", retrievers=("vector",), limit=1)
        assert retrieval.hits[0].similarity == pytest.approx(1.0, abs=1e-3)
    # The index in PostgreSQL is written in the same transaction.
    maximum = Counted(12, 2) if address.startswith("postgresql") else Counted(12, 1)
    assert counted.transactions <= maximum.transactions
    assert counted.statements <= maximum.statements


async def test_a_memory_is_written_in_few_statements(address: str) -> None:
    async with conspectus.open(address, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        for text in ("Ann lives in Rome", "Ann likes the sea in Rome"):
            await engine.memory.add(text, scope=ANN)
        with counting() as counted:
            await engine.memory.add("Ann lives in Rome again", scope=ANN)
            await engine._context.core.open_indexes.wait_until_idle()
        recalled = await engine.memory.recall("Rome again", scope=ANN)
        assert recalled.memories[0].memory.text == "Ann lives in Rome again"
    maximum = Counted(10, 2) if address.startswith("postgresql") else Counted(10, 1)
    assert counted.transactions <= maximum.transactions
    assert counted.statements <= maximum.statements


async def test_a_memory_that_is_waited_for_is_embedded_in_few_statements(address: str) -> None:
    async with conspectus.open(address, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        for text in ("Ann lives in Rome", "Ann likes the sea in Rome"):
            await engine.memory.add(text, scope=ANN, wait=True)
        with counting() as counted:
            await engine.memory.add("Ann lives in Rome again", scope=ANN, wait=True)
        assert (await engine.maintenance.status()).collections[0].pending == 0
    # All that is read to find near duplicates is read in one transaction.
    maximum = Counted(12, 2) if address.startswith("postgresql") else Counted(12, 1)
    assert counted.transactions <= maximum.transactions
    assert counted.statements <= maximum.statements


async def test_memories_right_after_each_other_are_indexed_from_what_is_at_hand(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.memory.add("Ann lives in Rome", scope=ANN)
        await engine._context.core.open_indexes.wait_until_idle()
        with counting() as counted:
            for town in ("Oslo", "Bern", "Riga", "Cork"):
                await engine.memory.add(f"Ann was in {town}", scope=ANN)
            await engine._context.core.open_indexes.wait_until_idle()
        recalled = await engine.memory.recall("Riga", scope=ANN, limit=1)
        assert recalled.memories[0].memory.text == "Ann was in Riga"
    assert counted.transactions <= 4 * 2
    assert counted.statements <= 4 * 12
