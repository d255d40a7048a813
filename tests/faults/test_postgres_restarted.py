"""A server whose PostgreSQL is killed under load and started again goes on by itself, and nothing is lost."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

import conspectus
from conspectus import Settings
from conspectus.web.app import application
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.support.served import served
from tests.support.web_server import Answer, ScriptedServer
from tests.waiting import until
from tests.web.test_serve import Process, running_server

CLIENTS = 4
JOBS = 4
LONG = 120
QUICK = {"lock_timeout_seconds": 5, "lease_seconds": 3, "job_backoff_ms": 50, "log_level": "error"}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresProcess]:
    """A server that the tests here may kill."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def own_url(postgres: PostgresProcess) -> Iterator[str]:
    with postgres.fresh() as url:
        yield url


def require_busy(answer: httpx.Response) -> None:
    """What is said while the store is away: that it is, when to ask again, and nothing else."""
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (503, "storage_busy"), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    assert set(problem) == {"type", "title", "status", "detail", "code"}


@dataclass
class Book:
    """What was acknowledged, and how often something was refused."""

    client: httpx.AsyncClient
    written: set[str] = field(default_factory=set)
    refused: int = 0
    searches: int = 0

    async def ask_until_answered(self, path: str, body: Any, key: str = "") -> Any:
        """The answer, asked for until there is one, and with the same key."""
        while True:
            headers = {"Idempotency-Key": key} if key else {}
            answer = await self.client.post(path, json=body, headers=headers)
            if answer.is_success:
                return answer.json()
            if answer.json()["code"] != "write_outcome_unknown":
                require_busy(answer)
            self.refused += 1
            await asyncio.sleep(0.1)

    async def write_and_search(self, client_number: int, stop: asyncio.Event) -> None:
        """Write and ask by turns: what was acknowledged is found by the next question that is answered."""
        number = 0
        while not stop.is_set():
            name, number = f"tide{client_number}x{number}", number + 1
            body = {"documents": [{"text": f"the {name} comes in", "key": name}], "source": "kept"}
            await self.ask_until_answered("/collections/wiki/documents", body, key=name)
            self.written.add(name)
            question = {"query": name, "limit": 1, "collection": "wiki", "retrievers": ["keyword"]}
            hits = (await self.ask_until_answered("/search", question))["hits"]
            assert hits[0]["chunk"]["text"] == f"the {name} comes in"
            self.searches += 1

    async def wait_for_answers(self, more: int) -> None:
        """Wait until so many more questions were answered."""
        goal = self.searches + more
        await until(lambda: self.searches >= goal)

    async def kill_and_start(self, postgres: PostgresProcess) -> None:
        """Leave the store away until all clients were told so."""
        await self.wait_for_answers(CLIENTS)
        await asyncio.to_thread(postgres.kill)
        goal = self.refused + 2 * CLIENTS
        await until(lambda: self.refused >= goal)
        await asyncio.to_thread(postgres.start)
        await self.wait_for_answers(CLIENTS)


@asynccontextmanager
async def running_clients(client: httpx.AsyncClient) -> AsyncIterator[Book]:
    """While clients write and ask; one that is answered in a way that it should not be fails the test."""
    book, stop = Book(client), asyncio.Event()
    async with asyncio.TaskGroup() as clients:
        for client_number in range(CLIENTS):
            clients.create_task(book.write_and_search(client_number, stop))
        try:
            yield book
        finally:
            stop.set()


async def list_documents(client: httpx.AsyncClient, collection: str) -> list[dict[str, Any]]:
    """All of them."""
    page = (await client.get(f"/collections/{collection}/documents", params={"limit": 1000})).json()
    assert page["next"] is None
    documents: list[dict[str, Any]] = page["documents"]
    return documents


