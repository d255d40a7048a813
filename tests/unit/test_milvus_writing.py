"""What a writer asks of Milvus: rows that were replaced are deleted by their keys, not looked for."""

from pathlib import Path

import pytest
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history
from tests.milvus_places import place_in
from tests.support.journal import make_chunk
from tests.support.milvus_server import MilvusProcess

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex


class Watched(MilvusServer):
    """A connection that keeps what was deleted through it."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, seconds=20)
        self.deleted: list[tuple[str, str]] = []

    async def delete(self, name: str, where: str) -> None:
        self.deleted.append((name.rsplit("_", 1)[-1], where))
        await super().delete(name, where)


@pytest.mark.parametrize("at_once", [1, 1_000])
async def test_replaced_rows_are_deleted_by_key(
    tmp_path: Path, own_milvus: MilvusProcess, at_once: int
) -> None:
    journal, server = history(21, size=30), Watched(own_milvus.uri)
    index = await MilvusIndex.open(place_in(server, tmp_path, DIMENSIONS), journal, str.split)
    await catch_up(index, journal)
    server.deleted.clear()
    journal.replace([3, 5], [make_chunk(700, "fox"), make_chunk(5, "sea again")])
    journal.replace([700], [make_chunk(701, "fox sea")])
    await catch_up(index, journal, at_once)
    assert {what for what, _ in server.deleted} == {"rows", "notes"}
    assert {where.split(" in ")[0] for _, where in server.deleted} == {"key"}
    await assert_right(index, journal)
    await server.close()
