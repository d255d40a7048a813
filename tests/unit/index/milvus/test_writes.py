"""Requests to Milvus: replaced rows are deleted by key, and no query counts rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.index_histories import DIMENSIONS, assert_right, catch_up, history
from tests.milvus_locations import location_in
from tests.support.journal import make_chunk
from tests.support.milvus_server import MilvusProcess

from conspectus.index.milvus.connection import MilvusServer, Row
from conspectus.index.milvus.store import MilvusIndex
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe


class Watched(MilvusServer):
    """A connection that keeps what was deleted, queried and searched through it."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri, seconds=20)
        self.deleted: list[tuple[str, str]] = []
        self.asked: list[str] = []

    async def delete(self, name: str, where: str) -> None:
        self.deleted.append((name.rsplit("_", 1)[-1], where))
        await super().delete(name, where)

    async def query(self, name: str, where: str, fields: Sequence[str]) -> list[Row]:
        self.asked.append(name.rsplit("_", 1)[-1])
        return await super().query(name, where, fields)

    async def searches(
        self, name: str, where: str, fields: Sequence[str], query: Mapping[str, object]
    ) -> list[list[Row]]:
        self.asked.append("search")
        return await super().searches(name, where, fields, query)


@pytest.mark.parametrize("at_once", [1, 1_000])
async def test_replaced_rows_are_deleted_by_key(tmp_path: Path, milvus: MilvusProcess, at_once: int) -> None:
    journal, server = history(21, size=30), Watched(milvus.uri)
    index = await MilvusIndex.open(location_in(server, tmp_path, DIMENSIONS), journal, str.split)
    await catch_up(index, journal)
    server.deleted.clear()
    journal.replace([3, 5], [make_chunk(700, "fox"), make_chunk(5, "sea again")])
    journal.replace([700], [make_chunk(701, "fox sea")])
    await catch_up(index, journal, at_once)
    assert {what for what, _ in server.deleted} == {"rows", "notes"}
    assert {where.split(" in ")[0] for _, where in server.deleted} == {"key"}
    await assert_right(index, journal)
    await server.close()


@pytest.mark.parametrize(
    ("sources", "searches"),
    [((), 1), (("source", "another"), 1), (("another",), 2), (("unknown",), 1)],
)
async def test_a_query_counts_no_rows(
    tmp_path: Path, milvus: MilvusProcess, sources: tuple[str, ...], searches: int
) -> None:
    """A write changes what is known of sources; only terms of some of the sources are searched once more."""
    journal, server = history(22, size=30), Watched(milvus.uri)
    index = await MilvusIndex.open(location_in(server, tmp_path, DIMENSIONS), journal, str.split)
    await catch_up(index, journal)
    await index.search(Probe(EVERYTHING, "fox unheard", None, 5, sources=sources))
    journal.replace([4], [make_chunk(700, "fox", source="another")])
    await catch_up(index, journal)
    server.asked.clear()
    results = await index.search(Probe(EVERYTHING, "fox unheard", None, 5, sources=sources))
    assert [call for call in server.asked if call in ("rows", "search")] == ["search"] * searches
    assert len(results.ids) == 5
    await assert_right(index, journal)
    await server.close()
