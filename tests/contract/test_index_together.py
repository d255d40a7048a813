"""Queries, writers and builders at the same time, over one directory."""

import asyncio
import random
from pathlib import Path

import pytest
from tests.support.journal import Journal, make_chunk

from conspectus.index.segments.build import Options
from conspectus.index.segments.store import SegmentsIndex
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.ports import Index, Probe

VERSIONED = Probe(EVERYTHING, "version", None, 1_000)


class Versions:
    """A document of some chunks, replaced as a whole in one transaction, again and again."""

    def __init__(self, size: int) -> None:
        self.journal = Journal(batch=20)
        self.size = size
        self.number = 0
        self._next = 0
        self._ids: list[int] = []

    def replace(self) -> None:
        fresh = list(range(self._next, self._next + self.size))
        self._next += self.size + random.Random(self.number).randint(0, 3)
        self.number += 1
        self.journal.replace(
            self._ids, [make_chunk(i, "a version", metadata={"version": self.number}) for i in fresh]
        )
        self._ids = fresh


async def open_here(directory: Path, journal: Journal, *, tail_chunks: int = 30) -> SegmentsIndex:
    return await SegmentsIndex.open(
        directory, journal, str.split, dimensions=0, options=Options(tail_chunks=tail_chunks)
    )


async def follow(index: Index, versions: Versions, rounds: int) -> None:
    for _ in range(rounds):
        await index.apply(await versions.journal.changes_since(index.applied_sequence(), limit=10_000))
        await asyncio.sleep(0.001)


async def ask(index: Index, versions: Versions, stop: asyncio.Event) -> int:
    """Ask without rest; every answer must be one whole version."""
    answers = 0
    while not stop.is_set():
        candidates = await index.search(VERSIONED)
        assert len(candidates.ids) == candidates.total == versions.size
        assert candidates.ids[-1] - candidates.ids[0] == versions.size - 1
        answers += 1
    return answers


async def build(index: SegmentsIndex) -> None:
    for _ in range(4):
        await index.flush()
        await index.rebuild()
        await index.purge()


async def write(versions: Versions, rounds: int) -> None:
    for _ in range(rounds):
        versions.replace()
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("processes", [1, 2])
async def test_every_answer_is_one_version(tmp_path: Path, processes: int) -> None:
    versions = Versions(size=12)
    versions.replace()
    indexes = [await open_here(tmp_path, versions.journal) for _ in range(processes)]
    for index in indexes:
        await follow(index, versions, 1)
    stop = asyncio.Event()
    asking = [asyncio.create_task(ask(index, versions, stop)) for index in indexes for _ in range(2)]
    await asyncio.gather(
        write(versions, 120), *(follow(index, versions, 120) for index in indexes), *map(build, indexes)
    )
    stop.set()
    assert min(await asyncio.gather(*asking)) > 0
    for index in indexes:
        await follow(index, versions, 1)
        last = Probe(Eq(("version",), versions.number), "version", None, 100)
        assert len((await index.search(last)).ids) == versions.size
        assert await index.check() == []
        await index.close()


async def test_two_indexes_share_what_one_has_built(tmp_path: Path) -> None:
    journal = Journal()
    journal.put(make_chunk(number, "version") for number in range(100))
    # The second would otherwise build in the background what only the first is to build.
    first, second = await open_here(tmp_path, journal), await open_here(tmp_path, journal, tail_chunks=1_000)
    await second.apply(await journal.changes_since(0, limit=1_000))
    await first.rebuild()
    assert (await second.status()).details["tail"] == "100"
    journal.remove([3])
    await second.apply(await journal.changes_since(second.applied_sequence(), limit=1_000))
    status = await second.status()
    assert (status.details["tail"], status.chunks) == ("0", 99)
    for index in (first, second):
        await index.apply(await journal.changes_since(index.applied_sequence(), limit=1_000))
        assert len((await index.search(VERSIONED)).ids) == 99
        await index.close()
