"""What every engine must do with vectors that callers hand in."""

import math
from datetime import UTC, datetime

import pytest

from conspectus.errors import InvalidInput
from conspectus.memory.jsonl import new_line
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.query import Query
from conspectus.model.records import NewDocument
from tests.support.engine_samples import AnyEngine

OURS = "vectors:3"
SOME = [
    NewDocument("a red apple", key="apple", vector=(1.0, 0.0, 0.0)),
    NewDocument("a green pear", key="pear", vector=(0.0, 250.0, 0.0)),
    NewDocument("a blue sky", key="sky"),
]


async def nearest(engine: AnyEngine, *vector: float, collection: str) -> dict[str, float]:
    """The similarity of each document that has a vector, nearest first."""
    query = Query("", vector=vector, retrievers=("vector",), collection=collection)
    retrieval = await engine.retrieve(query)
    return {hit.document.key: round(hit.similarity or 0.0, 2) for hit in retrieval.hits}


class VectorsContract:
    """Stored with the documents, and found by."""

    async def test_a_vector_is_stored_with_its_document(self, engine: AnyEngine, local: AnyEngine) -> None:
        """At unit length, at once; what brought none waits, is found by words, and never by meaning."""
        await engine.collections.create("ours", embedder=OURS)
        written = await engine.add(SOME, collection="ours", wait=True)
        status = [(await local.documents.get(document.id)).status for document in written]
        assert status == ["embedded", "embedded", "pending"]
        assert await nearest(engine, 9.0, 9.0, 0.0, collection="ours") == {"apple": 0.71, "pear": 0.71}
        retrieval = await engine.retrieve("sky", collection="ours")
        assert [hit.document.key for hit in retrieval.hits] == ["sky"]
        assert (await engine.maintenance.check()).index["ours"] == ()

    async def test_every_chunk_gets_it(self, engine: AnyEngine) -> None:
        """A document of two chunks is found by either."""
        await engine.collections.create("ours", embedder=OURS)
        halves = NewDocument("in two halves", spans=((0, 6), (6, 13)), vector=(0.0, 0.0, 1.0))
        await engine.add(halves, collection="ours")
        query = Query("", vector=(0.0, 0.0, 1.0), retrievers=("vector",), collection="ours")
        assert [hit.chunk.position for hit in (await engine.retrieve(query)).hits] == [0, 1]

    async def test_an_imported_line_may_have_one(self, engine: AnyEngine) -> None:
        """It is stored with the memory, and another import of the line changes nothing."""
        await engine.collections.create("ours", embedder=OURS)
        at = datetime(2026, 3, 1, tzinfo=UTC)

        def line(*vector: float) -> str:
            memory = NewMemory("a red apple", key="apple", vector=vector)
            return new_line(memory, Scope(user="ann"), [(at, memory.text)], recorded=at)

        done = [await engine.memory.import_lines([line(9.0, 0.0, 0.0)], collection="ours") for _ in range(2)]
        assert [written.outcome for [written] in done] == ["added", "unchanged"]
        assert await nearest(engine, 1.0, 0.0, 0.0, collection="ours") == {"apple": 1.0}
        for refused in (line(1.0), line(7.0, 0.0, 0.0).replace("7.0", '"x"'), line(0.0, 0.0, 0.0)):
            with pytest.raises(InvalidInput, match="vector"):
                await engine.memory.import_lines([refused.replace("apple", "pear")], collection="ours")

    async def test_another_vector_takes_the_place_of_the_first(self, engine: AnyEngine) -> None:
        """With the same text by adding or changing; without one it stays, another text takes it away."""
        await engine.collections.create("ours", embedder=OURS)
        [first] = await engine.add(SOME[0], collection="ours")
        again = [NewDocument("a red apple", key="apple", vector=(0.0, 1.0, 0.0)), SOME[0], SOME[0]]
        outcomes = [(await engine.add(batch, collection="ours"))[0].outcome for batch in again]
        assert outcomes == ["updated", "updated", "unchanged"]
        await engine.documents.update(first.id, vector=(0.0, 0.0, 5.0))
        await engine.documents.update(first.id, metadata={"seen": True})
        assert await nearest(engine, 0.0, 0.0, 1.0, collection="ours") == {"apple": 1.0}
        await engine.documents.update(first.id, text="a red tomato")
        assert await nearest(engine, 0.0, 0.0, 1.0, collection="ours") == {}

    async def test_what_is_no_vector_of_the_space_is_refused(self, engine: AnyEngine) -> None:
        """With everything in its batch."""
        await engine.collections.create("ours", embedder=OURS)
        for vector in ((1.0, 0.0), (0.0, 0.0, 0.0), (), (1.0, math.nan, 0.0), (math.inf,) * 3):
            with pytest.raises(InvalidInput, match="vector"):
                await engine.add([SOME[0], NewDocument("bad", vector=vector)], collection="ours")
            assert await engine.documents.count(collection="ours") == 0

    async def test_a_collection_of_words_refuses_one(self, engine: AnyEngine) -> None:
        """It has no space; it can be moved to one without making any."""
        await engine.collections.create("words", embedder="none")
        with pytest.raises(InvalidInput, match="has no vectors"):
            await engine.add(SOME, collection="words")
        await engine.add(SOME[2], collection="words")
        assert await engine.maintenance.reembed(OURS, collection="words") == 0
        await engine.add(SOME, collection="words")
        assert await nearest(engine, 1.0, 0.0, 0.0, collection="words") == {"apple": 1.0, "pear": 0.0}

    async def test_beside_an_embedder_nothing_is_left_to_embed(self, engine: AnyEngine) -> None:
        """Only what brought none is embedded."""
        vector = tuple([1.0] + [0.0] * 63)
        await engine.add([NewDocument("mine", key="m", vector=vector), "made"], collection="both", wait=True)
        keys = await nearest(engine, *vector, collection="both")
        assert (keys["m"], len(keys)) == (1.0, 2)

    async def test_such_a_space_has_a_size(self, engine: AnyEngine) -> None:
        """One that can be kept."""
        for size in ("", "0", "x", "99999", "1000000"):
            with pytest.raises(InvalidInput, match="size"):
                await engine.collections.create("ours", embedder=f"vectors:{size}")
