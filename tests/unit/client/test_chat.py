"""The client's side of a chat: events however they are cut, lost connections, and servers that are none."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server_events import parsed
from tests.support.served import served
from tests.support.web_server import Answer, Request, ScriptedServer

import conspectus
from conspectus import Engine, RemoteEngine
from conspectus.client.chat import RemoteChat
from conspectus.client.event_stream import ServerEvent, events_in
from conspectus.engine.chat import ChatService
from conspectus.errors import InvalidInput, NotFound, ServerUnavailable, TooLarge
from conspectus.model.chat import Allocation, ChatEvent, ChatRequest, Delta, Sources, Usage
from conspectus.model.filter import Eq
from conspectus.model.query import QueryContext
from conspectus.model.results import Message
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application

SETTINGS = Settings(embedder="none", log_level="critical")
REQUEST = ChatRequest("When do backups run?")
SOURCES = b'id: s:0\nevent: sources\ndata: {"outcome": "off"}\n\n'
END = b"id: s:9\ndata: [DONE]\n\n"
FIELDS = st.sampled_from(
    ["data: a", "data:", "data:  b", "event: x", "id: 1", "id: \0", ": y", "retry: 1", "", "c", "é"]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


async def split_payload(payload: bytes, cuts: Sequence[int]) -> AsyncIterator[bytes]:
    borders = [0, *sorted(min(cut, len(payload)) for cut in cuts), len(payload)]
    for start, end in pairwise(borders):
        yield payload[start:end]


@given(st.lists(st.tuples(FIELDS, ENDS)), st.lists(st.integers(0, 60)), st.booleans())
def test_events_are_read_as_by_the_book_however_they_are_cut(
    lines: list[tuple[str, str]], cuts: list[int], mark: bool
) -> None:
    payload = ("\ufeff" * mark + "".join(line + end for line, end in lines) + "\n").encode()

    async def read() -> list[ServerEvent]:
        return [event async for event in events_in(split_payload(payload, cuts))]

    expected = [(event.name, event.data, event.id) for event in parsed(payload)]
    assert [(event.name, event.data, event.id) for event in asyncio.run(read())] == expected


def stream_answer(*frames: bytes) -> Answer:
    return Answer(b"".join(frames), type="text/event-stream")


async def chat_with(answers: dict[str, Answer | Sequence[Answer]]) -> tuple[list[ChatEvent], list[Request]]:
    """The events of a chat with a server of these answers, and what it was asked."""
    async with (
        ScriptedServer(answers) as server,
        conspectus.connect(server.base, settings=SETTINGS) as engine,
    ):
        events = [event async for event in engine.chat.stream(REQUEST)]
        return events, list(server.requests)


async def test_events_of_newer_servers_are_passed_over() -> None:
    frames = (SOURCES, b"event: mood\ndata: sunny\n\n", b'event: delta\ndata: {"text": "a\\r"}\n\n', END)
    events, _ = await chat_with({"/api/v1/chat": stream_answer(*frames)})
    assert events == [Sources("off"), Delta("a\r")]


async def test_an_answer_that_ends_in_between_is_gone_on_with() -> None:
    answers = {
        "/api/v1/chat": stream_answer(SOURCES, b"id: s:1\ndata: a\n\nid: s:2\ndata: lost"),
        "/api/v1/chat/s": [
            stream_answer(b"id: s:2\ndata: b\n\n"),
            stream_answer(b"id: s:3\ndata: c\n\n", END),
        ],
    }
    events, requests = await chat_with(answers)
    assert events == [Sources("off"), Delta("a"), Delta("b"), Delta("c")]
    assert [request.headers.get("last-event-id") for request in requests] == [None, "s:1", "s:2"]


GONE = Answer(
    b'{"code": "not_found", "detail": "no chat", "kind": "chat", "name": "s"}',
    404,
    "application/problem+json",
)


@pytest.mark.parametrize(
    "answers",
    [
        {"/api/v1/chat": stream_answer(b"")},
        {"/api/v1/chat": stream_answer(SOURCES), "/api/v1/chat/s": GONE},
        {"/api/v1/chat": stream_answer(SOURCES), "/api/v1/chat/s": stream_answer(b"")},
        {"/api/v1/chat": stream_answer(b"id: s:0\nevent: sources\ndata: {}\n\n", END)},
        {"/api/v1/chat": stream_answer(b"id: s:0\nevent: usage\ndata: [1\n\n", END)},
        {"/api/v1/chat": Answer(b"<html>", 502, "text/html")},
    ],
    ids=["nothing", "forgotten", "never ends", "no sources", "no json", "no server"],
)
async def test_what_cannot_be_gone_on_with_or_understood(
    answers: dict[str, Answer | Sequence[Answer]],
) -> None:
    with pytest.raises(ServerUnavailable):
        await chat_with(answers)


async def test_an_answer_without_an_end_is_given_up() -> None:
    settings = Settings(max_response_bytes=10_000)
    answers = {"/api/v1/chat": Answer(SOURCES, type="text/event-stream", endless=True)}
    async with (
        ScriptedServer(answers) as server,
        conspectus.connect(server.base, settings=settings) as engine,
    ):
        with pytest.raises(TooLarge):
            async for _ in engine.chat.stream(REQUEST):
                pass


FULL = ChatRequest(
    "backups", history=(Message("user", "a\r\n"), Message("assistant", "é")), collection="wiki",
    filter=Eq("kind", "page"), use_context=True, instructions="Be terse.", allocation=Allocation(answer=5),
    min_similarity=None, query_context=QueryContext(at=datetime(2026, 1, 1, tzinfo=UTC)), format="tasks",
    temperature=0.5,
)  # fmt: skip


@asynccontextmanager
async def open_both(
    folder: Path, model: ScriptedChatModel, settings: Settings = SETTINGS
) -> AsyncIterator[tuple[Engine, RemoteEngine]]:
    """An engine, and the same one over a server."""
    opened = conspectus.open(folder, settings=settings, embedder=HashedEmbedder(), chat_model=model)
    async with (
        opened as local,
        served(application(local, settings)) as url,
        conspectus.connect(url, settings=settings) as remote,
    ):
        yield local, remote


def test_it_is_asked_for_in_the_same_way() -> None:
    assert inspect.signature(RemoteChat.stream) == inspect.signature(ChatService.stream)


async def test_it_is_the_same_as_where_the_store_is(tmp_path: Path) -> None:
    model = ScriptedChatModel(["a [1]", "\r\n", " [DONE]", "[DONE]", "\U0001f600 [4]"])
    async with open_both(tmp_path, model) as (local, remote):
        await local.add("Backups run at two.", collection="wiki", wait=True)
        for request in (REQUEST, FULL, ChatRequest("backups", min_similarity=None)):
            here = [event async for event in local.chat.stream(request)]
            there = [event async for event in remote.chat.stream(request)]
            assert here == there
            assert isinstance(here[-1], Usage)
    first, second = model.asked[2:4]
    assert first == second
    assert (first.max_tokens, first.temperature) == (5, 0.5)


WRONG = [
    (ChatRequest(" "), InvalidInput),
    (ChatRequest("x" * 10_001), TooLarge),
    (ChatRequest("x", collection="nowhere"), NotFound),
]


@pytest.mark.parametrize(("request_", "kind"), WRONG)
async def test_what_is_asked_wrongly_is_refused_alike(
    tmp_path: Path, request_: ChatRequest, kind: type[Exception]
) -> None:
    model = ScriptedChatModel()
    async with open_both(tmp_path, model) as engines:
        for engine in engines:
            with pytest.raises(kind):
                await anext(engine.chat.stream(request_))
    assert model.asked == []


async def test_who_stops_listening_ends_the_models_call(tmp_path: Path) -> None:
    model = ScriptedChatModel(hangs=True, after=1)
    settings = Settings(embedder="none", log_level="critical", chat_disconnect_grace_seconds=0)
    async with open_both(tmp_path, model, settings) as (_, remote):
        events = remote.chat.stream(REQUEST)
        assert [type(await anext(events)) for _ in range(2)] == [Sources, Delta]
        await events.aclose()
        for _ in range(1_000):
            if model.open == 0:
                break
            await asyncio.sleep(0.01)
    assert (model.open, model.broken_off) == (0, 1)


def test_without_an_event_loop_it_is_the_same(tmp_path: Path) -> None:
    model = ScriptedChatModel(["a", "b"])
    opened = conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder(), chat_model=model)
    with opened as engine:
        texts = [event.text for event in engine.chat.stream(REQUEST) if isinstance(event, Delta)]
        assert texts == ["a", "b"]
        with pytest.raises(InvalidInput):
            next(engine.chat.stream(ChatRequest(" ")))
        model.hangs, model.after = True, 1
        events = engine.chat.stream(REQUEST)
        assert [type(next(events)) for _ in range(2)] == [Sources, Delta]
        events.close()
    assert (model.open, model.broken_off) == (0, 1)
