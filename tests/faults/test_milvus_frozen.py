"""A writer is stopped, its turn passes to others, and it wakes: nothing of what it still does is seen."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from conspectus.errors import IndexReplaced
from conspectus.index.bm25 import Bm25
from conspectus.index.milvus.connection import MilvusServer, Row
from conspectus.index.milvus.search import MilvusLocation
from conspectus.index.milvus.state import Notes
from conspectus.index.milvus.store import MilvusIndex, identity_of
from conspectus.index.milvus.term_statistics import Terms
from conspectus.index.milvus.writes import MilvusWriter
from conspectus.model.filter import Between
from conspectus.model.ids import ChunkId
from conspectus.ports import Probe
from conspectus.records.jobs.locks import FileHold
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history
from tests.support.journal import Journal, make_chunk
from tests.support.milvus_server import MilvusProcess


class Hesitant(MilvusServer):
    """A connection of someone who may be stopped before anything that is sent."""

    chance = random.Random(11)

    async def upsert(self, name: str, rows: Sequence[Row]) -> None:
        await asyncio.sleep(self.chance.choice((0, 0, 0.001, 0.03, 0.1)))
        await super().upsert(name, rows)

    async def delete(self, name: str, where: str) -> None:
        await asyncio.sleep(self.chance.choice((0, 0, 0.001, 0.03, 0.1)))
        await super().delete(name, where)


def location_without_turns(server: MilvusServer, name: str) -> MilvusLocation:
    """A place whose turns keep nobody out: a lease has run out whenever that is worst."""
    return MilvusLocation(server, name, lambda work: nullcontext(FileHold(mine=True)), DIMENSIONS)


async def open_writer(
    index: MilvusIndex, journal: Journal, location: MilvusLocation
) -> tuple[Notes, MilvusWriter]:
    """A writer of an index that others write too."""
    await catch_up(index, journal)
    notes = Notes(location.server, location.name, identity_of(str.split, location))
    terms = Terms(notes)
    return notes, MilvusWriter(notes, terms, journal, str.split, dimensions=DIMENSIONS, bm25=Bm25())


@pytest.mark.parametrize("stopped", ["before writing", "before the state", "after the state"])
async def test_a_writer_that_wakes_late(milvus_client: MilvusServer, stopped: str) -> None:
    journal, location = (
        history(7, size=40),
        location_without_turns(milvus_client, "late_" + stopped.replace(" ", "_")),
    )
    index = await MilvusIndex.open(location, journal, str.split)
    notes, frozen = await open_writer(index, journal, location)
    before = await notes.read()
    journal.replace([3, 5], [make_chunk(700, "fox of the one that froze"), make_chunk(5, "sea again")])
    changes = await journal.changes_since(before.applied, limit=1_000)
    read = await journal.chunks(ChunkId(700), ChunkId(700))
    draft = await frozen.begin(before)
    if stopped != "before writing":
        await frozen.add_changes(draft, changes)
    if stopped == "after the state":
        await frozen.commit(draft)
    for number in range(7):
        journal.replace([700, 800 + number - 1], [make_chunk(800 + number, "fox sea after it")])
        await assert_right(index, journal)
    newest = await notes.read()
    if stopped != "after the state":
        await frozen.write(draft, read)
        assert (await frozen.commit(draft)).version == newest.version
    assert await notes.read() == newest
    await assert_right(index, journal)
    await assert_right(await MilvusIndex.open(location, journal, str.split), journal)


async def test_a_writer_of_a_generation_that_is_gone(milvus_client: MilvusServer) -> None:
    journal, location = history(8, size=40), location_without_turns(milvus_client, "gone")
    index = await MilvusIndex.open(location, journal, str.split)
    notes, frozen = await open_writer(index, journal, location)
    draft = await frozen.begin(await notes.read())
    await index.rebuild()
    rebuilt = await notes.read()
    with pytest.raises(IndexReplaced):
        await frozen.commit(draft)
    assert await notes.read() == rebuilt
    await assert_right(index, journal)


async def test_values_that_came_too_late_are_stored_again(milvus_client: MilvusServer) -> None:
    journal, location = history(12, size=20), location_without_turns(milvus_client, "values")
    index = await MilvusIndex.open(location, journal, str.split)
    notes, frozen = await open_writer(index, journal, location)
    probe = Probe(Between(("price",), 700, 800), "fox", None, 10)
    draft = await frozen.begin(await notes.read())
    journal.put([make_chunk(700, "fox for sale", metadata={"price": 1})])
    await catch_up(index, journal)
    assert (await index.search(probe)).ids.tolist() == []
    await frozen.write(draft, [make_chunk(701, "fox for sale", metadata={"price": 777})])
    await frozen.commit(draft)
    journal.put([make_chunk(702, "fox for sale", metadata={"price": 777})])
    again = await frozen.begin(await notes.read())
    await frozen.add_changes(again, await journal.changes_since(again.applied, limit=10))
    await frozen.commit(again)
    await catch_up(index, journal)
    assert (await index.search(probe)).ids.tolist() == [702]
    await assert_right(index, journal)


async def test_two_that_both_believe_it_is_their_turn(
    milvus_client: MilvusServer, milvus: MilvusProcess
) -> None:
    journal, hesitant = history(9, size=40), Hesitant(milvus.uri, seconds=20)
    first = await MilvusIndex.open(location_without_turns(milvus_client, "both"), journal, str.split)
    await catch_up(first, journal)
    second = await MilvusIndex.open(location_without_turns(hesitant, "both"), journal, str.split)
    behind = asyncio.create_task(asyncio.sleep(0))
    for number in range(12):
        journal.replace([number, 900 + number], [make_chunk(901 + number, "fox sea both")])
        if behind.done():
            await behind
            behind = asyncio.create_task(catch_up(second, journal))
        await assert_right(first, journal)
    await behind
    await assert_right(second, journal)
    await hesitant.close()
