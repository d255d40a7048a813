"""Engines of video contexts: a temporary one, an open one, and a server."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.served import served
from tests.video_contexts import SubjectEmbeddings, minute

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import ChatAuthFailed, ConspectusError, InvalidInput, StoreClosed
from conspectus.facades.video import (
    ContextEmbedder,
    ContextManager,
    EngineContextStore,
    InMemoryContextStore,
    MilvusContextStore,
    SummarizationFunction,
)
from conspectus.facades.video.functions import NO_CAPTIONS
from conspectus.model.captions import CaptionRange
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = replace(Settings(), log_level="critical")
PROGRAM = """
import asyncio, os, sys
from conspectus.facades.video import ContextManager, InMemoryContextStore
from tests.video_contexts import SubjectEmbeddings, minute

manager = ContextManager(SubjectEmbeddings(), InMemoryContextStore())

async def main():
    await manager.add_documents_batch(["A car.", "A dog."], [minute(0), minute(1)])
    print([each["text"] for each in await manager.retrieve("dog", top_k=1)])
    print(await manager.get_all_captions("gate"))

asyncio.run(main())
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


async def use_manager(manager: ContextManager) -> list[object]:
    """Everything that a manager does, once."""
    ids = await manager.add_documents_batch(
        ["A car arrives.", "A dog barks.", "Rain."], [minute(0), minute(1, tags=["pet"]), minute(2, "yard")]
    )
    await manager.delete_document(ids[2])
    documents = await manager.retrieve("the dog", 1, {"tags": ["pet"]})
    window = await manager.get_context_window("car", stream_id="gate")
    return [
        [(document["text"], round(document["score"], 2), document["metadata"]) for document in documents],
        [document.text for document in window.documents],
        await manager.get_captions_by_time_range(30, "0:45"),
        await manager.get_all_captions(),
        await manager.clear_context("gate"),
        await manager.clear_context(),
    ]


async def test_here_and_on_a_server_it_is_the_same(engine: Engine) -> None:
    here = await use_manager(ContextManager(SubjectEmbeddings(), engine=engine))
    async with (
        served(application(engine, SETTINGS)) as url,
        conspectus.connect(url, settings=SETTINGS) as remote,
    ):
        there = await use_manager(
            ContextManager(SubjectEmbeddings(), EngineContextStore(remote, collection="far"))
        )
    async with ContextManager(SubjectEmbeddings()) as alone:
        assert await use_manager(alone) == here == there
    assert here[1:] == [
        ["A car arrives.", "A dog barks."],
        ["A car arrives."],
        ["A car arrives.", "A dog barks."],
        2,
        0,
    ]


async def test_streams_of_odd_names_are_reached_on_a_server(engine: Engine) -> None:
    async with (
        served(application(engine, SETTINGS)) as url,
        conspectus.connect(url, settings=SETTINGS) as remote,
    ):
        store = EngineContextStore(remote, collection="a/b c?#")
        for name in ("a\nb", "..", "a/b?c#d", "ü🎉 %2F", "\ud800", "x" * 2_000, "captions", "*"):
            added = await store.add_document("mine", {"stream_id": name, "start_time": 3}, [1.0])
            documents = await store.between(CaptionRange(0, 9), name)
            assert [document.id for document in documents] == [added]
            assert await store.clear_stream(name) == 1
        assert list(await remote.collections.list_sources(collection="a/b c?#")) == []


async def test_an_engine_that_embeds_needs_no_embeddings(engine: Engine) -> None:
    manager = ContextManager(engine=engine)
    ids = await manager.add_documents_batch(["A red car arrives.", "A dog barks."], [minute(0), minute(1)])
    await engine.documents.wait_until_embedded(collection="video")
    documents = await manager.retrieve("Which dog barks?")
    assert (documents[0]["id"], manager.pending) == (ids[1], ())
    assert (await engine.collections.get("video")).space == HashedEmbedder().space
    await manager.close()
    assert await engine.documents.count(collection="video") == 2


def test_a_store_and_an_engine_are_one_too_many() -> None:
    with pytest.raises(InvalidInput, match="engine"):
        ContextManager(None, InMemoryContextStore(), engine=object())


async def test_objects_that_embed_can_serve_an_engine(tmp_path: Path) -> None:
    embedder = ContextEmbedder(SubjectEmbeddings(), 4)
    async with conspectus.open(tmp_path / "own", settings=SETTINGS, embedder=embedder) as engine:
        await engine.add(["A car.", "A dog."], wait=True)
        retrieval = await engine.retrieve("dog", retrievers=("vector",))
        assert retrieval.hits[0].chunk.text == "A dog."
    broken = SubjectEmbeddings()
    broken.failing = {"document"}
    with pytest.raises(ConspectusError, match="RuntimeError"):
        await ContextEmbedder(broken, 4).embed_documents(["car"])
    with pytest.raises(InvalidInput, match="5 numbers"):
        await ContextEmbedder(SubjectEmbeddings(), 5).embed_documents(["car"])


