"""One question, one answer: every combination of stores agrees with the exact index on the best ten."""

import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.congruence.comparing import LOOKED_AT, Agreement, key_of
from tests.congruence.worlds import PopulatedStore, Question, World, populate, world_of
from tests.stores import SETTINGS, STORES, Servers
from tests.support.in_memory_index import MemoryIndex
from tests.support.milvus_server import MilvusProcess
from tests.support.postgres_server import PostgresProcess

from conspectus import Engine, NewDocument
from conspectus.bootstrap.components import components_at
from conspectus.bootstrap.models import CALLER_EMBEDDER, Models
from conspectus.bootstrap.store_address import address_of
from conspectus.evals.datasets import read_retrieval_set
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.model.results import Hit
from conspectus.ports import Embedder, Index, Reader
from conspectus.testing.embedders import HashedEmbedder
from conspectus.text.analyzer import Analyzer

MIN_SHARE = 0.95
APPROXIMATE = {"postgresql+pgvector"}
WORDS = [
    f"{first}{last}" for first in ("fox", "sun", "sea", "tree", "road") for last in ("", "s", "light", "er")
]


async def in_memory(collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
    return MemoryIndex(reader, Analyzer(language=collection.language).terms)


@asynccontextmanager
async def open_exact(folder: Path, embedder: Embedder) -> AsyncIterator[Engine]:
    """An engine whose index looks at every chunk."""
    settings = replace(SETTINGS, embedder=CALLER_EMBEDDER)
    parts = await components_at(address_of(folder, settings), settings, Models(settings, embedder))
    engine = Engine(replace(parts, open_index=in_memory))
    try:
        yield engine
    finally:
        await engine.close()


async def retrieve_all(store: PopulatedStore, questions: Sequence[Question]) -> list[tuple[Hit, ...]]:
    return [
        (
            await store.engines[question.person].retrieve(
                question.text, filter=store.condition(question), limit=LOOKED_AT
            )
        ).hits
        for question in questions
    ]


async def compare_stores(servers: Servers, folder: Path, world: World) -> dict[str, Agreement]:
    """How far each store agrees with the exact index."""
    embedder = HashedEmbedder()
    async with open_exact(folder / "exact", embedder) as engine:
        expected = await retrieve_all(await populate(engine, world), world.questions)
    agreements: dict[str, Agreement] = {}
    orders: dict[str, list[list[object]]] = {}
    for store in STORES:
        async with servers.opened(store, folder / store, embedder) as engine:
            answers = await retrieve_all(await populate(engine, world), world.questions)
        agreements[store] = Agreement()
        for question, before, after in zip(world.questions, expected, answers, strict=True):
            agreements[store].add(question, before, after)
        orders[store] = [[(key_of(h), h.score, h.bm25, h.similarity) for h in hits] for hits in answers]
    assert json.dumps(orders["sqlite+segments"]) == json.dumps(orders["postgresql+segments"])
    return agreements


def assert_congruent(agreements: dict[str, Agreement], least: int) -> None:
    for store, agreement in agreements.items():
        print(f"{store:22} {agreement.same}/{agreement.entries} = {agreement.share:.4f}", agreement.reasons)
        assert agreement.entries >= least
        assert agreement.reasons["unexplained"] == 0, agreement.examples
        assert agreement.reasons["approximate"] == 0 or store in APPROXIMATE, agreement.examples
        assert agreement.share >= MIN_SHARE, agreement.examples


@pytest.fixture(scope="session")
def servers(postgres: PostgresProcess, milvus: MilvusProcess) -> Servers:
    return Servers(postgres, milvus)


async def test_generated_documents(servers: Servers, tmp_path: Path) -> None:
    chance = random.Random(1)
    texts = [NewDocument(" ".join(chance.choices(WORDS, k=chance.randint(0, 30)))) for _ in range(150)]
    world = world_of(texts, 25, seed=2)
    assert_congruent(await compare_stores(servers, tmp_path, world), least=100)


@pytest.mark.slow
@pytest.mark.data
async def test_real_documents(servers: Servers, tmp_path: Path, evaluation: Callable[[str], Path]) -> None:
    texts = read_retrieval_set(evaluation("scifact")).documents
    assert len(texts) >= 5_000
    world = world_of(texts, 500, seed=3)
    assert_congruent(await compare_stores(servers, tmp_path, world), least=2_500)
