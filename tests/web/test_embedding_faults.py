"""An embedding service that misbehaves: queries fall back, and vectors are refused with an error of ours."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest

import conspectus
from conspectus import Settings, bootstrap
from conspectus.engine import Engine
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.model.graph import EntityLink, NewNode
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from tests.support.misbehaviour import as_json, service_faults, vector_faults
from tests.support.model_servers import ModelServer
from tests.support.vendor_protocols import openai
from tests.support.web_server import Answer
from tests.waiting import until
from tests.web.conftest import Site

DIMENSIONS = 8
SETTINGS = Settings(
    embedder=f"openai:text-embedding-3-small@{DIMENSIONS}",
    embed_max_attempts=1,
    embed_batch_delay_ms=0,
    provider_timeout_seconds=1,
    log_level="critical",
)
QUERY = "the capital on the Thames: London"
NODES = [
    NewNode("uk", "place", "London", properties={"content": "the capital on the river Thames"}),
    NewNode("ca", "place", "London", properties={"content": "a city in Ontario"}),
]
PASSING = frozenset(
    {"login page", "truncated JSON", "silence", "429", "500", "503", "rows: NaN", "rows: none"}
)
"""Some of the faults that a retry may cure."""


def faulty_answers() -> dict[str, Answer]:
    """Answers of every kind to a request for one vector."""
    rows = vector_faults([[1.0] * DIMENSIONS])
    bodies = {
        name: {"data": [{"index": number, "embedding": row} for number, row in enumerate(wrong)]}
        for name, wrong in rows.items()
    }
    return service_faults() | {f"rows: {name}": as_json(body) for name, body in bodies.items()}


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModelServer]:
    async with ModelServer(openai()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.base}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        yield running


def nodes_of(links: Sequence[EntityLink]) -> list[tuple[str, str | None]]:
    return [(link.mention.text, link.node and link.node.id) for link in links]


async def test_a_query_without_a_vector_is_answered_without_one(server: ModelServer, tmp_path: Path) -> None:
    async with bootstrap.open(tmp_path / "plain", settings=Settings(embedder="none")) as plain:
        await plain.graph.add_nodes(NODES)
        expected = nodes_of(await plain.graph.link_entities(QUERY))
    async with bootstrap.open(tmp_path / "data", settings=SETTINGS) as engine:
        await engine.graph.add_nodes(NODES)
        await engine.add("London lies on the Thames.", wait=True)
        calls_before = len(server.calls)
        await engine.graph.link_entities(QUERY)
        assert len(server.calls) > calls_before, "linking embeds the text"
        for name, fault in faulty_answers().items():
            server.say("/v1/embeddings", lambda call, fault=fault: fault)
            assert nodes_of(await engine.graph.link_entities(QUERY)) == expected, name
            retrieval = await engine.retrieve("Thames")
            assert len(retrieval.hits) == 1 and "could not be embedded" in retrieval.notices[0], name


async def test_vectors_are_refused_with_an_error_of_ours(server: ModelServer, tmp_path: Path) -> None:
    async with bootstrap.open(tmp_path, settings=SETTINGS) as engine:
        app = application(engine, SETTINGS)
        async with app.router.lifespan_context(app), Site(app, engine, SETTINGS).client() as api:
            assert (await api.post("/embeddings", json={"input": "x"})).status_code == 200
            for name, fault in faulty_answers().items():
                server.say("/v1/embeddings", lambda call, fault=fault: fault)
                answer = await api.post("/embeddings", json={"input": "x"})
                error = answer.json()["error"]
                refusal = (answer.status_code, error["code"], error["type"])
                assert refusal in {
                    (502, "provider_error", "server_error"),
                    (503, "provider_unavailable", "server_error"),
                }, name
                assert name not in PASSING or answer.status_code == 503, name


async def test_a_store_for_given_vectors_has_none_to_offer(tmp_path: Path) -> None:
    settings = Settings(embedder="vectors:3")
    async with bootstrap.open(tmp_path, settings=settings) as engine:
        app = application(engine, settings)
        async with app.router.lifespan_context(app), Site(app, engine, settings).client() as api:
            answer = await api.post("/embeddings", json={"input": "x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "model")


FAR_APART = 1_000.0
"""Seconds between two captions, more than the gap within which an alert is told once."""


class BrokenEmbedder(HashedEmbedder):
    """Raises an error of its own for queries."""

    async def embed_query(self, text: str) -> Vectors:
        raise RuntimeError("the model is gone")


async def test_alerts_go_on_with_words_if_an_embedder_raises(tmp_path: Path) -> None:
    settings = Settings(alert_poll_interval_ms=20, log_level="critical")
    async with conspectus.open(tmp_path, settings=settings, embedder=BrokenEmbedder()) as engine:
        await engine.alerts.start()
        await engine.streams.put("cam")
        await engine.alerts.put(NewAlert("fire", "fire", min_similarity=0.5))
        for start in (0.0, FAR_APART):
            caption = NewCaption("a fire", start, start + 1)
            await engine.streams.add_captions(caption, stream="cam", wait=True)
            await until(partial(has_match, engine, start))
        await engine.alerts.start()
        assert {match.reason for match in await engine.alerts.list_matches()} == {"words: fire"}


async def has_match(engine: Engine, start: float) -> bool:
    return start in [match.start for match in await engine.alerts.list_matches()]
