"""Background work of a process on what other processes stored, also while the embedder refuses."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.embedders import LockedEmbedder
from tests.waiting import until

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.background_work import run_background_work
from conspectus.errors import ProviderError
from conspectus.ingest.background_workers import GATHERING_SECONDS
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.memory import Scope
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), entity_extractor="rules")


async def has_all(engine: Engine) -> bool:
    """Whether nothing waits for its vector."""
    return not any(collection.pending for collection in (await engine.maintenance.status()).collections)


async def test_an_embedder_that_refuses_is_left_alone_for_a_while(tmp_path: Path) -> None:
    embedder = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=embedder) as engine:
        await engine.add("a ship sails")
        with pytest.raises(ProviderError, match="does not know the key"):
            await engine.documents.wait_until_embedded()
        calls = embedder.calls
        for _ in range(3):
            await engine.maintenance.resume(rest_seconds=60)
            await asyncio.sleep(0.1)
        assert embedder.calls == calls
        embedder.locked = False
        await engine.maintenance.resume()
        await until(lambda: has_all(engine))
        assert embedder.calls == calls + 1


async def test_what_another_process_stored_is_embedded_by_a_worker(tmp_path: Path) -> None:
    writing = replace(SETTINGS, run_background_jobs="off")
    async with (
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine,
        conspectus.open(tmp_path, settings=writing, embedder=HashedEmbedder()) as writer,
    ):
        await writer.add("a ship sails")
        assert not await has_all(writer)
        working = asyncio.create_task(run_background_work(engine))
        await until(lambda: has_all(writer))
        working.cancel()
        assert await asyncio.wait({working}) == ({working}, set())


async def test_who_leaves_the_work_to_others_makes_no_vector_and_finds_no_name(tmp_path: Path) -> None:
    embedder = HashedEmbedder()
    settings = replace(SETTINGS, run_background_jobs="off")
    async with conspectus.open(tmp_path, settings=settings, embedder=embedder) as engine:
        await engine.add("Ada Lovelace sails from London")
        await engine.graph.set_entity_extraction()
        await engine.add("Alan Turing sails from Dover")
        await engine.memory.add("Grace Hopper likes Ada Lovelace", scope=Scope("grace"))
        await engine.channels.add_messages(
            NewMessage("Is Grace Hopper there?", author="Ada"), channel="harbour"
        )
        await engine.streams.put("cam")
        await engine.streams.add_captions([NewCaption("Ada Lovelace walks by", 1, 2)], stream="cam")
        await asyncio.sleep(5 * GATHERING_SECONDS)
        assert embedder.calls == 0
        assert not await engine.graph.list_entities()
        await engine.documents.wait_until_embedded()
        assert embedder.calls
        assert await engine.graph.list_entities()
