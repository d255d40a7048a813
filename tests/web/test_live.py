"""Live events over a real connection: none is lost, and all who listen are let go."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from conspectus.errors import InvalidInput, NotFound, Overloaded, Unauthenticated
from conspectus.model.access import LOCAL_OWNER, Person
from conspectus.model.ids import KeyId, UserId
from conspectus.settings import Settings
from conspectus.web.logs import logger
from conspectus.web.sse import frame
from conspectus.web.subscriptions import Listeners, LiveEvents, parse_resume_point
from tests.server_events import Event, parsed
from tests.support.served import served
from tests.web.conftest import OpenSite

ANN, BOB = (Person(name, id=UserId(name), key=KeyId(name)) for name in ("ann", "bob"))
SETTINGS = Settings(max_subscribers=2, chat_heartbeat_seconds=0)


class Source:
    """Says what a test says, and knows whether anybody still hears it."""

    def __init__(self, **settings: Any) -> None:
        self.log = io.StringIO()
        self.listeners = Listeners(replace(SETTINGS, **settings), logger("info", self.log))
        self.said: asyncio.Queue[int | Exception | None] = asyncio.Queue()
        self.left = asyncio.Event()
        self.revoked = False

    async def still_good(self) -> None:
        if self.revoked:
            raise Unauthenticated

    def say(self, *what: int | Exception | None) -> None:
        for number in what:
            self.said.put_nowait(number)

    async def events(self) -> AsyncGenerator[int, None]:
        try:
            while (event := await self.said.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.left.set()

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[tuple[httpx.Response, AsyncIterator[str]]]:
        app = FastAPI()

        @app.get("/live")
        async def live(request: Request) -> Response:
            request.state.person = LOCAL_OWNER
            return LiveEvents(
                self.events(),
                lambda n: frame(str(n), name="n", id=str(n)),
                self.listeners,
                after=7,
                still_good=self.still_good,
            )

        async with (
            served(app) as url,
            httpx.AsyncClient(timeout=30) as http,
            http.stream("GET", f"{url}/live") as response,
        ):
            yield response, response.aiter_text()


async def read_to_end(pieces: AsyncIterator[str]) -> list[Event]:
    return parsed("".join([piece async for piece in pieces]).encode())


async def test_the_first_event_says_where_to_go_on() -> None:
    source = Source()
    source.say(8, 9, None)
    async with source.heard() as (response, pieces):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert await read_to_end(pieces) == [
            Event("ready", "{}", "7"),
            Event("n", "8", "8"),
            Event("n", "9", "9"),
        ]


async def test_what_goes_wrong_is_the_last_event() -> None:
    source = Source()
    source.say(8, NotFound("source", "cam"))
    async with source.heard() as (_, pieces):
        last = (await read_to_end(pieces))[-1]
    assert (last.name, last.id, json.loads(last.data)["code"]) == ("error", "8", "not_found")


async def test_a_fault_of_the_server_says_nothing_of_itself() -> None:
    source = Source()
    source.say(8, TypeError("secret"))
    async with source.heard() as (_, pieces):
        last = (await read_to_end(pieces))[-1]
    assert (last.name, json.loads(last.data)["code"], "secret" in last.data) == ("error", "internal", False)
    assert '"TypeError"' in source.log.getvalue()


async def test_what_comes_after_a_key_was_revoked_is_not_sent() -> None:
    source = Source(alert_poll_interval_ms=0)
    async with source.heard() as (_, pieces):
        await anext(pieces)
        source.say(8)
        await anext(pieces)
        source.revoked = True
        source.say(9)
        assert [event.name for event in await read_to_end(pieces)] == ["error"]
    await source.left.wait()


@pytest.mark.parametrize("path", ["streams/gate/stream", "alerts/stream"])
async def test_a_key_that_was_revoked_is_known_to_be_while_nothing_comes(
    open_site: OpenSite, path: str
) -> None:
    async with (
        open_site(chat_heartbeat_seconds=1, subscription_seconds=20) as site,
        served(site.app) as url,
        httpx.AsyncClient(timeout=30) as http,
    ):
        await site.engine.streams.put("gate")
        key = await site.engine.keys.create_first()
        headers = {"Authorization": f"Bearer {key.secret}"}
        async with http.stream("GET", f"{url}/api/v1/{path}", headers=headers) as response:
            pieces = response.aiter_text()
            await anext(pieces)
            await site.engine.keys.revoke(key.key.id)
            (last,) = await read_to_end(pieces)
    assert (last.name, json.loads(last.data)["code"]) == ("error", "unauthenticated")


async def test_who_leaves_is_let_go() -> None:
    source = Source()
    async with source.heard() as (_, pieces):
        await anext(pieces)
        assert len(source.listeners) == 1
    await source.left.wait()
    assert len(source.listeners) == 0


async def test_all_are_let_go_when_the_server_stops() -> None:
    source = Source()
    async with source.heard() as (_, pieces):
        await anext(pieces)
        source.listeners.stop()
        assert await read_to_end(pieces) == []
    await source.left.wait()


async def test_who_comes_while_the_server_stops_is_sent_on_at_once() -> None:
    source = Source()
    source.listeners.stop()
    source.listeners.require_room(LOCAL_OWNER)
    async with source.heard() as (_, pieces):
        assert [event.name for event in await read_to_end(pieces)] == ["ready"]


async def test_a_stream_ends_after_its_time() -> None:
    source = Source(subscription_seconds=1)
    async with source.heard() as (_, pieces):
        assert [event.name for event in await read_to_end(pieces)] == ["ready"]


async def test_silence_is_filled() -> None:
    source = Source(chat_heartbeat_seconds=1)
    async with source.heard() as (_, pieces):
        await anext(pieces)
        assert (await anext(pieces)).startswith(":")


async def test_there_is_room_for_so_many() -> None:
    source = Source()
    waiting = asyncio.Event()

    async def receive() -> Any:
        await waiting.wait()

    async with source.listeners.watch_end(ANN, receive), source.listeners.watch_end(ANN, receive):
        with pytest.raises(Overloaded):
            source.listeners.require_room(LOCAL_OWNER)
    source.listeners.require_room(LOCAL_OWNER)


async def test_one_user_cannot_take_all_the_room() -> None:
    source = Source(max_user_subscribers=1)
    waiting = asyncio.Event()

    async def receive() -> Any:
        await waiting.wait()

    async with source.listeners.watch_end(ANN, receive):
        with pytest.raises(Overloaded):
            source.listeners.require_room(replace(ANN, key=KeyId("another")))
        source.listeners.require_room(BOB)
    source.listeners.require_room(ANN)


@pytest.mark.parametrize("text", ["x", "-1", "1.0", "٣", "9" * 40, " 1"])
def test_what_is_no_number_of_an_event(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_resume_point(text, 7)
    assert (parse_resume_point(None, 7), parse_resume_point("", 7), parse_resume_point("12", 7)) == (7, 7, 12)
