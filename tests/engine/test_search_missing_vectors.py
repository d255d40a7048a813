"""Searches say that vectors are missing, whether or not they found something."""

from pathlib import Path

import pytest
from tests.support.embedders import POISON, LockedEmbedder, PickyEmbedder

import conspectus
from conspectus import NewCaption, NewDocument, NewMessage, NewStream, Settings
from conspectus.engine.missing_vectors import FAILED, PENDING
from conspectus.errors import ProviderError
from conspectus.model.filter import Eq
from conspectus.testing.embedders import HashedEmbedder

WRITER = Settings(run_background_jobs="off")


async def test_every_search_and_window_says_that_vectors_are_pending(tmp_path: Path) -> None:
    locked = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=WRITER, embedder=locked) as engine:
        await engine.add(["red fox", "blue whale"])
        await engine.memory.add("a fox in the garden", user="ann")
        await engine.channels.add_messages([NewMessage("a fox!", author="mia", key="1")], channel="zoo")
        await engine.streams.put(NewStream("camera"))
        await engine.streams.add_captions([NewCaption("a fox walks by", 0.0, 2.0)], stream="camera")
        hits = (await engine.retrieve("fox")).hits
        memory_window = await engine.memory.window("fox", user="ann")
        channel_window = await engine.channels.window("fox", channel="zoo")
        stream_window = await engine.streams.window("fox", streams=("camera",))
        for answer in (
            await engine.search("fox"),
            await engine.search("fox", collection="*"),
            await engine.window("fox"),
            await engine.explain("fox", document=hits[0].document.id),
            await engine.search.augment("fox"),
            await engine.memory.recall("fox", user="ann"),
            memory_window.window,
            channel_window.window,
            await engine.streams.search("fox", streams=("camera",)),
            stream_window.window,
        ):
            assert PENDING in answer.notices


async def test_pending_vectors_are_in_each_notice(tmp_path: Path) -> None:
    locked = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=WRITER, embedder=locked) as engine:
        await engine.add(["red fox", "blue whale"])
        for _ in range(2):
            assert (await engine.retrieve("fox")).notices == (PENDING,)
        window = await engine.window("fox", 500)
        assert (window.notices, PENDING in window.text) == ((PENDING,), False)
        assert (await engine.retrieve("fox", retrievers=("keyword",))).notices == ()
        locked.locked = False
        await engine.documents.wait_until_embedded()
        assert (await engine.retrieve("fox")).notices == ()


async def test_failed_vectors_are_in_each_notice(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=PickyEmbedder()) as engine:
        await engine.add(["red fox", POISON], wait=True)
        assert (await engine.retrieve("fox")).notices == (FAILED,)
        assert (await engine.maintenance.status()).collections[0].errors == 1


async def test_only_what_the_filter_names_is_in_a_notice(tmp_path: Path) -> None:
    """Vectors that wait, or failed, elsewhere in the collection change nothing here."""
    async with conspectus.open(tmp_path, settings=Settings(), embedder=PickyEmbedder()) as engine:
        await engine.add([NewDocument(text="red fox", metadata={"kind": "animal"})], wait=True)
        await engine.add([NewDocument(text=POISON, metadata={"kind": "poison"})], wait=True)
        for kind, notices in (("animal", ()), ("poison", (FAILED,))):
            assert (await engine.retrieve("fox", filter=Eq(("kind",), kind))).notices == notices


async def test_a_worker_that_waits_for_its_provider_says_why(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=LockedEmbedder()) as engine:
        with pytest.raises(ProviderError):
            await engine.add(["red fox"], wait=True)
        [notice] = (await engine.retrieve("fox")).notices
        assert "not embedded yet" in notice and "does not know the key" in notice


async def test_a_whole_collection_says_nothing(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(), embedder=HashedEmbedder()) as engine:
        await engine.add(["red fox"], wait=True)
        assert (await engine.retrieve("fox")).notices == ()
