"""Texts that cannot be analyzed: the indexes skip them, and find them once they can be."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.support.poisoned_analyzer import POISON, POISONED

from conspectus import Engine, NewDocument
from conspectus.bootstrap.components import components_at
from conspectus.bootstrap.models import CALLER_EMBEDDER, Models
from conspectus.bootstrap.store_address import address_of
from conspectus.engine.components import EngineComponents
from conspectus.errors import StorageError, UnindexableText
from conspectus.index.segments.build import LocalBuilder
from conspectus.index.segments.store import SegmentsIndex
from conspectus.index.text_faults import FaultFinder
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Reader, TextAnalysis
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.analyzer import analyzer_for
from conspectus.web.health import Readiness

SETTINGS = Settings(embedder=CALLER_EMBEDDER, run_background_jobs="off")
TEXTS = ("the walrus sleeps", f"the walrus eats {POISON}", "the tide comes")


async def open_segments(
    folder: Path,
    texts: TextAnalysis,
    collection: Collection,
    space: EmbeddingSpace | None,
    reader: Reader,
) -> Index:
    """The embedded index with another analyzer."""
    analyse = texts.analyzer(collection.language)
    dimensions = space.dimensions if space else 0
    builder = LocalBuilder(reader, analyse)
    directory = folder / "segments" / collection.id
    return await SegmentsIndex.open(directory, reader, analyse, dimensions=dimensions, builder=builder)


async def components_in(folder: Path) -> EngineComponents:
    return await components_at(address_of(folder, SETTINGS), SETTINGS, Models(SETTINGS, HashedEmbedder()))


@asynccontextmanager
async def open_engine(
    folder: Path, texts: TextAnalysis | None = None, *, checked_with: TextAnalysis | None = None
) -> AsyncIterator[Engine]:
    """An engine with the analyzer of an earlier version, or with the usual one."""
    usual = await components_in(folder)
    texts = texts or usual.texts
    components = replace(usual, open_index=partial(open_segments, folder, texts), texts=checked_with or texts)
    engine = Engine(components)
    try:
        yield engine
    finally:
        await engine.close()


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A store with a text that its analyzer cannot handle, which an earlier version had not checked."""
    unchecked = replace(POISONED, analyzer=lambda language: analyzer_for(language).terms)
    async with open_engine(tmp_path, POISONED, checked_with=unchecked) as engine:
        with pytest.raises(UnindexableText):
            await engine.add([NewDocument(text, key=text[:12]) for text in TEXTS])
    return tmp_path


async def search_texts(engine: Engine, query: str) -> set[str]:
    return {hit.chunk.text for hit in (await engine.retrieve(query, retrievers=("keyword",))).hits}


async def test_a_text_that_cannot_be_analyzed_is_refused_and_nothing_is_stored(tmp_path):
    async with open_engine(tmp_path, POISONED) as engine:
        with pytest.raises(UnindexableText, match="LookupError") as refused:
            await engine.add([NewDocument(text) for text in TEXTS])
        assert POISON not in str(refused.value)
        with pytest.raises(UnindexableText):
            await engine.add(NewDocument("a text", title=POISON))
        assert (await engine.documents.list()).documents == ()
        await engine.add(NewDocument(TEXTS[0]))
        assert await search_texts(engine, "walrus") == {TEXTS[0]}
        with pytest.raises(UnindexableText, match="query"):
            await engine.retrieve(POISON)


async def test_the_index_follows_past_a_text_that_cannot_be_analyzed(folder):
    async with open_engine(folder, POISONED) as engine:
        assert await search_texts(engine, "walrus tide") == {TEXTS[0], TEXTS[2]}
        await engine.add(NewDocument("another walrus"))
        assert "another walrus" in await search_texts(engine, "walrus")
        [collection] = (await engine.maintenance.status()).collections
        assert (collection.unindexable, collection.lag, collection.fault) == (1, 0, None)
        [document] = (await engine.documents.list(status="unindexable")).documents
        assert (document.status, document.error) == ("unindexable", "LookupError")
        assert document.id not in {
            document.id for document in (await engine.documents.list(status="pending")).documents
        }
        [chunk] = await engine.documents.list_chunks(document.id)
        assert chunk.unindexable == "LookupError"
        [[problem]] = (await engine.maintenance.check()).index.values()
        assert (problem.problem, problem.detail) == ("unindexable", "LookupError")


