"""`conspectus serve` with a vendor's model: what reaches the vendor, and how chats end with the server."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import conspectus
from conspectus.client.event_stream import events_in
from conspectus.model.access import Principal
from conspectus.model.chat import ChatRequest, Citations, Delta, Failure, Sources
from tests.server_events import parsed
from tests.support.chat_server import ChatServer, refusing, stumbling
from tests.web.chatting import MESSAGE
from tests.web.conftest import SETTINGS
from tests.web.test_serve import Process, running_server


@pytest.fixture
async def vendor() -> AsyncIterator[ChatServer]:
    async with ChatServer(["Backups", " run", " at two [1]."], key="sk-hunter2", model="small") as server:
        yield server


@contextmanager
def running_chat_server(
    folder: Path, vendor: ChatServer, monkeypatch: pytest.MonkeyPatch, programs: Path, **more: object
) -> Iterator[Process]:
    """A server that asks the vendor, and answers this machine without a key unless there are accounts."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    settings = {"chat_model": "openai:small", "chat_base_url": vendor.url, "embedder": "minilm", **more}
    arguments = [] if more.get("accounts") else ["--no-auth"]
    settings.pop("accounts", None)
    program = [str(programs / "conspectus"), "serve", "--port", "0"]
    with running_server(folder, *arguments, program=program, **settings) as process:
        yield process


async def test_what_reaches_the_vendor_is_what_the_person_may_see(
    tmp_path: Path, vendor: ChatServer, monkeypatch: pytest.MonkeyPatch, preloaded: Path
) -> None:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS) as engine:
        await engine.keys.create_first()
        await engine.add("The backup code is 4711.", collection="secret", wait=True)
        await engine.add("Backups run at two.", collection="wiki", wait=True)
        await engine.people.create_user("ann")
        key = (await engine.keys.create("ann", scopes=("read",))).secret
        await engine.access.grant("wiki", Principal("user", "ann"), "viewer")
    with running_chat_server(tmp_path, vendor, monkeypatch, preloaded, accounts=True) as process:
        async with conspectus.connect(process.address, api_key=key) as engine:
            request = ChatRequest("backup code backups", min_similarity=None)
            events = [event async for event in engine.chat.stream(request)]
        bodies = json.dumps([call.body for call in vendor.calls])
        log = await asyncio.to_thread(process.end)
    assert ("run at two." in bodies, "4711" in bodies, "4711" in repr(events)) == (True, False, False)
    assert "".join(part.text for part in events if isinstance(part, Delta)) == "Backups run at two [1]."
    assert [len(part.sources) for part in events if isinstance(part, Sources)] == [1]
    assert [len(part.cited) for part in events if isinstance(part, Citations)] == [1]
    assert ("hunter2" in log, "backup code" in log, "at two" in log) == (False, False, False)


async def test_a_server_that_is_asked_to_stop_ends_its_chats_with_an_event(
    tmp_path: Path, vendor: ChatServer, monkeypatch: pytest.MonkeyPatch, preloaded: Path
) -> None:
    vendor.plan.append(stumbling("silent", after=1))
    with running_chat_server(tmp_path, vendor, monkeypatch, preloaded, job_grace_seconds=4) as process:
        async with (
            httpx.AsyncClient(base_url=f"{process.address}/api/v1", timeout=60) as client,
            client.stream("POST", "/chat", json=MESSAGE) as answer,
        ):
            events = events_in(answer.aiter_bytes())
            await anext(events)
            await vendor.silent.wait()
            ending = asyncio.create_task(asyncio.to_thread(process.end))
            rest = [event async for event in events]
        log = await ending
    assert [event.name for event in rest] == ["message", "error", "message"]
    assert (json.loads(rest[1].data)["code"], rest[2].data) == ("stopping", "[DONE]")
    assert (process.process.returncode, vendor.left, "Traceback" in log) == (0, 1, False)


@pytest.mark.slow
async def test_what_a_vendor_refuses_is_told_without_its_words(
    tmp_path: Path, vendor: ChatServer, monkeypatch: pytest.MonkeyPatch, preloaded: Path
) -> None:
    vendor.plan.append(refusing(401, "invalid_api_key", message="Incorrect API key: sk-hunter2"))
    vendor.plan.append(stumbling("cut", after=2))
    with running_chat_server(tmp_path, vendor, monkeypatch, preloaded) as process:
        async with httpx.AsyncClient(base_url=f"{process.address}/api/v1", timeout=60) as client:
            refused, cut = [await client.post("/chat", json=MESSAGE) for _ in range(2)]
        await asyncio.to_thread(process.end)
    assert json.loads(parsed(refused.content)[1].data)["code"] == "LLM_AUTH_FAILED"
    assert "hunter2" not in refused.text
    assert [event.name for event in parsed(cut.content)] == [
        "sources",
        "message",
        "message",
        "error",
        "message",
    ]
    assert json.loads(parsed(cut.content)[3].data)["code"] == "LLM_CONNECTION_ERROR"


@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
async def test_a_lost_connection_is_gone_on_with_by_our_own_client(
    tmp_path: Path, vendor: ChatServer, monkeypatch: pytest.MonkeyPatch, preloaded: Path, workers: int
) -> None:
    with running_chat_server(tmp_path, vendor, monkeypatch, preloaded, workers=workers) as process:
        async with Cutting(process.address) as cutting, conspectus.connect(cutting.url) as engine:
            events = [event async for event in engine.chat.stream(ChatRequest("When do backups run?"))]
        await asyncio.to_thread(process.end)
    assert "".join(part.text for part in events if isinstance(part, Delta)) == "Backups run at two [1]."
    assert [part for part in events if isinstance(part, Failure)] == []
    assert (cutting.connections, len(vendor.calls)) == (4, 1)


class Cutting:
    """A way to a server that cuts off connections in the middle of an answer, but for the fourth one."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.removeprefix("http://").partition(":")
        self.connections = 0
        self.url = ""

    async def __aenter__(self) -> "Cutting":
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, here = await asyncio.open_connection(self._host, int(self._port))
        up = asyncio.create_task(carry_until(reader, here, None))
        await carry_until(there, writer, None if self.connections == 4 else b"data: ")
        for stream in (writer, here):
            stream.close()
        await asyncio.gather(up, return_exceptions=True)


async def carry_until(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: bytes | None
) -> None:
    """Carry bytes over until the end, or until some that come for the second time."""
    seen = b""
    while piece := await reader.read(40):
        seen += piece
        if until is not None and seen.count(until) > 1:
            break
        writer.write(piece)
        await writer.drain()
