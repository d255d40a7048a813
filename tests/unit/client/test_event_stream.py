"""The client's side of live events: lost connections, and servers that are none."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import httpx
import pytest
from tests.support.web_server import Answer, Request, ScriptedServer
from tests.unit.streams.test_caption_format import make_caption

from conspectus.bootstrap import local_archives, local_files
from conspectus.client.engine import RemoteEngine
from conspectus.client.transport import RETRY_POLICY, Transport, TransportLimits
from conspectus.errors import NotFound, ServerUnavailable
from conspectus.model.captions import LiveCaption
from conspectus.settings import Settings
from conspectus.text.stream_clocks import StreamClock
from conspectus.web.operation_schemas import response_model

SETTINGS = Settings(embedder="none", log_level="critical")
PATH = "/api/v1/streams/gate/stream"
READY = b"id: 7\nevent: ready\ndata: {}\n\n"
GONE = b'{"code": "not_found", "detail": "no stream", "kind": "stream", "name": "gate"}'
Answers = Answer | Sequence[Answer]


def encode_event(number: int) -> bytes:
    live = LiveCaption(number, make_caption(f"scene {number}", 0.0, 1.0, StreamClock()))
    expected = response_model(LiveCaption).model_validate(live).model_dump_json()
    return f"id: {number}\nevent: caption\ndata: {expected}\n\n".encode()


def stream_answer(*frames: bytes) -> Answer:
    return Answer(b"".join(frames), type="text/event-stream")


async def skip_waiting(_seconds: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[RemoteEngine]:
    """A client that asks again without waiting."""
    retry_policy = replace(RETRY_POLICY, sleep=skip_waiting)
    limits = TransportLimits(SETTINGS.client_timeout_seconds, SETTINGS.max_response_bytes, retry_policy)
    async with httpx.AsyncClient() as http:
        channel = Transport(http, url, limits)
        yield RemoteEngine(channel, local_files(SETTINGS), local_archives(SETTINGS))


async def follow(
    answers: Answers, count: int, after: int | None = None
) -> tuple[list[LiveCaption], list[Request]]:
    """So many captions from a server of these answers, and what it was asked."""
    received: list[LiveCaption] = []
    async with (
        ScriptedServer({PATH: answers}) as server,
        connect(server.base) as engine,
        aclosing(engine.streams.subscribe(stream="gate", after=after)) as captions,
    ):
        async for caption in captions:
            received.append(caption)
            if len(received) == count:
                break
        return received, list(server.requests)


async def test_what_ends_is_gone_on_with() -> None:
    answers = [
        stream_answer(READY, encode_event(8)),
        stream_answer(READY),
        stream_answer(encode_event(9), b"id: 10\nda"),
        stream_answer(encode_event(10)),
    ]
    captions, requests = await follow(answers, 3)
    assert [caption.sequence for caption in captions] == [8, 9, 10]
    assert [request.headers.get("last-event-id") for request in requests] == [None, "8", "7", "9"]


async def test_events_of_newer_servers_are_passed_over() -> None:
    captions, requests = await follow(
        stream_answer(READY, b"event: mood\ndata: sunny\n\n", encode_event(8)), 1, after=3
    )
    assert [caption.caption.text for caption in captions] == ["scene 8"]
    assert requests[0].headers["last-event-id"] == "3"


async def test_the_errors_of_a_server_are_raised() -> None:
    failed = stream_answer(READY, encode_event(8), b"event: error\ndata: " + GONE + b"\n\n")
    gone = Answer(GONE, 404, "application/problem+json")
    for answers in (failed, gone, [stream_answer(READY, encode_event(8)), gone]):
        with pytest.raises(NotFound):
            await follow(answers, 2)
    internal = stream_answer(READY, b'event: error\ndata: {"code": "internal", "detail": "wrong"}\n\n')
    with pytest.raises(ServerUnavailable):
        await follow(internal, 1)


@pytest.mark.parametrize(
    "answer",
    [
        stream_answer(b""),
        stream_answer(READY, b"id: 8\nevent: caption\ndata: {}\n\n"),
        stream_answer(READY, b"id: 8\nevent: caption\ndata: [1\n\n"),
        stream_answer(READY, b"id: 8\nevent: error\ndata: 5\n\n"),
        Answer(b"<html>", type="text/html"),
        Answer(b"<html>", 502, "text/html"),
    ],
    ids=["nothing", "no caption", "no JSON", "no problem", "a page", "no server"],
)
async def test_what_is_no_server(answer: Answer) -> None:
    for after in (None, 3):
        with pytest.raises(ServerUnavailable):
            await follow(answer, 1, after=after)
