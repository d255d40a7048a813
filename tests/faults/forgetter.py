"""A program to be killed: it forgets, by a retention or because it is told to, till it is done."""

import asyncio
import sys
from dataclasses import replace

import conspectus
from conspectus.model.memory import MemorySelection, Scope
from conspectus.settings import Settings

SETTINGS = replace(Settings(), embedder="none", log_level="critical")
ANN = Scope("ann", "bot", "monday")


async def main(store: str, how: str) -> None:
    async with conspectus.open(store, settings=SETTINGS) as engine:
        print("ready", flush=True)
        if how == "retention":
            await engine.jobs.wait((await engine.retention.start_job()).id)
        else:
            await engine.memory.forget(MemorySelection(everything=True), scope=ANN)
        print("done", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
