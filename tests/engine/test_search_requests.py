"""Of a request, only its subject is searched for."""

from pathlib import Path

from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument
from conspectus.testing.embedders import HashedEmbedder

REQUEST = "Can you list the order in which I mentioned our garden?"


async def test_words_that_ask_find_nothing(tmp_path: Path) -> None:
    documents = [
        NewDocument("Can you list the order in which I mentioned it?", key="request"),
        NewDocument("The garden needs rain.", key="garden"),
    ]
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add(documents, wait=True)
        hits = (await engine.retrieve(REQUEST, retrievers=("keyword",))).hits
    assert [hit.document.key for hit in hits] == ["garden"]


async def test_a_request_and_its_subject_have_the_same_vector(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await engine.add([NewDocument("The garden needs rain.")], wait=True)
        similarities = [
            (await engine.retrieve(query, collection=collection)).hits[0].similarity
            for query in (REQUEST, "our garden")
            for collection in ("default", "*")
        ]
    assert len(set(similarities)) == 1
