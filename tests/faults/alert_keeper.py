"""A program to be killed, or to run beside another one: it checks alerts and writes captions.

`SEED COUNT` are the first caption's number and how many there are; every third is what the alert waits for,
a minute after the one before; `CACHE` is the folder beside a store in a database. Each line on standard
output is the number of a caption that is stored.
"""

import asyncio
import sys
from asyncio.subprocess import Process
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus.model.captions import NewCaption
from conspectus.settings import Settings
from tests.programs import program, said

SETTINGS = replace(
    Settings(), embedder="none", log_level="critical", fetch_allowed_networks="127.0.0.1",
    alert_poll_interval_ms=10, webhook_timeout_seconds=300, lease_seconds=2,
)  # fmt: skip
STREAM = "cam"


def caption(number: int) -> NewCaption:
    text = f"a fire, number {number}" if number % 3 == 0 else f"nothing, number {number}"
    return NewCaption(text, 60 * number, 60 * number + 1, index=number)


def keeper(
    store: Path | str, seed: int, count: int, cache: Path | str = ""
) -> AbstractAsyncContextManager[Process]:
    """The program, ready; killed at the end of the block."""
    return program("-m", "tests.faults.alert_keeper", str(store), str(seed), str(count), str(cache))


async def stored_by(running: Process, count: int) -> None:
    """Wait until the program has stored so many captions more."""
    for _ in range(count):
        assert await said(running), "it has ended by itself"


async def main(store: str, seed: str, count: str, cache: str = "") -> None:
    async with conspectus.open(store, settings=replace(SETTINGS, cache=cache)) as engine:
        await engine.alerts.start()
        print("ready", flush=True)
        for number in range(int(seed), int(seed) + int(count)):
            await engine.streams.add_captions(caption(number), stream=STREAM)
            print(number, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
