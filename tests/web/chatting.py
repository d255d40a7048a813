"""A chat over HTTP: a served application whose chat model is a scripted one."""

import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from conspectus import bootstrap
from conspectus.client.event_stream import ServerEvent, events_in
from conspectus.engine import Engine
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from conspectus.web.logs import API, logger
from tests.server_events import Event, parsed
from tests.support.served import served

SETTINGS = Settings(embedder="none", chat_disconnect_grace_seconds=0)
MESSAGE = {"message": "When do backups run?"}


@dataclass
class Chats:
    """An application behind a real server, and what it logged."""

    url: str
    app: FastAPI
    engine: Engine
    model: ScriptedChatModel
    log: io.StringIO = field(default_factory=io.StringIO)

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return httpx.AsyncClient(base_url=f"{self.url}{API}", headers=headers, timeout=60)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The lines of the log that tell of a request."""
        lines = map(json.loads, self.log.getvalue().splitlines())
        return [line for line in lines if line["event"] == "request"]

    async def chat(self, *, key: str | None = None, **more: Any) -> list[Event]:
        """The events of a whole chat."""
        async with self.client(key) as client:
            answer = await client.post("/chat", json={**MESSAGE, **more})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        return parsed(answer.content)


@asynccontextmanager
async def chats(
    folder: Path,
    model: ScriptedChatModel | None,
    prepare: Callable[[FastAPI], None] = lambda _app: None,
    **settings: Any,
) -> AsyncIterator[Chats]:
    """A store of its own that is served, with a chat model or with none."""
    all_settings = replace(SETTINGS, **settings)
    opened = bootstrap.open(
        folder / "data", settings=all_settings, embedder=HashedEmbedder(), chat_model=model
    )
    async with opened as engine:
        log = io.StringIO()
        app = application(engine, all_settings, log=logger("info", log))
        prepare(app)
        async with served(app) as url:
            yield Chats(url, app, engine, model or ScriptedChatModel(), log)


@asynccontextmanager
async def reading(
    client: httpx.AsyncClient, path: str = "/chat", **more: Any
) -> AsyncIterator[AsyncIterator[ServerEvent]]:
    """The events of a chat as they come, until the client goes away."""
    headers: Mapping[str, str] = more.pop("headers", {})
    method, body = ("GET", None) if path != "/chat" else ("POST", {**MESSAGE, **more})
    async with client.stream(method, path, json=body, headers=headers) as answer:
        assert answer.status_code == 200, (await answer.aread()).decode()
        async with aclosing(events_in(answer.aiter_bytes())) as events:
            yield events


def text_of(events: list[Event]) -> str:
    """The answer that events tell."""
    texts = {"message": lambda data: data, "delta": lambda data: json.loads(data)["text"]}
    return "".join(texts[event.name](event.data) for event in events[:-1] if event.name in texts)
