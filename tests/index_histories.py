"""A history of chunks for indexes that are interrupted, and what it means that an index came through it."""

import asyncio
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from conspectus.errors import StorageError
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.ports import Index, Probe
from tests.programs import READY
from tests.support.in_memory_index import MemoryIndex
from tests.support.journal import Journal, make_chunk, unit

DIMENSIONS = 4


class Server(Protocol):
    """A server of a test that can be killed."""

    def kill(self) -> None:
        """End it as a power cut would."""


def history(seed: int, size: int = 300) -> Journal:
    """Chunks of a few words in two sources, some of them removed and replaced again."""
    chance = random.Random(seed)
    journal = Journal(batch=50)
    for number in range(size):
        vector = unit(np.random.default_rng(number).standard_normal(DIMENSIONS))
        text = " ".join(chance.choices(["fox", "sun", "moon", "sea"], k=chance.randint(0, 9)))
        source = "another" if number % 4 == 0 else "source"
        journal.put([make_chunk(number, text, vector=vector, metadata={"n": number % 3}, source=source)])
        if number % 7 == 0:
            journal.replace([chance.randrange(number + 1)], [make_chunk(number // 2, "replaced fox")])
    return journal


def kept_at(path: Path, journal: Journal) -> Path:
    """Keep a journal in a file, for a program that follows it."""
    path.write_bytes(pickle.dumps(journal))
    return path


def journal_at(path: str) -> Journal:
    """The journal that is kept in a file."""
    journal: Journal = pickle.loads(Path(path).read_bytes())
    return journal


async def catch_up(index: Index, journal: Journal, limit: int = 1_000) -> None:
    """Apply all that is new, so many changes at a time."""
    while changes := await journal.changes_since(index.applied_sequence(), limit=limit):
        await index.apply(changes)


async def assert_right(index: Index, journal: Journal) -> None:
    """When it has caught up it answers as the exact index does, and finds no fault with itself."""
    reference = MemoryIndex(journal, str.split)
    await catch_up(index, journal)
    await catch_up(reference, journal)
    for where, sources in (
        (EVERYTHING, ()),
        (Eq(("n",), 1), ("another",)),
        (EVERYTHING, ("another", "source")),
    ):
        probe = Probe(where, "fox sea", unit(np.arange(DIMENSIONS) + 1.0), 20, sources=sources)
        candidates, expected = await index.search(probe), await reference.search(probe)
        assert candidates.ids.tolist() == expected.ids.tolist()
        assert candidates.words.tolist() == expected.words.tolist()
        assert np.array_equal(candidates.cosine, expected.cosine, equal_nan=True)
        assert (candidates.terms, candidates.least) == (expected.terms, expected.least)
    assert await index.check() == []


async def write_on(index: Index, journal: Journal) -> None:
    """What a program that is killed does until then."""
    print(READY, flush=True)
    while True:
        await catch_up(index, journal, limit=37)
        await index.flush(merge=True)
        await catch_up(index, journal, limit=37)
        await index.rebuild()
        await index.purge()


async def write_until_killed(server: Server, index: Index, journal: Journal, *, after: float) -> None:
    """Write to a server that is killed some seconds later."""
    killing = asyncio.create_task(_kill(server, after))
    with pytest.raises(StorageError):
        while True:
            await catch_up(index, journal, limit=23)
            await index.rebuild()
    await killing


async def _kill(server: Server, after: float) -> None:
    await asyncio.sleep(after)
    await asyncio.to_thread(server.kill)


class Versions:
    """A document of some chunks, replaced as a whole in one transaction, again and again."""

    size = 12
    every = Probe(EVERYTHING, "version", None, 1_000)

    def __init__(self) -> None:
        self.journal = Journal(batch=20)
        self._number = 0
        self._ids: list[int] = []
        self._replace()

    async def follow(self, index: Index) -> None:
        """Apply all that is new."""
        await catch_up(index, self.journal)

    async def replace(self, indexes: Sequence[Index], *, times: int) -> None:
        """Make versions, each followed by all the indexes."""
        for _ in range(times):
            self._replace()
            await asyncio.gather(*map(self.follow, indexes))

    async def ask(self, index: Index, stop: asyncio.Event) -> int:
        """Ask without rest, and count: every answer must be one whole version."""
        searches = 0
        while not stop.is_set():
            candidates = await index.search(self.every)
            assert len(candidates.ids) == candidates.total == self.size
            assert candidates.ids[-1] - candidates.ids[0] == self.size - 1
            searches += 1
        return searches

    async def assert_newest(self, index: Index) -> None:
        """It has the newest version and finds no fault with itself."""
        await self.follow(index)
        newest = Probe(Eq(("version",), self._number), "version", None, 100)
        assert len((await index.search(newest)).ids) == self.size
        assert await index.check() == []

    def _replace(self) -> None:
        first = self._number * (self.size + 2)
        fresh = list(range(first, first + self.size))
        self._number += 1
        chunks = [make_chunk(i, "a version", metadata={"version": self._number}) for i in fresh]
        self.journal.replace(self._ids, chunks)
        self._ids = fresh


async def assert_every_answer_is_one_version(
    versions: Versions, indexes: Sequence[Index], *, replacements: int, rebuilds: int
) -> None:
    """Replace, ask and rebuild at the same time over connections of one index."""
    for index in indexes:
        await versions.follow(index)
    stop = asyncio.Event()
    asking = [asyncio.create_task(versions.ask(index, stop)) for index in indexes]
    building = (_rebuild(index, rebuilds) for index in indexes)
    await asyncio.gather(versions.replace(indexes, times=replacements), *building)
    stop.set()
    assert min(await asyncio.gather(*asking)) > 0
    for index in indexes:
        await versions.assert_newest(index)


async def _rebuild(index: Index, times: int) -> None:
    for _ in range(times):
        await index.rebuild()
        await index.purge()
