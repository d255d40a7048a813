"""Chats beside all other requests: whose places they take, how long they last, and how they end."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from conspectus.model.access import Principal
from conspectus.testing.chat_models import ScriptedChatModel
from tests.server_events import parsed
from tests.waiting import until
from tests.web.chatting import MESSAGE, chats, reading

WORDS = ["one", "two"]


def hanging_model() -> ScriptedChatModel:
    return ScriptedChatModel(WORDS, hangs=True, after=1)


@pytest.fixture
async def loaded(tmp_path: Path) -> None:
    """What the first chat of a process loads may take longer than a request is given here."""
    async with chats(tmp_path / "before", ScriptedChatModel(["x"])) as site:
        await site.chat()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_chat_that_waits_for_the_model_takes_no_place(tmp_path: Path, stream: bool) -> None:
    model = hanging_model()
    async with (
        chats(tmp_path, model, max_concurrent_requests=1, max_queued_requests=0) as site,
        site.client() as client,
    ):
        asking = asyncio.create_task(client.post("/chat", json={**MESSAGE, "stream": stream}))
        await until(model.hanging.is_set)
        assert (await client.get("/me")).status_code == 200
        text = httpx.AsyncClient()
        async with text:
            assert "conspectus_chats_in_flight 1.0" in (await text.get(f"{site.url}/metrics")).text
        model.released.set()
        assert (await asking).status_code == 200
        assert (await client.get("/me")).status_code == 200


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("path", ["/chat", "/chat/completions"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_chat_may_take_longer_than_a_request(tmp_path: Path, path: str, stream: bool) -> None:
    model = hanging_model()
    body = {**MESSAGE, "stream": stream}
    if path != "/chat":
        body = {"messages": [{"role": "user", "content": "x"}], "stream": stream}
    async with chats(tmp_path, model, request_timeout_seconds=1) as site, site.client() as client:
        asking = asyncio.create_task(client.post(path, json=body))
        await until(model.hanging.is_set)
        await asyncio.sleep(1.5)
        model.released.set()
        answer = await asking
    assert answer.status_code == 200
    assert "two" in answer.text


async def test_what_is_looked_for_first_takes_a_place_and_its_time(tmp_path: Path) -> None:
    settings = {"max_concurrent_requests": 0, "request_timeout_seconds": 1}
    async with chats(tmp_path, hanging_model(), **settings) as site, site.client() as client:
        answer = await client.post("/chat", json=MESSAGE)
    assert (answer.status_code, answer.json()["code"]) == (504, "timeout")


async def test_a_silent_model_is_bridged_by_comments(tmp_path: Path) -> None:
    model = hanging_model()
    pieces = []
    async with (
        chats(tmp_path, model, chat_heartbeat_seconds=1) as site,
        site.client() as client,
        client.stream("POST", "/chat", json=MESSAGE) as answer,
    ):
        async for piece in answer.aiter_bytes():
            pieces.append(piece)
            if b": still here\n\n" in piece:
                model.released.set()
    assert pieces[-1].endswith(b"data: [DONE]\n\n")
    assert [event.data for event in parsed(pieces)[1:3]] == WORDS


@pytest.mark.usefixtures("loaded")
async def test_who_takes_nothing_in_is_waited_for_only_so_long(tmp_path: Path) -> None:
    model = ScriptedChatModel(["x" * 50_000] * 400)
    async with chats(tmp_path, model, request_timeout_seconds=1) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]), limit=1)
        body = json.dumps(MESSAGE)
        head = f"POST /api/v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n{body}".encode())
        await until(lambda: model.broken_off == 1)
        writer.transport.abort()
        await until(lambda: len(site.requests) == 1)
    assert (site.requests[0]["status"], await reader.read(5)) == (200, b"HTTP/")


@pytest.mark.slow
async def test_two_hundred_at_once(tmp_path: Path) -> None:
    model = ScriptedChatModel(["x"] * 20)
    async with (
        chats(tmp_path, model, max_concurrent_requests=8, max_queued_requests=200) as site,
        site.client() as client,
    ):
        asking = [client.post("/chat", json={**MESSAGE, "message": f"backup {n}"}) for n in range(200)]
        answers = await asyncio.gather(*asking)
        assert {answer.status_code for answer in answers} == {200}
        assert {parsed(answer.content)[-1].data for answer in answers} == {"[DONE]"}
        assert {answer.text.count("data: x\n") for answer in answers} == {20}
        assert len({answer.headers["x-chat-stream"] for answer in answers}) == 200
        assert (model.open, len(model.asked), len(site.app.state.streams)) == (0, 200, 0)


async def test_no_more_chats_than_there_may_be(tmp_path: Path) -> None:
    model = hanging_model()
    async with chats(tmp_path, model, max_chat_streams=2) as site, site.client() as client:
        async with reading(client) as one, reading(client) as two:
            await anext(one)
            await anext(two)
            answer = await client.post("/chat", json=MESSAGE)
            assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
            assert int(answer.headers["retry-after"]) >= 1
            refusal = await client.post(
                "/chat/completions", json={"messages": [{"role": "user", "content": "x"}]}
            )
            assert (refusal.status_code, refusal.json()["error"]["code"]) == (503, "overloaded")
        await until(lambda: len(site.app.state.streams) == 0)
        model.released.set()
        assert (await site.chat())[-1].data == "[DONE]"


async def test_a_key_for_writes_holds_nothing_back(tmp_path: Path) -> None:
    model, key = hanging_model(), {"Idempotency-Key": "one"}
    async with chats(tmp_path, model) as site, site.client() as client:
        async with reading(client, headers=key) as events:
            assert [(await anext(events)).name for _ in range(2)] == ["sources", "message"]
        model.released.set()
        again = await client.post("/chat", json=MESSAGE, headers=key)
        assert (len(model.asked), "idempotent-replayed" in again.headers) == (2, False)


async def test_the_log_has_one_line_for_a_chat_and_nothing_of_it(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(["Zanzibar"])) as site:
        await site.chat(message="Quetzal")
        await until(lambda: len(site.requests) == 1)
        [line] = site.requests
        log = site.log.getvalue()
    assert (line["route"], line["status"], line["milliseconds"] > 0) == ("/api/v1/chat", 200, True)
    assert ("Zanzibar" in log, "Quetzal" in log) == (False, False)


async def test_who_is_hidden_from_is_not_given_it_by_the_model(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(lambda messages: [messages[-1].content])) as site:
        await site.engine.add("The quince code is 4711.", collection="secret", wait=True)
        await site.engine.add("Quinces are ripe.", source="open", collection="wiki", wait=True)
        await site.engine.people.create_user("ann")
        ann = (await site.engine.keys.create("ann", scopes=("read",))).secret
        source = await site.engine.collections.get_source("open", collection="wiki")
        await site.engine.access.grant("wiki", Principal("user", "ann"), "viewer", source=source.name)
        events = await site.chat(key=ann, message="quince code", min_similarity=None)
        assert "ripe" in site.model.asked[0].messages[-1].content
        visible_text = "".join(event.data for event in events) + repr(site.model.asked)
        async with site.client(ann) as client:
            body = {"message": "code", "collection": "secret"}
            assert (await client.post("/chat", json=body)).status_code == 404
            body = {"messages": [{"role": "user", "content": "quince code"}]}
            visible_text += (await client.post("/chat/completions", json=body)).text + repr(site.model.asked)
    assert ("is 4711" in visible_text, len(site.model.asked)) == (False, 2)


async def test_to_chat_a_key_has_to_be_good_for_reading(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS)) as site:
        await site.engine.keys.create_first()
        for scopes, status in ((("read",), 200), (("write", "admin"), 403)):
            key = (await site.engine.keys.create("owner", scopes=scopes)).secret
            async with site.client(key) as client:
                answer = await client.post("/chat", json={**MESSAGE, "use_context": False})
            assert answer.status_code == status
    assert len(site.model.asked) == 1


async def test_one_user_cannot_have_all_chats(tmp_path: Path) -> None:
    """Nor can it with several keys; what is over counts no more."""
    model = hanging_model()
    async with chats(tmp_path, model, max_user_chats=1) as site, AsyncExitStack() as stack:
        await site.engine.keys.create_first()
        for name in ("ann", "bob"):
            await site.engine.people.create_user(name)
        secrets = [(await site.engine.keys.create(name)).secret for name in ("ann", "ann", "bob")]
        one, two, bob = [await stack.enter_async_context(site.client(secret)) for secret in secrets]
        first = asyncio.create_task(one.post("/chat", json=MESSAGE))
        await until(model.hanging.is_set)
        refused = await two.post("/chat", json=MESSAGE)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        other = asyncio.create_task(bob.post("/chat", json=MESSAGE))
        model.released.set()
        assert [(await request).status_code for request in (first, other)] == [200, 200]
        assert (await two.post("/chat", json=MESSAGE)).status_code == 200