def test_one_store_serves_many_event_loops() -> None:
    manager = ContextManager(SubjectEmbeddings())
    asyncio.run(manager.add_document("A car.", minute(0)))
    documents = asyncio.run(manager.retrieve("car"))
    assert [document["text"] for document in documents] == ["A car."]
    asyncio.run(manager.close())


async def test_many_may_write_and_ask_at_once() -> None:
    async with ContextManager(SubjectEmbeddings()) as manager:
        adding = [manager.add_document(f"car {number}", minute(number % 5)) for number in range(40)]
        searches = [manager.retrieve("car") for _ in range(10)]
        done = await asyncio.gather(*adding, *searches)
        assert len(set(done[:40])) == 40 == len(await manager.get_all_captions("gate"))


async def test_who_stops_waiting_stops_nobody_else() -> None:
    async with InMemoryContextStore() as store:
        first = asyncio.create_task(store.add_document("first", {}))
        second = asyncio.create_task(store.add_document("second", {}))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert "second" in {document.text for document in await store.get_all_documents()}


async def test_a_store_that_nobody_holds_any_more_is_closed() -> None:
    store = InMemoryContextStore()
    await store.add_document("text", {})
    [thread] = [thread for thread in threading.enumerate() if thread.name == "conspectus event loop"]
    del store
    gc.collect()
    await asyncio.to_thread(thread.join, 30)
    assert not thread.is_alive()


async def test_closing_twice_or_unused_is_harmless() -> None:
    store = InMemoryContextStore()
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed, match="closed"):
        await store.add_document("text", {})


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("last", ["", "del manager"])
def test_nothing_is_left_of_a_program_that_closes_nothing(tmp_path: Path, used: bool, last: str) -> None:
    """Nor where closing has begun when the interpreter ends."""
    program = PROGRAM if used else PROGRAM.replace("asyncio.run(main())", "")
    program += last
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"TMPDIR": str(tmp_path), "PATH": "", "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ("['A dog.']\n['A car.', 'A dog.']\n" if used else "")
    assert (done.stderr, list(tmp_path.iterdir())) == ("", [])


async def test_settings_choose_the_store(tmp_path: Path) -> None:
    manager = ContextManager.from_settings(SubjectEmbeddings(), Settings(max_context_tokens=7))
    assert isinstance(manager._store, InMemoryContextStore) and manager._max_context_tokens == 7
    settings = Settings(
        index="milvus", milvus_uri="http://db:1", path=str(tmp_path), default_collection="films"
    )
    assert isinstance(ContextManager.from_settings(SubjectEmbeddings(), settings)._store, MilvusContextStore)


async def test_streams_are_summarised_by_name(engine: Engine) -> None:
    store = EngineContextStore(engine)
    manager = ContextManager(SubjectEmbeddings(), store)
    manager.register_function("summarize", SummarizationFunction(store))
    nothing = await manager.call("summarize", "gate")
    assert (nothing["success"], nothing["summary"], nothing["batch_count"]) == (False, NO_CAPTIONS, 0)
    await manager.add_documents_batch(["A car arrives.", "A dog barks."], [minute(0), minute(1)])
    summary = await manager.call("summarize", "gate")
    assert (summary["success"], summary["outcome"], summary["batch_count"]) == (True, "complete", 1)
    assert "car" in summary["summary"]
    late = await manager.call("summarize", stream_id="gate", start_time="1:00:00")
    assert (late["summary"], late["batch_count"]) == (NO_CAPTIONS, 0)


async def test_two_batches_take_three_calls_and_a_model_that_fails_is_told(tmp_path: Path) -> None:
    model = ScriptedChatModel(["In", " short."])
    settings = replace(SETTINGS, embedder="none", job_backoff_ms=1)
    async with conspectus.open(tmp_path / "data", settings=settings, chat_model=model) as engine:
        store = EngineContextStore(engine)
        manager = ContextManager(SubjectEmbeddings(), store)
        manager.register_function("summarize", SummarizationFunction(store))
        texts = [f"Caption {number} of a car." for number in range(7)]
        await manager.add_documents_batch(texts, [minute(number, "gate") for number in range(7)])
        summary = await manager.call("summarize", "gate")
        assert (summary["success"], summary["batch_count"], len(model.asked)) == (True, 2, 3)
        await manager.add_documents_batch(texts, [minute(number, "yard") for number in range(7)])
        model.fails = ChatAuthFailed("scripted", "no")
        failed = await manager.call("summarize", "yard")
        assert (failed["success"], failed["outcome"], failed["batch_count"]) == (False, "failed", 0)
