"""Followers start and stop watchers as connections come and go, and try failed ones again."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.waiting import until

from conspectus.errors import FetchFailed
from conspectus.ingest.connection_followers import Followers


class Targets:
    """Things to follow, by name, and which of them are being followed."""

    def __init__(self) -> None:
        self.by_name: dict[str, Callable[[], Awaitable[None]]] = {}
        self.running: list[str] = []
        self.tries = 0

    async def now(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return dict(self.by_name)

    def add(self, name: str) -> None:
        async def go_on() -> None:
            self.running.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.running.remove(name)

        self.by_name[name] = go_on

    async def fail(self) -> None:
        self.tries += 1
        raise FetchFailed("there", "is gone")


async def test_followers_start_what_is_new_and_stop_what_is_gone() -> None:
    targets = Targets()

    async def are_running(*names: str) -> bool:
        return sorted(targets.running) == list(names)

    followers = Followers(targets.now, look=0.01)
    followers.start()
    targets.add("a")
    targets.add("b")
    await until(lambda: are_running("a", "b"))
    del targets.by_name["a"]
    await until(lambda: are_running("b"))
    await followers.close()
    assert targets.running == []


async def test_what_cannot_be_followed_is_tried_again_and_stops_nothing_else() -> None:
    targets = Targets()
    targets.by_name["broken"] = targets.fail
    targets.add("fine")
    followers = Followers(targets.now, look=0.01)
    followers.start()

    async def tried_again() -> bool:
        return targets.tries > 1 and targets.running == ["fine"]

    await until(tried_again)
    await followers.close()
    assert targets.running == []
