"""Two servers of one database: who listens at one of them hears what was written, and told, at the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus.client import RemoteEngine
from conspectus.model.streams import NewAlert, NewCaption
from conspectus.settings import Settings
from conspectus.web.app import application
from tests.support.served import served

SETTINGS = replace(Settings(), embedder="none")
LONG = 60.0


@asynccontextmanager
async def two(url: str, folder: Path) -> AsyncIterator[tuple[RemoteEngine, RemoteEngine]]:
    """Clients of both; the first server checks alerts, the second does nothing but answer."""
    async with AsyncExitStack() as opened:
        remotes = []
        for name in ("first", "second"):
            settings = replace(
                SETTINGS, cache=str(folder / name), run_background_jobs="on" if name == "first" else "off"
            )
            engine = await opened.enter_async_context(conspectus.open(url, settings=settings))
            if name == "first":
                await engine.alerts.start()
            place = await opened.enter_async_context(served(application(engine, settings)))
            remotes.append(await opened.enter_async_context(conspectus.connect(place)))
        yield remotes[0], remotes[1]


async def test_captions_and_alerts_are_heard_at_another_server(postgres_url: str, tmp_path: Path) -> None:
    async with two(postgres_url, tmp_path) as (first, second):
        await first.streams.add_captions([NewCaption("nothing", 0.0, 1.0)], stream="gate")
        await second.alerts.put(NewAlert(name="fire", query="fire"))
        heard = asyncio.create_task(four(second))
        events = asyncio.create_task(told(second))
        await asyncio.sleep(0.5)
        for number in range(3):
            writer = (first, second)[number % 2]
            await writer.streams.add_captions(
                [NewCaption(f"fire {number}", 600.0 * number, 600.0 * number + 1)], stream="gate"
            )
        async with asyncio.timeout(LONG):
            assert await heard == ["nothing", "fire 0", "fire 1", "fire 2"]
            assert await events == ["fire 0", "fire 1", "fire 2"]


async def four(remote: RemoteEngine) -> list[str]:
    """The texts of the first captions, as they come."""
    found = []
    async with aclosing(remote.streams.subscribe(stream="gate", after=0)) as captions:
        async for each in captions:
            found.append(each.caption.text)
            if len(found) == 4:
                break
    return found


async def told(remote: RemoteEngine) -> list[str]:
    """What alerts tell, when there is so much of it."""
    while True:
        found = await remote.alerts.list_matches()
        if len(found) == 3:
            return [each.text for each in found]
        await asyncio.sleep(0.1)
