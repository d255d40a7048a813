"""Python programs that a test starts beside itself, to talk to them, to stop them or to kill them."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READY = "ready"


@asynccontextmanager
async def program(*arguments: str | Path) -> AsyncIterator[Process]:
    """A program that has said that it is ready; killed at the end of the block if it still runs."""
    command = [sys.executable, *map(str, arguments)]
    running = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    try:
        assert await said(running) == READY
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def said(running: Process) -> str:
    """The next line that a program says; empty when it has ended."""
    assert running.stdout is not None
    return (await running.stdout.readline()).decode().rstrip("\n")


async def tell(running: Process, line: str) -> None:
    """Say a line to a program."""
    assert running.stdin is not None
    running.stdin.write(f"{line}\n".encode())
    await running.stdin.drain()
