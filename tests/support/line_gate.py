"""A gate before a server of lines, such as IMAP: it counts what clients send, and stops after some."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

MAX_LINE_BYTES = 1_000_000
PIECE_BYTES = 65_536
STREAM_ERRORS = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)


@dataclass(slots=True)
class LineGate:
    """Forwards connections to a server on this machine. `requests` counts the lines of clients."""

    upstream_port: int
    port: int = 0
    requests: int = 0
    _answers_left: int | None = None
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def stop_after(self, requests: int | None) -> None:
        """Pass so many more lines on, and close the connection of later ones; None: pass all."""
        self._answers_left = requests

    async def end_connections(self) -> None:
        """Close all connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until one side closes it."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        upstream, sender = await asyncio.open_connection("127.0.0.1", self.upstream_port)
        answers = asyncio.create_task(_pump(upstream, writer))
        try:
            while line := await reader.readuntil(b"\n"):
                self.requests += 1
                if self._answers_left == 0:
                    return
                if self._answers_left is not None:
                    self._answers_left -= 1
                sender.write(line)
                await sender.drain()
        except STREAM_ERRORS:
            return  # The client has gone.
        finally:
            answers.cancel()
            sender.close()
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    except STREAM_ERRORS:
        return
    writer.close()


@asynccontextmanager
async def open_line_gate(upstream_port: int) -> AsyncIterator[LineGate]:
    """A gate before the server at this port of 127.0.0.1."""
    gate = LineGate(upstream_port)
    listener = await asyncio.start_server(gate.serve, "127.0.0.1", 0, limit=MAX_LINE_BYTES)
    gate.port = listener.sockets[0].getsockname()[1]
    try:
        yield gate
    finally:
        listener.close()
        await gate.end_connections()
        await listener.wait_closed()
