"""A process is killed at each step of a rebuild: who asks meanwhile sees one whole generation, always."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Candidates, Probe
from conspectus.ports.jobs import Lock
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history, kept_at
from tests.milvus_locations import location_in
from tests.programs import program, tell
from tests.support.journal import make_chunk
from tests.support.milvus_server import MilvusProcess

EVERY_FOX = Probe(EVERYTHING, "fox", None, 1_000)
STEPS = ("half of the rows", "before the switch", "after the switch", "half of the old one gone")
REBUILDER = """
import asyncio, os, signal, sys
from pathlib import Path
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from tests.index_histories import journal_at
from tests.milvus_locations import location_in

step = sys.argv[5]

def die_at(*steps):
    if step in steps:
        os.kill(os.getpid(), signal.SIGKILL)

class Mortal(MilvusServer):
    upserts = 0

    async def upsert(self, name, rows):
        await super().upsert(name, rows)
        self.upserts += 1
        if self.upserts == 5:
            die_at("half of the rows")

    async def point(self, alias, name):
        die_at("before the switch")
        await super().point(alias, name)
        die_at("after the switch")

    async def drop(self, name):
        await super().drop(name)
        die_at("half of the old one gone")

async def main():
    journal = journal_at(sys.argv[1])
    place = location_in(Mortal(sys.argv[2]), Path(sys.argv[3]), 4, sys.argv[4])
    index = await MilvusIndex.open(place, journal, str.split)
    print("ready", flush=True)
    sys.stdin.readline()
    await index.rebuild()

asyncio.run(main())
"""


def no_turn(work: str) -> AbstractAsyncContextManager[Lock]:
    """For one who asks: an answer that only comes because the index was mended first would prove nothing."""
    raise AssertionError(f"it had to {work}")


def same(first: Candidates, second: Candidates) -> bool:
    return np.array_equal(first.ids, second.ids) and np.array_equal(first.words, second.words)


async def ask_until_stopped(index: MilvusIndex, expected: Candidates, stop: asyncio.Event) -> int:
    answers = 0
    while not stop.is_set() or answers < 3:
        assert same(await index.search(EVERY_FOX), expected)
        answers += 1
    return answers


@pytest.mark.parametrize("step", STEPS)
async def test_killed_in_a_rebuild(
    tmp_path: Path, milvus: MilvusProcess, milvus_client: MilvusServer, step: str
) -> None:
    name, journal, stop = f"killed_{STEPS.index(step)}", history(41, size=60), asyncio.Event()
    location = location_in(milvus_client, tmp_path, DIMENSIONS, name)
    index = await MilvusIndex.open(location, journal, str.split)
    await catch_up(index, journal)
    records, expected = kept_at(tmp_path / "journal", journal), await index.search(EVERY_FOX)
    reader = await MilvusIndex.open(replace(location, turn=no_turn), journal, str.split)
    arguments = (records, milvus.uri, tmp_path, name, step)
    async with program("-c", REBUILDER, *arguments) as rebuilder:
        asking = asyncio.create_task(ask_until_stopped(reader, expected, stop))
        await tell(rebuilder, "go on")
        assert await rebuilder.wait() == -9
    remaining = [
        collection for collection in await milvus_client.collections() if collection.startswith(f"{name}_")
    ]
    stop.set()
    assert await asking >= 3
    assert len(remaining) == (3 if step == STEPS[-1] else 4)
    journal.replace([3], [make_chunk(700, "fox after it")])
    await assert_right(index, journal)
    await index.rebuild()
    remaining = [
        collection for collection in await milvus_client.collections() if collection.startswith(f"{name}_")
    ]
    assert len(remaining) == 2
    assert same(await reader.search(EVERY_FOX), await index.search(EVERY_FOX))
