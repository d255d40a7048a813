"""A search asks Milvus for no more results than it returns, however many tie."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from conspectus.index.bm25 import Bm25
from conspectus.index.milvus.connection import MAX_RESULTS, MilvusServer, Query, Row
from conspectus.index.milvus.filter_expressions import EVERY
from conspectus.index.milvus.search import MilvusQuery, MilvusSnapshot, Visible
from conspectus.index.milvus.state import MilvusState


class Tied(MilvusServer):
    """Where every row is as near as every other."""

    def __init__(self) -> None:
        super().__init__("http://nowhere")
        self.depths: list[int] = []

    async def search(self, name: str, where: str, fields: Sequence[str], query: Query) -> list[Row]:
        depth = query["limit"]
        assert isinstance(depth, int)
        self.depths.append(depth)
        numbers = range(depth)
        return [{"chunk": n, "has_vector": True, "vector": [1.0, 0.0], "distance": 1.0} for n in numbers]


async def is_still_current() -> bool:
    return True


@pytest.mark.parametrize("limit", [1, 1_000, 5_000, MAX_RESULTS - 1, 20_000])
async def test_no_deeper_than_milvus_answers(limit: int) -> None:
    server = Tied()
    state = replace(MilvusState(""), generation="a", total=10**6, vectors=10**6)
    view, vector = MilvusSnapshot(server, "any", state, (), Bm25()), np.array([1.0, 0.0], np.float32)
    results = await MilvusQuery(view, Visible(EVERY), {}, vector, is_current=is_still_current).search(limit)
    assert results is not None
    assert len(results.ids) == min(limit, MAX_RESULTS)
    assert max(server.depths) <= MAX_RESULTS
