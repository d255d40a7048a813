"""Vectors of an embedder that a caller passed: what is none is neither stored nor searched with."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import conspectus
from conspectus.errors import ProviderUnavailable
from conspectus.ports import Vectors
from conspectus.providers.checked_embedder import CheckedEmbedder
from conspectus.testing.embedders import HashedEmbedder

FAULTS = {
    "not finite": lambda rows: rows * np.nan,
    "infinite": lambda rows: rows / 0.0,
    "zero": lambda rows: rows * 0.0,
    "short": lambda rows: rows[..., :-1],
    "a row too few": lambda rows: rows[:-1],
    "a list": lambda rows: rows.tolist(),
    "nothing": lambda rows: None,
}


class FaultyEmbedder(HashedEmbedder):
    """Makes other vectors than it should while `fault` is set."""

    fault: str | None = None

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        rows = await super().embed_documents(texts)
        return rows if self.fault is None else FAULTS[self.fault](rows)

    async def embed_query(self, text: str) -> Vectors:
        row = await super().embed_query(text)
        return row if self.fault is None else FAULTS[self.fault](row)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_vector_that_is_none_is_refused(fault: str) -> None:
    embedder = FaultyEmbedder()
    checked = CheckedEmbedder(embedder)
    assert checked.space == embedder.space
    assert np.array_equal(await checked.embed_query("lamp"), await embedder.embed_query("lamp"))
    embedder.fault = fault
    with pytest.raises(ProviderUnavailable):
        await checked.embed_documents(["lamp"])
    with pytest.raises(ProviderUnavailable):
        await checked.embed_query("lamp")


@pytest.mark.filterwarnings("ignore:invalid value")
async def test_a_query_with_a_vector_that_is_none_uses_keywords(tmp_path: Path) -> None:
    embedder = FaultyEmbedder()
    async with conspectus.open(tmp_path, embedder=embedder) as engine:
        await engine.add(["the lamp is lit", "the boat is red"], wait=True)
        embedder.fault = "not finite"
        answer = await engine.retrieve("lamp")
        assert [hit.chunk.text for hit in answer.hits] == ["the lamp is lit"]
        assert any("keyword" in notice for notice in answer.notices)
        await engine.add("a new lamp")
        assert (await engine.documents.count(status="embedded")) == 2
        embedder.fault = None
        await engine.documents.wait_until_embedded()
        assert (await engine.documents.count(status="embedded")) == 3