async def test_a_text_is_found_once_its_analyzer_is_mended(folder):
    async with open_engine(folder, POISONED) as engine:
        await search_texts(engine, "walrus")
    async with open_engine(folder) as engine:
        assert await search_texts(engine, "walrus") == {TEXTS[0], TEXTS[1]}
        assert (await engine.maintenance.status()).collections[0].unindexable == 0
        assert (await engine.maintenance.check()).clean


async def test_a_rebuild_leaves_out_what_cannot_be_analyzed(folder):
    async with open_engine(folder, POISONED) as engine:
        await engine.maintenance.reindex()
        assert await search_texts(engine, "walrus tide") == {TEXTS[0], TEXTS[2]}
        assert (await engine.maintenance.status()).collections[0].unindexable == 1


async def test_a_text_that_is_replaced_is_no_longer_marked(folder):
    async with open_engine(folder, POISONED) as engine:
        await search_texts(engine, "walrus")
        await engine.add(NewDocument("the walrus eats clams", key=TEXTS[1][:12]))
        assert "the walrus eats clams" in await search_texts(engine, "walrus")
        assert (await engine.documents.list(status="unindexable")).documents == ()


async def test_a_text_that_only_failed_here_is_not_marked(folder):
    """The fresh process can analyze it, so that it is tried again."""
    finder = (await components_in(folder)).texts.find_faults
    async with open_engine(folder, replace(POISONED, find_faults=finder)) as engine:
        with pytest.raises(UnindexableText):
            await search_texts(engine, "walrus")
        [collection] = (await engine.maintenance.status()).collections
        assert (collection.unindexable, "LookupError" in (collection.fault or "")) == (0, True)
    async with open_engine(folder) as engine:
        assert await search_texts(engine, "walrus") == {TEXTS[0], TEXTS[1]}


@pytest.mark.parametrize("fault", [OSError("no space left"), MemoryError(), StorageError("is away")])
async def test_faults_of_disk_memory_and_services_are_never_blamed_on_a_text(folder, fault):
    def failing(_language):
        def terms(_text):
            raise fault

        return terms

    async with open_engine(folder, POISONED) as engine:
        await search_texts(engine, "walrus")
    async with open_engine(folder, TextAnalysis(failing, POISONED.find_faults)) as engine:
        with pytest.raises(type(fault)):
            await engine.retrieve("walrus")
    async with open_engine(folder, POISONED) as engine:
        [document] = (await engine.documents.list(status="unindexable")).documents
        assert document.error == "LookupError"
        assert await search_texts(engine, "walrus tide") == {TEXTS[0], TEXTS[2]}


async def test_one_collection_that_cannot_be_used_leaves_the_server_ready(folder):
    class Log:
        def info(self, *_, **__):
            pass

        error = info

    finder = (await components_in(folder)).texts.find_faults
    async with open_engine(folder, replace(POISONED, find_faults=finder)) as engine:
        readiness = Readiness(engine, Log())
        readiness._note((await engine.maintenance.status()).collections)
        assert (readiness.state, readiness.unavailable) == ("starting", 1)
        await engine.add(NewDocument("elsewhere"), collection="other")
        readiness._note((await engine.maintenance.status()).collections)
        assert (readiness.state, readiness.unavailable) == ("ready", 1)


async def test_a_crash_is_blamed_on_its_text_and_an_end_by_the_system_is_not():
    program = (
        "import json, os, signal, sys\n"
        "for text in json.loads(sys.stdin.readline())['texts']:\n"
        "    if text in {'SIGSEGV', 'SIGKILL'}: os.kill(os.getpid(), getattr(signal, text))\n"
        "    print('null', flush=True)\n"
    )
    finder = FaultFinder([sys.executable, "-c", program])
    assert await finder(None, ["a", "SIGSEGV", "b", "SIGSEGV"]) == [None, "SIGSEGV", None, "SIGSEGV"]
    with pytest.raises(StorageError):
        await finder(None, ["a", "SIGKILL", "b"])


async def test_files_that_cannot_be_analyzed_are_named_in_the_report(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for number, text in enumerate(TEXTS):
        (texts / f"{number}.txt").write_text(text, encoding="utf-8")
    async with open_engine(tmp_path / "store", POISONED) as engine:
        report = await engine.documents.add_files([texts])
        assert report.added == 2
        [failure] = report.failures
        assert ("1.txt" in failure.name, failure.code) == (True, "unindexable_text")
        assert await search_texts(engine, "walrus tide") == {TEXTS[0], TEXTS[2]}
