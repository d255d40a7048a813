"""What a worker does with what others stored, also where the embedder refuses."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import until

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.background import keep_working
from conspectus.errors import ProviderError
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), names="rules")


class LockedEmbedder(HashedEmbedder):
    """Refuses everything until it has a valid key."""

    locked = True

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows. Raises ProviderError without the key."""
        vectors = await super().embed_documents(texts)
        if self.locked:
            raise ProviderError("hashed", "does not know the key", status=401)
        return vectors


async def has_all(engine: Engine) -> bool:
    """Whether nothing waits for its vector."""
    return not any(each.pending for each in (await engine.status()).collections)


async def test_an_embedder_that_refuses_is_left_alone_for_a_while(tmp_path: Path) -> None:
    embedder = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=embedder) as engine:
        await engine.add("a ship sails")
        with pytest.raises(ProviderError, match="does not know the key"):
            await engine.settle()
        asked = embedder.calls
        for _ in range(3):
            await engine.resume(rested=60)
            await asyncio.sleep(0.1)
        assert embedder.calls == asked
        embedder.locked = False
        await engine.resume()
        await until(lambda: has_all(engine))
        assert embedder.calls == asked + 1


async def test_what_another_process_stored_is_embedded_by_a_worker(tmp_path: Path) -> None:
    writing = replace(SETTINGS, background="off")
    async with (
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine,
        conspectus.open(tmp_path, settings=writing, embedder=HashedEmbedder()) as writer,
    ):
        await writer.add("a ship sails")
        assert not await has_all(writer)
        working = asyncio.create_task(keep_working(engine))
        await until(lambda: has_all(writer))
        working.cancel()
        assert await asyncio.wait({working}) == ({working}, set())
