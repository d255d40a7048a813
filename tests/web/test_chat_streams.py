"""Answers that several read, leave and come back to: by events that come when a test says so."""

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from conspectus.errors import NotFound, Overloaded
from conspectus.model.access import Person
from conspectus.model.chat import ChatEvent, Delta, Failure, Sources
from conspectus.model.ids import UserId
from conspectus.settings import Settings
from conspectus.web.chat_handover import STOPPING, ChatStreams
from conspectus.web.chat_stream import LEFT, ChatStream
from conspectus.web.logs import logger
from conspectus.web.problem_details import Refused

ANN, BOB = UserId("ann"), UserId("bob")
SETTINGS = Settings(max_chat_streams=3, chat_disconnect_grace_seconds=0, chat_resume_seconds=60)


class Model:
    """Says what it is given, and remembers that it was stopped."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[ChatEvent | Exception | None] = asyncio.Queue()
        self.taken = 0
        self.stopped = False

    def say(self, *events: ChatEvent | Exception | None) -> None:
        for event in events:
            self.events.put_nowait(event)

    async def stream(self) -> AsyncGenerator[ChatEvent, None]:
        try:
            while (event := await self.events.get()) is not None:
                if isinstance(event, Exception):
                    raise event
                self.taken += 1
                yield event
        finally:
            self.stopped = True


class Streams(ChatStreams):
    """A registry that is closed at the end of a test, and what it logged."""

    def __init__(self, **settings: Any) -> None:
        self.log = io.StringIO()
        super().__init__(replace(SETTINGS, **settings), logger("info", self.log))

    async def start(self, model: Model, *, person: UserId = ANN, resumable: bool = True) -> ChatStream:
        asking = Person("someone", id=person)
        return await self.begin(model.stream(), person=asking, request_id="r", resumable=resumable)


@pytest.fixture
async def streams() -> AsyncIterator[Streams]:
    streams = Streams()
    yield streams
    await streams.close()


async def run_until_idle() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def deltas(*texts: str) -> list[ChatEvent]:
    return [Delta(text) for text in texts]


async def read_all(stream: ChatStream, first: int = 0) -> Sequence[ChatEvent]:
    with stream.open_reader(first) as reader:
        return await reader.read_rest()


async def test_all_readers_get_all_events(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    readers = [asyncio.create_task(read_all(stream, first)) for first in (0, 0, 2)]
    await run_until_idle()
    model.say(*deltas("a", "b", "c"), None)
    expected = [Sources("off"), *deltas("a", "b", "c")]
    assert await asyncio.gather(*readers) == [expected, expected, expected[2:]]
    assert await read_all(stream) == expected
    assert (stream.finished, model.stopped, len(streams)) == (True, True, 0)


async def test_what_is_raised_instead_of_an_answer_is_raised(streams: Streams) -> None:
    model = Model()
    model.say(NotFound("collection", "wiki"))
    with pytest.raises(NotFound, match="wiki"):
        await streams.start(model)
    assert model.stopped
    assert streams.log.getvalue() == ""
    for _ in range(5):
        model.say(NotFound("collection", "wiki"))
        with pytest.raises(NotFound):
            await streams.start(model)


async def test_a_fault_in_between_is_logged_and_told_without_its_reason(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"), Delta("a"), ValueError("hunter2"))
    stream = await streams.start(model)
    events = await read_all(stream)
    assert isinstance(events[-1], Failure)
    assert (events[-1].code, "hunter2" in repr(events)) == ("internal", False)
    [line] = map(json.loads, streams.log.getvalue().splitlines())
    assert (line["event"], line["error"], line["request_id"]) == ("request_failed", "ValueError", "r")
    assert "hunter2" not in streams.log.getvalue()


async def test_a_model_without_readers_is_stopped_at_once(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    with stream.open_reader() as one:
        with stream.open_reader():
            await one.more()
        await run_until_idle()
        assert not model.stopped
    await run_until_idle()
    assert model.stopped
    assert await read_all(stream, 1) == [LEFT]


async def test_a_reader_who_comes_back_in_time_keeps_it_going() -> None:
    streams, model = Streams(chat_disconnect_grace_seconds=60), Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    with stream.open_reader() as reader:
        await reader.more()
    await run_until_idle()
    assert not model.stopped
    with stream.open_reader(1) as reader:
        model.say(Delta("a"), None)
        assert await reader.read_rest() == deltas("a")
    await streams.close()


async def test_who_waits_no_longer_for_the_first_event_stops_it(streams: Streams) -> None:
    model = Model()
    starting = asyncio.create_task(streams.start(model))
    await run_until_idle()
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    await run_until_idle()
    assert (model.stopped, len(streams)) == (True, 0)


async def test_only_the_person_who_began_it_can_go_on(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"), Delta("a"), None)
    stream = await streams.start(model)
    await read_all(stream)
    assert streams.find(stream.id, 1, person=ANN) is stream
    assert streams.find(stream.id, 3, person=ANN) is stream
    for name, first, person in ((stream.id, 1, BOB), ("other", 1, ANN), (stream.id, 4, ANN)):
        with pytest.raises(NotFound) as caught:
            streams.find(name, first, person=person)
        assert str(caught.value) == f"no chat to go on with {name!r}"


async def test_only_so_many_read_one_answer(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    with ExitStack() as reading:
        for _ in range(10):
            reading.enter_context(streams.find(stream.id, 0, person=ANN).open_reader())
        with pytest.raises(Overloaded):
            streams.find(stream.id, 0, person=ANN)
        with pytest.raises(NotFound):
            streams.find(stream.id, 0, person=BOB)


async def test_an_answer_is_forgotten_after_a_while_or_when_others_need_the_room() -> None:
    streams = Streams(chat_resume_seconds=0)
    model = Model()
    model.say(Sources("off"), None)
    stream = await streams.start(model)
    await read_all(stream)
    await asyncio.sleep(0.01)
    with pytest.raises(NotFound):
        streams.find(stream.id, 0, person=ANN)
    await streams.close()


async def test_there_are_only_so_many(streams: Streams) -> None:
    models = [Model() for _ in range(4)]
    for model in models:
        model.say(Sources("off"))
    begun = [await streams.start(model) for model in models[:3]]
    with pytest.raises(Overloaded) as caught:
        await streams.start(models[3])
    assert caught.value.retry_after >= 1
    models[1].say(None)
    await read_all(begun[1])
    await streams.start(models[3])
    with pytest.raises(NotFound):
        streams.find(begun[1].id, 0, person=ANN)
    assert len(streams) == 3


async def test_an_answer_that_cannot_be_resumed_is_gone_when_it_is_over(streams: Streams) -> None:
    model = Model()
    model.say(Sources("off"), None)
    stream = await streams.start(model, resumable=False)
    await read_all(stream)
    await run_until_idle()
    with pytest.raises(NotFound):
        streams.find(stream.id, 0, person=ANN)


async def test_what_is_kept_is_bounded_and_the_model_waits_for_a_slow_reader() -> None:
    streams, model = Streams(chat_replay_bytes=2_000), Model()
    model.say(Sources("off"), *deltas(*"abcdefghij" * 10), None)
    stream = await streams.start(model)
    with stream.open_reader() as slow:
        await run_until_idle()
        assert (model.taken, stream.finished) == (20, False)
        read = [*await slow.more()]
        await run_until_idle()
        assert model.taken == 40
        read += await slow.read_rest()
    assert read == [Sources("off"), *deltas(*"abcdefghij" * 10)]
    assert len(stream.since(stream.count - 1)) == 1
    assert stream.has_buffered(stream.count - 10)
    assert not stream.has_buffered(stream.count - 30)
    with pytest.raises(NotFound):
        streams.find(stream.id, 1, person=ANN)
    await streams.close()


async def test_without_a_reader_the_newest_are_kept_and_the_model_goes_on() -> None:
    streams, model = Streams(chat_replay_bytes=2_000, chat_disconnect_grace_seconds=60), Model()
    model.say(Sources("off"), *deltas(*"a" * 500), None)
    stream = await streams.start(model)
    with stream.open_reader():
        pass
    await stream.wait_until_ended()
    assert (stream.finished, stream.count) == (True, 501)
    assert len(stream.since(485)) == 16
    await streams.close()


async def test_a_server_that_stops_begins_none_and_ends_all() -> None:
    streams, model = Streams(job_grace_seconds=0), Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    reading = asyncio.create_task(read_all(stream))
    await run_until_idle()
    streams.stop()
    assert await reading == [Sources("off"), STOPPING]
    assert model.stopped
    with pytest.raises(Refused) as caught:
        await streams.start(Model())
    assert caught.value.problem.status == 503
    await streams.close()


async def test_what_can_be_finished_is_finished_before_the_server_ends() -> None:
    streams, model = Streams(job_grace_seconds=60), Model()
    model.say(Sources("off"))
    stream = await streams.start(model)
    reading = asyncio.create_task(read_all(stream))
    streams.stop()
    await run_until_idle()
    model.say(Delta("a"), None)
    assert await reading == [Sources("off"), Delta("a")]
    await streams.close()
