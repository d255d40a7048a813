"""Processes on one PostgreSQL that make the vectors of one collection together, none of them twice."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.ingest.embedding_backfill import PORTION_CHUNKS
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder
from tests.waiting import until

SETTINGS = replace(Settings(), log_level="critical", run_background_jobs="off")
COUNT = 2 * PORTION_CHUNKS + 100
"""So many texts lie in three portions at least."""


class Remote(HashedEmbedder):
    """It is not this machine that works; what was asked for is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        await asyncio.sleep(0.05)
        return await super().embed_documents(texts)


class Machines:
    """Engines on one database, each with a model of its own."""

    def __init__(self, stack: AsyncExitStack, url: str) -> None:
        self._stack = stack
        self._url = url

    async def engine(self, cache: Path) -> tuple[Engine, Remote]:
        """A process of the machine whose folder that is."""
        model = Remote()
        settings = replace(SETTINGS, cache=str(cache))
        opened = conspectus.open(self._url, settings=settings, embedder=model)
        return await self._stack.enter_async_context(opened), model


def texts(count: int) -> list[NewDocument]:
    return [NewDocument(f"text {number}", key=str(number)) for number in range(count)]


async def verify(engine: Engine, *models: Remote) -> None:
    """Every text has been asked for once and has its vector."""
    assert Counter(text for model in models for text in model.texts) == Counter(
        document.text for document in texts(COUNT)
    )
    report = await engine.maintenance.check()
    assert report.clean, report
    (collection,) = (await engine.maintenance.status()).collections
    assert (collection.vectors, collection.pending) == (COUNT, 0)


async def test_two_machines_embed_one_collection(postgres_url: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        machines = Machines(stack, postgres_url)
        one, first = await machines.engine(tmp_path / "one")
        other, second = await machines.engine(tmp_path / "other")
        await one.add(texts(COUNT))
        assert (
            sum(
                await asyncio.gather(
                    one.documents.wait_until_embedded(), other.documents.wait_until_embedded()
                )
            )
            == COUNT
        )
        assert first.texts
        assert second.texts
        await verify(one, first, second)


async def test_one_process_of_a_machine_embeds(postgres_url: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        machines = Machines(stack, postgres_url)
        one, first = await machines.engine(tmp_path)
        other, second = await machines.engine(tmp_path)
        await one.add(texts(COUNT))
        assert sorted(
            await asyncio.gather(one.documents.wait_until_embedded(), other.documents.wait_until_embedded())
        ) == [0, COUNT]
        await verify(one, first, second)


async def test_what_one_leaves_the_other_embeds(postgres_url: str, tmp_path: Path) -> None:
    """One that ends in the middle of a portion gives it back with what it has not embedded."""
    async with AsyncExitStack() as stack:
        machines = Machines(stack, postgres_url)
        one, first = await machines.engine(tmp_path / "one")
        async with AsyncExitStack() as short:
            other, second = await Machines(short, postgres_url).engine(tmp_path / "other")
            await one.add(texts(COUNT))
            leaving = asyncio.create_task(other.documents.wait_until_embedded())

            async def has_begun() -> bool:
                return len(second.texts) > 0

            await until(has_begun)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        tried = set(second.texts)
        assert 0 < len(tried) < COUNT
        await one.documents.wait_until_embedded()
        (collection,) = (await one.maintenance.status()).collections
        assert (collection.vectors, collection.pending) == (COUNT, 0)
        assert set(first.texts) | tried == {document.text for document in texts(COUNT)}
