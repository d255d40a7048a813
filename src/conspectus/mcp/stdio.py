"""The protocol over stdin and stdout."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import cast

import anyio
from mcp.server.stdio import stdio_server

from conspectus.engine.any_engine import AnyEngine
from conspectus.mcp.server import build_server
from conspectus.mcp.tool import ToolOptions

STDIN_DESCRIPTOR = 0
READ_BYTES = 65_536
MAX_WAITING_LINES = 64
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve_stdio(engine: AnyEngine, options: ToolOptions) -> None:
    """Answer until the input ends or the process is asked to stop."""
    engine.tokenizer(options.tokenizer)
    server = build_server(lambda _context: engine, options)
    lines = Lines(asyncio.get_running_loop(), STDIN_DESCRIPTOR)
    with anyio.CancelScope() as scope, stop_on_signal(scope):
        lines.start()
        async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


@contextmanager
def stop_on_signal(scope: anyio.CancelScope) -> Iterator[None]:
    """Let the first signal end what is in the scope; a second one ends the process."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for signal_number in STOP_SIGNALS:
            loop.remove_signal_handler(signal_number)
            signal.signal(signal_number, signal.SIG_DFL)
        scope.cancel()

    for signal_number in STOP_SIGNALS:
        loop.add_signal_handler(signal_number, stop)
    try:
        yield
    finally:
        for signal_number in STOP_SIGNALS:
            loop.remove_signal_handler(signal_number)


class Lines:
    """The lines of a file descriptor, read by a thread that nobody has to wait for.

    A read that blocks cannot be cancelled: a server that reads in a thread of its own can still be stopped.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        self._loop = loop
        self._descriptor = descriptor
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING_LINES)
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield each line, to the end of the input."""
        while (line := await self._queue.get()) is not None:
            yield line

    def _read(self) -> None:
        incomplete = b""
        while piece := self._piece():
            *lines, incomplete = (incomplete + piece).split(b"\n")
            for line in lines:
                self._put(line.decode("utf-8", "replace"))
        if incomplete:
            self._put(incomplete.decode("utf-8", "replace"))
        self._put(None)

    def _piece(self) -> bytes:
        try:
            return os.read(self._descriptor, READ_BYTES)
        except OSError:
            return b""

    def _put(self, line: str | None) -> None:
        """Hand a line over, and wait while too many wait already."""
        try:
            asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()
        except (RuntimeError, asyncio.CancelledError):
            return
