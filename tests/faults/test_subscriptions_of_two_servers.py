"""Two servers of one database: who listens at one of them hears what was written, and told, at the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus.client import RemoteEngine
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import NewCaption
from conspectus.settings import Settings
from conspectus.web.app import application
from tests.support.served import served

SETTINGS = replace(Settings(), embedder="none")
LONG = 60.0


@asynccontextmanager
async def open_two_servers(url: str, folder: Path) -> AsyncIterator[tuple[RemoteEngine, RemoteEngine]]:
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
            url_of_server = await opened.enter_async_context(served(application(engine, settings)))
            remotes.append(await opened.enter_async_context(conspectus.connect(url_of_server)))
        yield remotes[0], remotes[1]


async def test_captions_and_alerts_are_heard_at_another_server(postgres_url: str, tmp_path: Path) -> None:
    async with open_two_servers(postgres_url, tmp_path) as (first, second):
        await first.streams.add_captions([NewCaption("nothing", 0.0, 1.0)], stream="gate")
        await second.alerts.put(NewAlert(name="fire", query="fire"))
        heard = asyncio.create_task(hear_captions(second))
        events = asyncio.create_task(wait_for_matches(second))
        await asyncio.sleep(0.5)
        for number in range(3):
            writer = (first, second)[number % 2]
            await writer.streams.add_captions(
                [NewCaption(f"fire {number}", 600.0 * number, 600.0 * number + 1)], stream="gate"
            )
        async with asyncio.timeout(LONG):
            assert await heard == ["nothing", "fire 0", "fire 1", "fire 2"]
            assert await events == ["fire 0", "fire 1", "fire 2"]


async def hear_captions(remote: RemoteEngine) -> list[str]:
    """The texts of the first captions, as they come."""
    texts = []
    async with aclosing(remote.streams.subscribe(stream="gate", after=0)) as captions:
        async for change in captions:
            texts.append(change.caption.text)
            if len(texts) == 4:
                break
    return texts


async def wait_for_matches(remote: RemoteEngine) -> list[str]:
    """What alerts tell, when there is so much of it."""
    while True:
        matches = await remote.alerts.list_matches()
        if len(matches) == 3:
            return [match.text for match in matches]
        await asyncio.sleep(0.1)
