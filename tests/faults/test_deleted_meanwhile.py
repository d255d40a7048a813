"""A collection that is deleted and made anew while others write, purge and build its index."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine
from conspectus.errors import Conflict, IndexDamaged, IndexReplaced, NotFound, StorageBusy, StorageError
from conspectus.index.bm25 import Bm25, identity_of
from conspectus.index.segments.build import BuildRequest, BuildResult, LocalBuilder, Options, build_segment
from conspectus.index.segments.manifest import lock_folder, remove
from conspectus.index.segments.segment import Shape, open_segment
from conspectus.index.segments.store import SegmentsIndex
from conspectus.ingest.open_indexes import MIN_FLUSHED_CHUNKS
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.ports import Progress
from conspectus.testing.embedders import HashedEmbedder
from tests.files import holding
from tests.stores import SETTINGS
from tests.support.journal import Journal, make_chunk

MARKER = "quaggazanzibar"
SECONDS = 2.0
RACED = (NotFound, Conflict, StorageBusy, IndexReplaced)
"""What a race may come to: it is gone, there is another, or the same succeeds a moment later."""


async def write(engine: Engine, chance: random.Random) -> None:
    await engine.add([f"{MARKER} {chance.random()}"] * chance.choice([1, 40]), collection="shelf")


async def empty(engine: Engine, chance: random.Random) -> None:
    await engine.documents.delete_by_filter(EVERYTHING, collection="shelf", purge=chance.random() < 0.5)


async def build(engine: Engine, _: random.Random) -> None:
    await engine.maintenance.reindex(collection="shelf")


async def replace_it(engine: Engine, chance: random.Random) -> None:
    await asyncio.sleep(chance.random() * 0.4)
    await engine.collections.delete("shelf", purge=chance.random() < 0.5)
    await engine.collections.create("shelf")


async def test_every_race_with_a_deletion_is_told_as_one(tmp_path: Path) -> None:
    settings = replace(SETTINGS, tail_chunks=20)
    async with (
        conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as one,
        conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as other,
    ):
        await one.collections.create("shelf")
        end = asyncio.get_running_loop().time() + SECONDS

        async def again(engine: Engine, seed: int) -> None:
            chance, work = random.Random(seed), (write, write, empty, build, replace_it)[seed % 5]
            while asyncio.get_running_loop().time() < end:
                try:
                    await work(engine, chance)
                except RACED:
                    await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as tasks:
            for seed in range(8):
                tasks.create_task(again((one, other)[seed % 2], seed))
        await one.collections.delete("shelf", purge=True)
        assert holding(tmp_path, MARKER) == []


@pytest.mark.parametrize("anew", [False, True])
async def test_what_was_purged_is_not_written_by_an_engine_that_closes(tmp_path: Path, anew: bool) -> None:
    async with (
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as other,
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as one,
    ):
        await one.collections.create("shelf")
        await one.add([f"{MARKER} {number}" for number in range(MIN_FLUSHED_CHUNKS)], collection="shelf")
        await other.collections.delete("shelf", purge=True)
        if anew:
            await other.collections.create("shelf")
            await other.add([f"fox {number}" for number in range(2 * MIN_FLUSHED_CHUNKS)], collection="shelf")
    assert holding(tmp_path, MARKER) == []


class Emptied(Journal):
    """Records whose index is deleted while it is built."""

    directory: Path

    async def scan(self, after: ChunkId | None = None) -> AsyncIterator[Sequence[IndexedChunk]]:
        async for chunks in super().scan(after):
            yield chunks
            await asyncio.to_thread(remove, self.directory)


class Anew(Journal):
    """Records that are begun anew after they were read."""

    async def last_sequence(self) -> int:
        vars(self).update(vars(Journal()))
        return await super().last_sequence()


class Counting(LocalBuilder):
    """Counts what it is asked to build."""

    builds = 0

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        self.builds += 1
        return await super().build(request, progress)


async def test_an_index_whose_records_are_begun_anew_is_not_built_again_and_again(tmp_path: Path) -> None:
    journal = Anew()
    journal.put(make_chunk(number, f"{MARKER} fox") for number in range(1, 41))
    builder, options = Counting(journal, str.split), Options(tail_chunks=2)
    changes = await journal.changes_since(0, limit=100)
    index = await SegmentsIndex.open(
        tmp_path, journal, str.split, dimensions=0, builder=builder, options=options
    )
    async with asyncio.timeout(10):
        await index.apply(changes)
    assert builder.builds == 1
    assert holding(tmp_path, MARKER) == []
    await index.close()


class Beaten(LocalBuilder):
    """Fails when another process has built, and the index has taken that in meanwhile."""

    index: SegmentsIndex

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal, str.split)
        self.journal, self.builds = journal, 0

    async def build(self, request: BuildRequest, progress: Progress | None = None) -> BuildResult:
        self.builds += 1
        if self.builds == 1:
            self.journal.put([make_chunk(51, f"{MARKER} late")])
            await super().build(request, progress)
            await self.index.apply(await self.journal.changes_since(40, limit=100))
        raise StorageError("the builder was killed")


async def test_a_build_that_fails_when_nothing_waits_is_not_tried_again_and_again(tmp_path: Path) -> None:
    journal = Journal()
    journal.put(make_chunk(number, f"{MARKER} fox") for number in range(1, 51))
    builder, options = Beaten(journal), Options(tail_chunks=2)
    index = builder.index = await SegmentsIndex.open(
        tmp_path, journal, str.split, dimensions=0, builder=builder, options=options
    )
    async with asyncio.timeout(10):
        await index.apply(await journal.changes_since(0, limit=40))
    assert builder.builds == 1
    await index.close()


async def test_an_index_that_is_deleted_while_it_is_built(tmp_path: Path) -> None:
    journal = Emptied()
    journal.directory = tmp_path
    journal.put([make_chunk(1, f"{MARKER} fox")])
    index = await SegmentsIndex.open(tmp_path, journal, str.split, dimensions=0, options=Options())
    with pytest.raises(IndexReplaced):
        await index.rebuild()
    await index.close()
    assert remove(tmp_path)
    assert not tmp_path.exists()


class Gone(Journal):
    """Records without the collection."""

    async def last_sequence(self) -> int:
        raise NotFound("collection", "shelf")


async def test_an_index_that_is_built_while_its_collection_is_deleted(tmp_path: Path) -> None:
    request = BuildRequest(str(tmp_path), identity_of(str.split, 0, Bm25()), "rebuild", 0, Options())
    with pytest.raises(IndexReplaced):
        await build_segment(Gone(), request, str.split)


class Leaving(Journal):
    """Records whose collection is deleted at some time."""

    is_gone = False

    async def last_sequence(self) -> int:
        if self.is_gone:
            raise NotFound("collection", "shelf")
        return await super().last_sequence()


@pytest.mark.parametrize(("is_gone", "error"), [(True, NotFound), (False, IndexDamaged)])
async def test_a_manifest_whose_segments_went_with_their_collection(
    tmp_path: Path, is_gone: bool, error: type[Exception]
) -> None:
    journal = Leaving()
    journal.put([make_chunk(1, f"{MARKER} fox")])
    follower, builder = [await SegmentsIndex.open(tmp_path, journal, str.split, dimensions=0) for _ in "ab"]
    await builder.rebuild()
    for segment in tmp_path.glob("segment-*"):
        shutil.rmtree(segment)
    journal.is_gone = is_gone
    with pytest.raises(error):
        await follower.apply(await journal.changes_since(0, limit=10))


def test_files_that_go_while_they_are_opened_are_no_fault_of_the_program(tmp_path: Path) -> None:
    with pytest.raises(IndexDamaged):
        open_segment(tmp_path / "segment-gone", Shape(0, Bm25(), 0, 0))


def test_several_processes_may_delete_the_same_index(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        for number in range(40):
            index = tmp_path / str(number) / "index"
            (index / "segment-a").mkdir(parents=True)
            (index / "segment-a" / "arrays.bin").touch()
            deletions = [threads.submit(remove, index, wait_seconds=10) for _ in range(6)]
            assert all(deletion.result() for deletion in deletions)
            assert not index.exists()


def test_an_index_that_is_built_is_emptied_but_not_gone(tmp_path: Path) -> None:
    (tmp_path / "segment-a").mkdir()
    with lock_folder(tmp_path) as mine:
        assert mine
        assert not remove(tmp_path, wait_seconds=0.1)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert remove(tmp_path)
    with lock_folder(tmp_path) as mine:
        assert mine
