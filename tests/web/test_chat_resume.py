"""Chats that go on after a connection was lost, for whoever began them and as long as they are kept."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from conspectus.model.access import Principal
from conspectus.testing.chat_models import ScriptedChatModel
from tests.server_events import parsed
from tests.waiting import until
from tests.web.chatting import MESSAGE, Chats, chats, reading

KEPT = {"chat_disconnect_grace_seconds": 60, "chat_resume_seconds": 60}
WORDS = ["one", "two", "three", "four"]


async def test_what_came_after_the_last_event_is_told(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=2)
    async with chats(tmp_path, model, **KEPT) as site, site.client() as client:
        async with reading(client) as events:
            read = [await anext(events) for _ in range(3)]
        assert [event.data for event in read[1:]] == WORDS[:2]
        stream = read[-1].id.rpartition(":")[0]
        model.released.set()
        async with reading(client, f"/chat/{stream}", headers={"Last-Event-ID": read[-1].id}) as events:
            rest = [event async for event in events]
    assert [event.data for event in rest[:2]] == WORDS[2:]
    assert [event.name for event in rest] == ["message", "message", "citations", "usage", "message"]
    assert [event.id for event in rest] == [f"{stream}:{number}" for number in range(3, 8)]
    assert (len(model.asked), model.broken_off) == (1, 0)


async def finish_chat(site: Chats, key: str | None = None) -> str:
    """The name of a chat that is over."""
    events = await site.chat(key=key)
    assert events[-1].data == "[DONE]"
    return events[-1].id.rpartition(":")[0]


async def test_a_whole_chat_can_be_read_again(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS), **KEPT) as site, site.client() as client:
        stream = await finish_chat(site)
        answer = await client.get(f"/chat/{stream}")
        assert [event.data for event in parsed(answer.content)[1:5]] == WORDS
        assert answer.headers["x-chat-stream"] == stream
        last = parsed(answer.content)[-1].id
        over = await client.get(f"/chat/{stream}", headers={"Last-Event-ID": last})
        assert (over.status_code, over.content) == (204, b"")


@pytest.mark.parametrize("last", ["x", "other:1", "{}:x", "{}:-1", "{}:", "{}:\u0661", "{}:1" + "0" * 20])
async def test_an_id_that_is_none(tmp_path: Path, last: str) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS), **KEPT) as site, site.client() as client:
        stream = await finish_chat(site)
        event_id = last.replace("{}", stream).encode()
        answer = await client.get(f"/chat/{stream}", headers={b"Last-Event-ID": event_id})
        assert answer.status_code == (404 if last.endswith("0") else 422)
        assert answer.headers["content-type"] == "application/problem+json"


async def test_after_its_time_it_is_gone(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS), chat_resume_seconds=0) as site:
        stream = await finish_chat(site)
        async with site.client() as client:
            answer = await client.get(f"/chat/{stream}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        assert answer.json()["detail"] == f"no chat to go on with '{stream}'"


async def test_it_is_the_same_for_others_as_if_there_were_none(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS), **KEPT) as site:
        await site.engine.people.create_user("ann")
        await site.engine.people.create_user("bob")
        ann, again, bob = [(await site.engine.keys.create(name)).secret for name in ("ann", "ann", "bob")]
        writing = (await site.engine.keys.create("ann", scopes=("write",))).secret
        stream = await finish_chat(site, ann)
        statuses = []
        for key in (again, writing, bob):
            async with site.client(key) as client:
                answer = await client.get(f"/chat/{stream}")
                nothing = await client.get(f"/chat/{'0' * 32}")
            statuses.append(answer.status_code)
        assert statuses == [200, 403, 404]
        assert answer.text.replace(stream, "") == nothing.text.replace("0" * 32, "")
        async with site.client() as nobody:
            assert (await nobody.get(f"/chat/{stream}")).status_code == 401


async def test_what_may_no_longer_be_seen_is_not_told_again(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(["quinces [1]"]), **KEPT) as site:
        await site.engine.add("Quinces are ripe.", collection="wiki", wait=True)
        await site.engine.people.create_user("ann")
        ann = (await site.engine.keys.create("ann")).secret
        user = Principal("user", "ann")
        await site.engine.access.grant("wiki", user, "viewer")
        events = await site.chat(key=ann, message="quinces", min_similarity=None)
        assert len(json.loads(events[0].data)["sources"]) == 1
        path = f"/chat/{events[0].id.rpartition(':')[0]}"
        async with site.client(ann) as client:
            assert (await client.get(path)).status_code == 200
            await site.engine.access.revoke("wiki", user)
            answer = await client.get(path)
            assert (answer.status_code, "ripe" in answer.text) == (404, False)


async def test_two_may_read_one_chat_at_once(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=2)
    async with chats(tmp_path, model) as site, site.client() as one, site.client() as other:
        leaving = AsyncExitStack()
        first = await leaving.enter_async_context(reading(one))
        stream = (await anext(first)).id.rpartition(":")[0]
        async with reading(other, f"/chat/{stream}") as second:
            assert (await anext(second)).name == "sources"
            await leaving.aclose()
            await asyncio.sleep(0.1)
            model.released.set()
            rest = [event.data async for event in second]
    assert rest[:4] == WORDS
    assert model.broken_off == 0


async def test_a_model_that_nobody_reads_is_stopped_in_time(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=2)
    async with chats(tmp_path, model, chat_disconnect_grace_seconds=1, chat_resume_seconds=60) as site:
        async with site.client() as client, reading(client) as events:
            stream = (await anext(events)).id.rpartition(":")[0]
        await asyncio.sleep(0.2)
        assert model.open == 1
        await until(lambda: model.open == 0)
        async with site.client() as client:
            stored = parsed((await client.get(f"/chat/{stream}")).content)
    assert [event.data for event in stored[1:3]] == WORDS[:2]
    assert (stored[3].name, json.loads(stored[3].data)["code"], stored[4].data) == ("error", "left", "[DONE]")


async def test_a_chat_that_is_read_as_one_object_leaves_nothing(tmp_path: Path) -> None:
    async with chats(tmp_path, ScriptedChatModel(WORDS), **KEPT) as site, site.client() as client:
        answer = await client.post("/chat", json={**MESSAGE, "stream": False})
        assert (answer.json()["answer"], len(site.app.state.streams)) == ("".join(WORDS), 0)
        assert "x-chat-stream" not in answer.headers
