"""A writer replaces rows between the requests of a question: the answer is of one version all the same."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from conspectus.index.milvus.connection import MilvusServer, Query, Row
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe
from tests.index_histories import DIMENSIONS, catch_up
from tests.milvus_locations import location_in
from tests.support.in_memory_index import MemoryIndex
from tests.support.journal import Journal, make_chunk, unit
from tests.support.milvus_server import MilvusProcess

NEAR, FAR = unit(np.array([1.0, 0.0, 0.0, 0.1])), unit(np.array([0.1, 1.0, 0.0, 0.0]))


class Overtaken(MilvusServer):
    """Somebody writes when one retriever has its rows and the other is about to read its own."""

    def __init__(self, uri: str, of: str) -> None:
        super().__init__(uri, seconds=20)
        self.of = of
        self.overtake: Callable[[], Awaitable[None]] | None = None
        self.other_has_read = asyncio.Event()

    async def search(self, name: str, where: str, fields: Sequence[str], query: Query) -> list[Row]:
        if self.overtake is not None and query["anns_field"] == self.of:
            await asyncio.wait_for(self.other_has_read.wait(), 60)
            overtake, self.overtake = self.overtake, None
            await overtake()
        rows = await super().search(name, where, fields, query)
        self.other_has_read.set()
        return rows


@pytest.mark.parametrize("of", ["terms", "vector"])
async def test_an_answer_is_of_one_version(
    tmp_path: Path, milvus: MilvusProcess, milvus_client: MilvusServer, of: str
) -> None:
    journal, overtaken_server = Journal(), Overtaken(milvus.uri, of)
    journal.put([make_chunk(n, "fox" if n < 2 else "sea", vector=FAR if n < 2 else NEAR) for n in range(9)])
    name = f"overtaken_{of}"
    writer = await MilvusIndex.open(
        location_in(milvus_client, tmp_path, DIMENSIONS, name), journal, str.split
    )
    await catch_up(writer, journal)
    reader = await MilvusIndex.open(
        location_in(overtaken_server, tmp_path, DIMENSIONS, name), journal, str.split
    )

    async def overtake() -> None:
        gone = [0, 1] if of == "vector" else range(2, 9)
        journal.replace(gone, [make_chunk(100 + n, "fox sea", vector=unit(FAR + n * NEAR)) for n in gone])
        await catch_up(writer, journal)

    overtaken_server.overtake = overtake
    probe = Probe(EVERYTHING, "fox", NEAR, 2)
    candidates, reference = await reader.search(probe), MemoryIndex(journal, str.split)
    await catch_up(reference, journal)
    expected = await reference.search(probe)
    assert overtaken_server.overtake is None
    assert candidates.ids.tolist() == expected.ids.tolist()
    assert np.array_equal(candidates.words, expected.words)
    assert np.array_equal(candidates.cosine, expected.cosine, equal_nan=True)
    await overtaken_server.close()
