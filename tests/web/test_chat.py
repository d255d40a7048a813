"""`POST /chat`: what comes in which order, what is refused, and what becomes of what goes wrong."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import ChatAuthFailed, ChatRateLimited, ChatUnreachable
from conspectus.model.access import Principal
from conspectus.model.filter import Eq
from conspectus.testing.chat_models import ScriptedChatModel
from tests.server_events import parsed
from tests.waiting import until
from tests.web.chatting import MESSAGE, Chats, chats, reading, text_of


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Chats]:
    async with chats(tmp_path, ScriptedChatModel(["Backups run at two", " [1]", ".\n"])) as opened:
        await opened.engine.add("Backups run at two each night.", wait=True)
        yield opened


async def test_sources_come_first_and_the_end_last(site: Chats) -> None:
    events = await site.chat(min_similarity=None)
    assert [event.name for event in events] == [
        "sources", "message", "message", "message", "citations", "usage", "message",
    ]  # fmt: skip
    assert text_of(events) == "Backups run at two [1].\n"
    assert events[-1].data == "[DONE]"
    sources, cited, usage = (json.loads(events[position].data) for position in (0, 4, 5))
    assert (sources["outcome"], sources["question"]) == ("found", "When do backups run?")
    assert [source["snippet"] for source in sources["sources"]] == ["Backups run at two each night."]
    assert (cited["cited"], cited["unknown"]) == (sources["sources"], [])
    assert (usage["output"], usage["exact"]) == (3, True)
    assert "Backups run at two each night." in site.model.asked[0].messages[-1].content


async def test_as_one_object(site: Chats) -> None:
    events = await site.chat(min_similarity=None)
    async with site.client() as client:
        answer = await client.post("/chat", json={**MESSAGE, "min_similarity": None, "stream": False})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {
        "answer": "Backups run at two [1].\n",
        "sources": json.loads(events[0].data),
        "citations": json.loads(events[4].data),
        "usage": json.loads(events[5].data),
        "failure": None,
    }


async def test_all_that_can_be_asked_reaches_the_engine(site: Chats) -> None:
    await site.chat(
        history=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
        instructions="Be terse.",
        budget={"answer": 2},
        temperature=0.5,
        use_context=False,
        format="tasks",
        collection="*",
        filter={"field": "kind", "eq": "task"},
        query_context={"channel": "general"},
    )
    [request] = site.model.asked
    assert [(message.role, message.content) for message in request.messages] == [
        ("system", "Be terse."),
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("user", "When do backups run?"),
    ]
    assert (request.max_tokens, request.temperature) == (2, 0.5)


HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no", "content-encoding": None}


async def test_nothing_on_the_way_may_keep_or_hold_back_events(site: Chats) -> None:
    async with site.client() as client:
        answer = await client.post("/chat", json=MESSAGE, headers={"Accept-Encoding": "gzip"})
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert "content-length" not in answer.headers
    stream = answer.headers["x-chat-stream"]
    assert f"id: {stream}:0\n" in answer.text


WRONG: list[dict[str, Any]] = [
    {},
    {"message": ""},
    {"message": " \n"},
    {"message": None},
    {"message": "x" * 10_001},
    {"message": "a\ud800"},
    {**MESSAGE, "massage": "x"},
    {**MESSAGE, "history": [{"role": "system", "content": "x"}]},
    {**MESSAGE, "history": [{"role": "user"}]},
    {**MESSAGE, "history": [{"role": "user", "content": "x"}] * 201},
    {**MESSAGE, "budget": {"context": 100_001}},
    {**MESSAGE, "budget": {"answer": -1}},
    {**MESSAGE, "budget": {"other": 1}},
    {**MESSAGE, "format": "prose"},
    {**MESSAGE, "min_similarity": 2},
    {**MESSAGE, "temperature": 3},
    {**MESSAGE, "filter": {"field": "x"}},
    {**MESSAGE, "stream": "perhaps"},
]


@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_asked_wrongly_is_refused_before_an_event(site: Chats, stream: bool) -> None:
    json_headers = {"Content-Type": "application/json"}
    async with site.client() as client:
        for body in WRONG:
            content = json.dumps({"stream": stream, **body})
            answer = await client.post("/chat", content=content, headers=json_headers)
            too_long = "10001" in answer.text or "201" in answer.text
            assert answer.status_code == (413 if too_long else 422), content[:80]
            assert answer.headers["content-type"] == "application/problem+json"
    assert site.model.asked == []


async def test_a_message_of_the_greatest_length_is_answered(site: Chats) -> None:
    events = await site.chat(message="dull " * 2_000, budget={"answer": 9}, use_context=False)
    assert text_of(events) == "Backups run at two [1].\n"


async def test_a_collection_that_is_not_there(site: Chats) -> None:
    async with site.client() as client:
        answer = await client.post("/chat", json={**MESSAGE, "collection": "nowhere"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_without_a_model_it_says_so(tmp_path: Path) -> None:
    async with chats(tmp_path, None) as site, site.client() as client:
        *_, failure, end = await site.chat()
        assert (failure.name, end.data) == ("error", "[DONE]")
        fault = json.loads(failure.data)
        assert (fault["code"], "CONSPECTUS_CHAT_MODEL" in fault["message"]) == ("LLM_NOT_CONFIGURED", True)
        answer = await client.post("/chat", json={**MESSAGE, "stream": False})
        assert (answer.status_code, answer.json()["code"]) == (503, "LLM_NOT_CONFIGURED")


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (ChatAuthFailed("scripted", "hunter2"), 502),
        (ChatRateLimited("scripted", "hunter2", retry_after=1), 429),
        (ChatUnreachable("scripted", "hunter2"), 503),
    ],
)
async def test_what_a_model_fails_with(tmp_path: Path, fault: Any, status: int) -> None:
    model = ScriptedChatModel(["Hel", "lo"], fails=fault, after=1)
    async with chats(tmp_path, model) as site, site.client() as client:
        sources, piece, failure, end = await site.chat()
        assert (sources.name, piece.data, failure.name, end.data) == ("sources", "Hel", "error", "[DONE]")
        assert json.loads(failure.data) == {"code": fault.code, "message": fault.user_message}
        answer = await client.post("/chat", json={**MESSAGE, "stream": False})
        assert (answer.status_code, answer.json()["code"]) == (status, fault.code)
        assert "hunter2" not in answer.text


async def test_a_fault_of_our_own_is_told_without_its_reason(tmp_path: Path) -> None:
    def broken(_messages: object) -> list[str]:
        raise ValueError("hunter2")

    async with chats(tmp_path, ScriptedChatModel(broken)) as site:
        events = await site.chat()
    assert [event.name for event in events] == ["sources", "error", "message"]
    assert (json.loads(events[1].data)["code"], "hunter2" in events[1].data) == ("internal", False)
    assert '"error": "ValueError"' in site.log.getvalue()
    assert "hunter2" not in site.log.getvalue()


async def test_a_client_that_goes_away_ends_the_models_call(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(hangs=True, after=1)) as site, site.client() as client:
        async with reading(client) as events:
            assert (await anext(events)).name == "sources"
            assert (await anext(events)).data == "Hello"
            assert site.model.open == 1
        await until(lambda: site.model.open == 0)
        assert site.model.broken_off == 1
        await until(lambda: len(site.requests) == 1)
    assert (site.requests[0]["route"], site.requests[0]["status"]) == ("/api/v1/chat", 200)


async def test_a_client_that_waits_for_the_whole_and_goes_away(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(hangs=True, after=1)) as site:
        async with site.client() as client:
            asking = asyncio.create_task(client.post("/chat", json={**MESSAGE, "stream": False}))
            await until(site.model.hanging.is_set)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await until(lambda: site.model.open == 0)
    assert site.model.broken_off == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_could_not_be_kept_is_told_and_so_is_that(tmp_path: Path, stream: bool) -> None:
    model = ScriptedChatModel(["kept"], hangs=True)
    async with chats(tmp_path, model) as site:
        wiki = await site.engine.collections.get_or_create("wiki")
        await site.engine.people.create_user("ann")
        key = (await site.engine.keys.create("ann")).secret
        await site.engine.access.grant("wiki", Principal("user", "ann"), "editor")
        desk = await site.engine.collections.get_or_create_source("desk", collection="wiki", kind="channel")
        async with site.client(key) as client:
            body = {**MESSAGE, "collection": wiki.id, "store_in": desk.id, "stream": stream}
            asking = asyncio.create_task(client.post("/chat", json=body))
            await until(model.hanging.is_set)
            await site.engine.access.grant("wiki", Principal("user", "ann"), "viewer")
            model.released.set()
            answer = await asking
            assert answer.status_code == 200
        assert await site.engine.documents.count(collection="wiki") == 0
    if stream:
        *_, piece, _, _, failure, end = parsed(answer.content)
        assert (piece.data, failure.name, end.data) == ("kept", "error", "[DONE]")
    else:
        body_of_answer = answer.json()
        assert (body_of_answer["answer"], "not be stored" in body_of_answer["failure"]["message"]) == (
            "kept",
            True,
        )


async def test_who_is_shut_out_meanwhile_keeps_nothing_anywhere(tmp_path: Path) -> None:
    model = ScriptedChatModel(["kept"], hangs=True)
    async with chats(tmp_path, model) as site:
        await site.engine.collections.get_or_create("wiki")
        await site.engine.people.create_user("ann")
        key = (await site.engine.keys.create("ann")).secret
        await site.engine.access.grant("wiki", Principal("user", "ann"), "editor")
        await site.engine.collections.get_or_create_source("desk", collection="wiki", kind="channel")
        async with site.client(key) as client:
            body = {**MESSAGE, "collection": "wiki", "store_in": "desk", "stream": False}
            asking = asyncio.create_task(client.post("/chat", json=body))
            await until(model.hanging.is_set)
            await site.engine.access.revoke("wiki", Principal("user", "ann"))
            model.released.set()
            answer = (await asking).json()
        assert answer["failure"]["code"] == "not_found"
        assert await site.engine.documents.count(collection="wiki") == 0
        assert [collection.name for collection in await site.engine.collections.list()] == ["wiki"]


async def test_message_and_answer_are_kept_where_that_is_asked_for(site: Chats) -> None:
    await site.engine.collections.get_or_create_source("desk", kind="channel")
    await site.chat(store_in="desk", collection="default")
    page = await site.engine.documents.list(filter=Eq("kind", "message"))
    assert {document.role for document in page.documents} == {None, "assistant"}
