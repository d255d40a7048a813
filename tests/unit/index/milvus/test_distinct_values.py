"""Filters on more rows than Milvus lists at once."""

from pathlib import Path

from tests.index_histories import catch_up
from tests.milvus_locations import location_in
from tests.support.journal import Journal, make_chunk
from tests.support.milvus_server import MilvusProcess

from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import Between, Eq
from conspectus.ports import Probe

LONG = "z" * 5_000


class Terse(MilvusServer):
    """Lists four rows at most."""

    longest_list = 4


async def test_filters_miss_nothing(tmp_path: Path, milvus: MilvusProcess) -> None:
    journal, server = Journal(), Terse(milvus.uri, seconds=20)
    for number in range(12):
        journal.put([make_chunk(2 * number, "fox", metadata={"price": number})])
        journal.put([make_chunk(2 * number + 1, "fox", author=LONG)])
    index = await MilvusIndex.open(location_in(server, tmp_path, 0), journal, str.split)
    await catch_up(index, journal, limit=1)
    for condition, expected in (
        (Between(("price",), 0, 100), list(range(0, 24, 2))),
        (Eq("author", LONG), list(range(1, 24, 2))),
    ):
        assert (await index.search(Probe(condition, "fox", None, 100))).ids.tolist() == expected
    await server.close()
