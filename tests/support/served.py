"""An application behind a real server, for tests of what speaks HTTP with it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """The address of the application, served on the loopback by this event loop until the block ends."""
    server = _Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False))
    serving = asyncio.create_task(server.serve())
    starting = asyncio.create_task(server.listening.wait())
    try:
        await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        starting.cancel()
        server.should_exit = True
        server.leaving.set()
        await serving


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.leaving = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Serve until told to leave, which uvicorn would look for ten times a second."""
        await self.on_tick(0)
        await self.leaving.wait()
