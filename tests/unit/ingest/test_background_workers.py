"""Followers start and stop watchers as connections come and go, and try failed ones again."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.waiting import until

from conspectus.errors import FetchFailed
from conspectus.ingest.background_workers import Followers


class Things:
    """Things to follow, by name, and which of them are being followed."""

    def __init__(self) -> None:
        self.wanted: dict[str, Callable[[], Awaitable[None]]] = {}
        self.going: list[str] = []
        self.tries = 0

    async def now(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return dict(self.wanted)

    def add(self, name: str) -> None:
        async def go_on() -> None:
            self.going.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                self.going.remove(name)

        self.wanted[name] = go_on

    async def fail(self) -> None:
        self.tries += 1
        raise FetchFailed("there", "is gone")


async def test_followers_start_what_is_new_and_stop_what_is_gone() -> None:
    things = Things()

    async def going(*names: str) -> bool:
        return sorted(things.going) == list(names)

    followers = Followers(things.now, look=0.01)
    followers.start()
    things.add("a")
    things.add("b")
    await until(lambda: going("a", "b"))
    del things.wanted["a"]
    await until(lambda: going("b"))
    await followers.close()
    assert things.going == []


async def test_what_cannot_be_followed_is_tried_again_and_stops_nothing_else() -> None:
    things = Things()
    things.wanted["broken"] = things.fail
    things.add("fine")
    followers = Followers(things.now, look=0.01)
    followers.start()

    async def tried_again() -> bool:
        return things.tries > 1 and things.going == ["fine"]

    await until(tried_again)
    await followers.close()
    assert things.going == []