async def wait_for_end(client: httpx.AsyncClient, job: str) -> str:
    """The state that a job ended in."""
    state = ""

    async def has_ended() -> bool:
        nonlocal state
        state = (await client.get(f"/jobs/{job}")).json()["state"]
        return state not in {"queued", "running"}

    await until(has_ended)
    return state


async def are_all_embedded(client: httpx.AsyncClient) -> bool:
    return {document["status"] for document in await list_documents(client, "wiki")} == {"embedded"}


async def live_through_it(server: Process, site: str, postgres: PostgresProcess) -> None:
    """Clients and jobs, while the store goes away and comes back."""
    async with httpx.AsyncClient(base_url=f"{server.address}/api/v1", timeout=LONG) as client:
        for name in ("wiki", "pages"):
            await client.post("/collections", json={"name": name})
        addresses = [f"{site}/{number}" for number in range(JOBS)]
        async with running_clients(client) as book:
            path = "/collections/pages/ingest/url"
            jobs = [await book.ask_until_answered(path, {"url": address}) for address in addresses]
            await book.kill_and_start(postgres)
        assert [await wait_for_end(client, job["id"]) for job in jobs] == ["succeeded"] * JOBS
        pages = Counter(document["key"] for document in await list_documents(client, "pages"))
        assert pages == Counter(addresses)
        await until(lambda: are_all_embedded(client))
        stored_keys = Counter(document["key"] for document in await list_documents(client, "wiki"))
        assert stored_keys == Counter(book.written)


async def test_a_server_goes_on_when_its_database_comes_back(
    postgres: PostgresProcess, own_url: str, tmp_path: Path
) -> None:
    pages = {f"/{number}": Answer(f"page {number}".encode(), delay=0.5) for number in range(JOBS)}
    options = {
        **QUICK,
        "cache": tmp_path / "cache",
        "embedder": "minilm",
        "fetch_allowed_networks": "127.0.0.1",
    }
    async with ScriptedServer(pages) as site:
        with running_server(tmp_path, "--no-auth", path=own_url, **options) as server:
            await live_through_it(server, site.base, postgres)
            log = server.end()
        assert server.process.returncode == 0
    assert "request_failed" not in {json.loads(line)["event"] for line in log.splitlines()}


@pytest.mark.parametrize("answered", [True, False])
async def test_a_key_is_not_lost_with_the_database(
    postgres: PostgresProcess, own_url: str, tmp_path: Path, answered: bool
) -> None:
    """Whoever asks again is answered, by this server and by another one, and what was done is done once."""
    settings = Settings(embedder="none", log_level="critical", cache=str(tmp_path), lock_timeout_seconds=3)
    calls: list[int] = []
    async with conspectus.open(own_url, settings=settings) as engine:

        async def last_words() -> int:
            calls.append(1)
            if len(calls) == 1:
                await asyncio.to_thread(postgres.kill)
            if not answered:
                await engine.people.list_users()
            return len(calls)

        here, elsewhere = application(engine, settings), application(engine, settings)
        here.add_api_route("/api/v1/last-words", last_words, methods=["POST"])
        elsewhere.add_api_route("/api/v1/last-words", last_words, methods=["POST"])
        async with served(here) as address, httpx.AsyncClient(base_url=address, timeout=LONG) as client:
            first = await ask_again(client)
            assert first.json() == 1 if answered else first.status_code == 503
            require_busy(await ask_again(client))
            await asyncio.to_thread(postgres.start)
            transport = httpx.ASGITransport(elsewhere)
            async with httpx.AsyncClient(base_url="http://localhost", transport=transport) as other:
                await until(lambda: is_answered(other))
                assert (await ask_again(other)).headers["idempotent-replayed"] == "true"
            assert (await ask_again(client)).headers["idempotent-replayed"] == "true"
    assert len(calls) == (1 if answered else 2)


async def ask_again(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/api/v1/last-words", headers={"Idempotency-Key": "one"})


async def is_answered(client: httpx.AsyncClient) -> bool:
    return (await ask_again(client)).is_success
