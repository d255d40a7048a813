"""Readiness of servers whose database lacks what the indexes need."""

import io
import os
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import FastAPI

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.errors import ExtensionMissing
from conspectus.settings import Settings
from conspectus.web.app import application
from conspectus.web.logs import logger
from tests.support.postgres_server import PostgresProcess
from tests.waiting import until

SETTINGS = Settings(embedder="minilm", log_level="critical")
MISSING = "the database has no pgvector; run CREATE EXTENSION vector in this database as a superuser"


@pytest.fixture
def clerk_url(postgres: PostgresProcess) -> Iterator[str]:
    """An empty database and a user who may create tables in it, and no extension."""
    with postgres.fresh(empty=True) as url:
        database = url.partition("@/")[2].partition("?")[0]
        user = f"clerk_{os.getpid()}"
        postgres.run(f"CREATE ROLE {user} LOGIN")
        postgres.run(f"GRANT CREATE ON SCHEMA public TO {user}", database)
        yield postgres.url(database, user)
        postgres.run(f"DROP OWNED BY {user}; DROP ROLE {user}", database)


@pytest.fixture
async def clerk_engine(clerk_url: str) -> AsyncIterator[Engine]:
    async with bootstrap.open(clerk_url, settings=SETTINGS) as engine:
        yield engine


async def ask(app: FastAPI) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        return await client.get("/readyz")


async def wait_for(app: FastAPI, status: int) -> httpx.Response:
    """Return the first answer of that status from a server that has tried to be ready."""
    answers: list[httpx.Response] = []

    async def has_answered() -> bool:
        answers.append(await ask(app))
        return answers[-1].status_code == status and "starting" not in answers[-1].text

    await until(has_answered)
    return answers[-1]


async def test_an_empty_store_without_pgvector_is_not_ready_until_it_is_there(
    clerk_engine: Engine, clerk_url: str, postgres: PostgresProcess
) -> None:
    app = application(clerk_engine, SETTINGS, log=logger("critical", io.StringIO()))
    async with app.router.lifespan_context(app):
        assert (await wait_for(app, 503)).json()["detail"] == MISSING
        with pytest.raises(ExtensionMissing, match=MISSING):
            await clerk_engine.add("a page")
        postgres.run("CREATE EXTENSION vector", clerk_url.partition("@/")[2].partition("?")[0])
        await wait_for(app, 200)
        assert [written.outcome for written in await clerk_engine.add("a page")] == ["added"]


async def test_a_store_that_needs_no_vectors_is_ready_without_pgvector(clerk_url: str) -> None:
    settings = Settings(embedder="none", log_level="critical")
    async with bootstrap.open(clerk_url, settings=settings) as engine:
        app = application(engine, settings, log=logger("critical", io.StringIO()))
        async with app.router.lifespan_context(app):
            answer = await wait_for(app, 200)
    assert answer.json() == {"status": "ready", "unavailable_collections": 0}
