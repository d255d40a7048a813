"""A live stream whose server is killed again and again: in the end it is as if nothing had happened."""

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, RemoteEngine
from conspectus.errors import ServerUnavailable
from conspectus.model.captions import NewCaption
from conspectus.streams.caption_format import line_of
from tests.faults.job_taker import SETTINGS
from tests.faults.test_server_killed import create_store_with_key, running_server

STREAM = "live"


def build_captions(number: int) -> list[NewCaption]:
    """Captions with and without an index, some of equal times."""
    return [
        NewCaption(f"word{n} is said", n // 2, n // 2 + 3, index=n if n % 3 else None, speaker="Ann")
        for n in range(number)
    ]


def shuffle_arrivals(captions: list[NewCaption], chance: random.Random) -> list[NewCaption]:
    """In an order that is a little wrong, every tenth of them twice."""
    late = [(time + chance.uniform(0, 30), caption) for time, caption in enumerate(captions)]
    again = [(at + chance.uniform(0, 30), caption) for at, caption in late if chance.random() < 0.1]
    return [caption for _, caption in sorted([*late, *again], key=lambda pair: pair[0])]


async def export_captions(engine: Engine | RemoteEngine) -> list[str]:
    lines: list[str] = []
    after = None
    while True:
        page = await engine.streams.list_captions(stream=STREAM, after=after, limit=200)
        lines += map(line_of, page.captions)
        after = page.next
        if after is None:
            return lines


async def send_captions(remote: RemoteEngine, waiting: list[NewCaption], chance: random.Random) -> None:
    """What is acknowledged waits no longer; what is not is sent again, by the next one who sends."""
    while waiting:
        batch = waiting[: chance.randint(1, 9)]
        await remote.streams.add_captions(batch, stream=STREAM)
        del waiting[: len(batch)]


async def listen_for_captions(remote: RemoteEngine, heard: dict[str, int]) -> None:
    after = max(heard.values(), default=0)
    async for event in remote.streams.subscribe(stream=STREAM, after=after):
        heard[event.caption.document.key] = event.sequence


async def run_one_server(
    path: Path, key: str, waiting: list[NewCaption], heard: dict[str, int], chance: random.Random
) -> None:
    """A server that is killed in the middle of what it is sent, and while somebody listens."""
    async with AsyncExitStack() as alive:
        address = await alive.enter_async_context(running_server(path))
        async with conspectus.connect(address.removesuffix("/api/v1"), api_key=key) as remote:
            sending = asyncio.create_task(send_captions(remote, waiting, chance))
            listening = asyncio.create_task(listen_for_captions(remote, heard))
            await asyncio.wait([sending], timeout=chance.uniform(0.3, 1.5))
            await alive.aclose()
            sending.cancel()
            listening.cancel()
            for ended in await asyncio.gather(sending, listening, return_exceptions=True):
                assert ended is None or isinstance(ended, ServerUnavailable | asyncio.CancelledError), ended


async def kill_repeatedly(path: Path, times: int, number: int) -> None:
    chance = random.Random(7)
    captions = build_captions(number)
    waiting, heard = shuffle_arrivals(captions, chance), dict[str, int]()
    key = await create_store_with_key(path / "live")
    async with conspectus.open(path / "live", settings=SETTINGS) as engine:
        await engine.streams.put(STREAM)
    for _ in range(times):
        await run_one_server(path / "live", key, waiting, heard, chance)
    async with conspectus.open(path / "live", settings=SETTINGS) as engine:
        await engine.streams.add_captions(waiting, stream=STREAM)
        events = engine.streams.subscribe(stream=STREAM, after=max(heard.values(), default=0))
        while len(heard) < number:
            event = await asyncio.wait_for(anext(events), timeout=20)
            heard[event.caption.document.key] = event.sequence
        await events.aclose()
        stored_captions = await export_captions(engine)
        report = await engine.maintenance.check()
        assert (report.records, set(report.index.values())) == ((), {()})
    async with conspectus.open(path / "clean", settings=SETTINGS) as engine:
        await engine.streams.add_captions(captions, stream=STREAM)
        assert await export_captions(engine) == stored_captions
    assert len(stored_captions) == number


@pytest.mark.slow
async def test_a_live_stream_survives_two_deaths(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path, 2, 400)


@pytest.mark.slow
async def test_a_live_stream_survives_twenty_deaths(tmp_path: Path) -> None:
    await kill_repeatedly(tmp_path, 20, 6_000)
