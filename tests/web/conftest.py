"""An application over a real store, and clients that speak to it without a network or over a real one."""

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from conspectus import bootstrap
from conspectus.engine import Engine
from conspectus.model.access import SCOPES
from conspectus.ports.chat import ChatModel
from conspectus.settings import Settings
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from conspectus.web.logs import API, logger
from conspectus.web.serve import Server, bound

SETTINGS = Settings(embedder="none", answer_records="all")


@dataclass
class Site:
    """An application, its engine, and what it logged."""

    app: FastAPI
    engine: Engine
    settings: Settings
    log: io.StringIO = field(default_factory=io.StringIO)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log, each a JSON object."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Those lines that tell of a request."""
        return [line for line in self.lines if line["event"] == "request"]

    def client(self, key: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client, with a key or without."""
        all_headers = headers if key is None else {"Authorization": f"Bearer {key}", **headers}
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url=f"http://localhost{API}", headers=all_headers)


OpenSite = Callable[..., Any]


@pytest.fixture
def open_site(tmp_path: Path) -> OpenSite:
    """Opens a site on a store of its own; settings may be given."""

    @asynccontextmanager
    async def opened(chat_model: ChatModel | None = None, **settings: Any) -> AsyncIterator[Site]:
        all_settings = replace(SETTINGS, **settings)
        folder = tmp_path / "data"
        models = {"embedder": HashedEmbedder(), "chat_model": chat_model}
        async with bootstrap.open(folder, settings=all_settings, **models) as engine:
            log = io.StringIO()
            app = application(engine, all_settings, log=logger("info", log))
            async with app.router.lifespan_context(app):
                yield Site(app, engine, all_settings, log)

    return opened


@pytest.fixture
async def site(open_site: OpenSite) -> AsyncIterator[Site]:
    async with open_site() as opened:
        yield opened


@pytest.fixture
async def api(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """Whoever sits at the machine of a store without accounts."""
    async with site.client() as client:
        yield client


@pytest.fixture(scope="session")
def openapi(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The OpenAPI document, which takes seconds to make and is only read."""

    async def made() -> dict[str, Any]:
        async with bootstrap.open(tmp_path_factory.mktemp("openapi"), settings=SETTINGS) as engine:
            return application(engine, SETTINGS).openapi()

    return asyncio.run(made())


@dataclass(frozen=True)
class People:
    """Clients of the owner account and of two others; and their keys."""

    owner: httpx.AsyncClient
    alice: httpx.AsyncClient
    bob: httpx.AsyncClient
    keys: dict[str, str]


@pytest.fixture
async def people(site: Site) -> AsyncIterator[People]:
    async with peopled(site) as accounts:
        yield accounts


@asynccontextmanager
async def peopled(site: Site) -> AsyncIterator[People]:
    """The owner account and two others of a site."""
    key = await site.engine.keys.create_first()
    assert key is not None
    keys = {"owner": key.secret}
    for name in ("alice", "bob"):
        await site.engine.people.create_user(name)
        keys[name] = (await site.engine.keys.create(name, scopes=SCOPES)).secret
    async with (
        site.client(keys["owner"]) as owner,
        site.client(keys["alice"]) as alice,
        site.client(keys["bob"]) as bob,
    ):
        yield People(owner, alice, bob, keys)


@dataclass
class Live:
    """A real server in a thread of its own, with its store."""

    folder: Path
    settings: Settings
    prepare: Callable[[FastAPI], None] = lambda _app: None
    chat_model: ChatModel | None = None
    log: io.StringIO = field(default_factory=io.StringIO)
    address: str = ""

    def __enter__(self) -> "Live":
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def stop(self) -> None:
        """Ask it to stop, as SIGTERM does."""
        self._loop.call_soon_threadsafe(self._server.stop)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            opened = bootstrap.open(
                self.folder,
                settings=self.settings,
                embedder=HashedEmbedder(),
                chat_model=self.chat_model,
            )
            async with opened as engine:
                app = application(engine, self.settings, log=logger("info", self.log))
                self.prepare(app)
                with closing(bound("127.0.0.1", 0)) as listener:
                    listener.listen()
                    self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
                    self._server = Server(app, self.settings)
                    self._started.set()
                    await self._server.serve(sockets=[listener])
        finally:
            self._started.set()

    def client(self) -> httpx.Client:
        """A client of it."""
        return httpx.Client(base_url=f"{self.address}{API}", timeout=60)


async def filled(client: httpx.AsyncClient, name: str = "wiki", *texts: str) -> list[str]:
    """A collection with documents; their ids."""
    collection = await client.post("/collections", json={"name": name})
    assert collection.status_code == 201
    documents = [{"text": text, "title": text.split()[0]} for text in texts or ("Backups run at two.",)]
    added = await client.post(
        f"/collections/{collection.json()['id']}/documents", json={"documents": documents, "wait": True}
    )
    assert added.status_code == 201
    return [document["id"] for document in added.json()]
