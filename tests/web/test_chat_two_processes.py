"""Chats that go on at another process than the one that makes them: here, two that serve one store."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx

from conspectus.model.access import Principal
from conspectus.testing.chat_models import ScriptedChatModel
from tests.server_events import parsed
from tests.waiting import until
from tests.web.chatting import Chats, chats, reading

TWO = {"workers": 2, "chat_disconnect_grace_seconds": 4, "chat_resume_seconds": 60}
WORDS = ["one", "two\r", "three", "four"]


@asynccontextmanager
async def running_two_servers(
    folder: Path, model: ScriptedChatModel, **settings: object
) -> AsyncIterator[tuple[Chats, Chats]]:
    """The one that is asked first, and the other one, which has a model that is never asked."""
    async with (
        chats(folder, model, **{**TWO, **settings}) as here,
        chats(folder, ScriptedChatModel(["never"]), **{**TWO, **settings}) as there,
    ):
        yield here, there
        assert there.model.asked == []


async def test_what_came_after_the_last_event_is_told_elsewhere(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=2)
    async with (
        running_two_servers(tmp_path, model) as (here, there),
        here.client() as first,
        there.client() as second,
    ):
        async with reading(first) as events:
            read = [await anext(events) for _ in range(3)]
        stream = read[-1].id.rpartition(":")[0]
        last = {"Last-Event-ID": read[-1].id}
        async with reading(second, f"/chat/{stream}", headers=last) as events:
            await asyncio.sleep(TWO["chat_disconnect_grace_seconds"] + 1)
            assert (model.broken_off, len(here.app.state.streams)) == (0, 1)
            model.released.set()
            rest = [event async for event in events]
        assert [event.data for event in rest[:2]] == WORDS[2:]
        assert [event.name for event in rest] == ["message", "message", "citations", "usage", "message"]
        assert [event.id for event in rest] == [f"{stream}:{number}" for number in range(3, 8)]
        answer = await second.get(f"/chat/{stream}")
        assert json.loads(parsed(answer.content)[2].data) == {"text": WORDS[1]}
        over = await second.get(f"/chat/{stream}", headers={"Last-Event-ID": rest[-1].id})
        assert (over.status_code, over.content) == (204, b"")


async def test_when_nobody_reads_it_anywhere_the_model_is_stopped(tmp_path: Path) -> None:
    model = ScriptedChatModel(WORDS, hangs=True, after=2)
    async with (
        running_two_servers(tmp_path, model) as (here, there),
        here.client() as first,
        there.client() as second,
    ):
        async with reading(first) as events:
            read = [await anext(events) for _ in range(3)]
        stream = read[-1].id.rpartition(":")[0]
        async with reading(second, f"/chat/{stream}") as events:
            assert (await anext(events)).id == f"{stream}:0"
        await until(lambda: model.broken_off == 1)
        async with reading(second, f"/chat/{stream}") as events:
            rest = [event async for event in events]
    assert json.loads(rest[-2].data)["code"] == "left"


async def test_it_is_for_whoever_began_it_and_may_still_see_it(tmp_path: Path) -> None:
    async with running_two_servers(tmp_path, ScriptedChatModel(WORDS)) as (here, there):
        await here.engine.add("Backups run at two.", collection="wiki")
        for name in ("ann", "bob"):
            await here.engine.people.create_user(name)
            await here.engine.access.grant("wiki", Principal("user", name), "viewer")
        ann, bob = [(await here.engine.keys.create(name)).secret for name in ("ann", "bob")]
        stream = (await here.chat(key=ann, collection="wiki"))[-1].id.rpartition(":")[0]
        async with there.client(ann) as ann_client, there.client(bob) as other:
            assert (await ann_client.get(f"/chat/{stream}")).status_code == 200
            assert (await other.get(f"/chat/{stream}")).status_code == 404
            assert (await ann_client.get("/chat/unknown")).status_code == 404
            far = {"Last-Event-ID": f"{stream}:1{'0' * 20}"}
            assert (await ann_client.get(f"/chat/{stream}", headers=far)).status_code == 404
            await here.engine.access.revoke("wiki", Principal("user", "ann"))
            assert (await ann_client.get(f"/chat/{stream}")).status_code == 404


async def is_gone(client: httpx.AsyncClient, stream: str) -> bool:
    return (await client.get(f"/chat/{stream}")).status_code == 404


async def test_after_its_time_it_is_gone_everywhere(tmp_path: Path) -> None:
    async with running_two_servers(tmp_path, ScriptedChatModel(WORDS), chat_resume_seconds=0) as (
        here,
        there,
    ):
        stream = (await here.chat())[-1].id.rpartition(":")[0]
        async with there.client() as client, asyncio.timeout(60):
            await until(partial(is_gone, client, stream))
