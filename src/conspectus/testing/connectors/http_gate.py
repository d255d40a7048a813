"""A gate before a server that speaks HTTP: it counts requests, stops after some, and asks to slow down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field
from typing import Any

from conspectus.deferred import dataclass

MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 64_000_000
PIECE_BYTES = 65_536
STREAM_ERRORS = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)


@dataclass(slots=True)
class HttpGate:
    """Forwards each request of connectors to a server on this machine, on a connection of its own.

    `requests` counts what was asked. Open it with `open_gate`, and give connectors its `address`.
    """

    upstream_port: int
    port: int = 0
    requests: int = 0
    _answers_left: int | None = None
    _busy_answers: int = 0
    _retry_after: str | None = None
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def address(self) -> str:
        """The address for connectors, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def stop_after(self, requests: int | None) -> None:
        """Answer so many more requests, and close the connection of later ones; None: answer all."""
        self._answers_left = requests

    def throttle(self, requests: int, retry_after: str | None) -> None:
        """Answer so many requests with 429, with this `Retry-After`, if any."""
        self._busy_answers, self._retry_after = requests, retry_after

    async def end_requests(self) -> None:
        """End the requests that are not answered yet."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a client, on a connection of its own."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await _read_body(reader, head)
            self.requests += 1
            await self._answer(head, body, writer)
        except STREAM_ERRORS:
            return  # The client, or the server, has gone.
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if self._answers_left == 0:
            return
        if self._answers_left is not None:
            self._answers_left -= 1
        if self._busy_answers:
            self._busy_answers -= 1
            wait = "" if self._retry_after is None else f"Retry-After: {self._retry_after}\r\n"
            writer.write(
                f"HTTP/1.1 429 Busy\r\n{wait}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
            await writer.drain()
            return
        upstream, sender = await asyncio.open_connection("127.0.0.1", self.upstream_port)
        try:
            sender.write(_without_keep_alive(head) + body)
            while piece := await upstream.read(PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
        finally:
            sender.close()


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    for line in head.split(b"\r\n"):
        name, _, size = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return await reader.readexactly(min(int(size), MAX_BODY_BYTES))
    return b""


def _without_keep_alive(head: bytes) -> bytes:
    """Return the head of a request, after whose answer the server closes the connection."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    left = [line for line in lines if not line.lower().startswith((b"connection:", b"keep-alive:"))]
    return b"\r\n".join([*left, b"Connection: close"]) + b"\r\n\r\n"


@asynccontextmanager
async def open_gate(upstream_port: int) -> AsyncIterator[HttpGate]:
    """A gate before the server at this port of 127.0.0.1."""
    gate = HttpGate(upstream_port)
    listener = await asyncio.start_server(gate.serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
    gate.port = listener.sockets[0].getsockname()[1]
    try:
        yield gate
    finally:
        listener.close()
        await gate.end_requests()
        await listener.wait_closed()
