"""The Model Context Protocol next to the API; its library is loaded at the first message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final

from starlette.types import Receive, Scope, Send

from conspectus.errors import optional
from conspectus.mcp.tool import PATH, ToolOptions

if TYPE_CHECKING:
    from conspectus.mcp.transports import Endpoint

MODULE: Final = "conspectus.mcp.transports"


class ModelsEndpoint:
    """Answers messages that are posted."""

    path = PATH

    def __init__(self, options: ToolOptions, *, max_bytes: int) -> None:
        self._options = options
        self._most_bytes = max_bytes
        self._opening = asyncio.Lock()
        self._opened = AsyncExitStack()
        self._endpoint: Endpoint | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which it answers, of which there is one only."""
        async with self._opened:
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        async with self._opening:
            if self._endpoint is None:
                self._endpoint = await self._loaded()
        await self._endpoint(scope, receive, send)

    async def _loaded(self) -> "Endpoint":
        module = await asyncio.to_thread(optional, MODULE, "mcp", "mcp")
        endpoint: Endpoint = module.Endpoint(self._options, max_bytes=self._most_bytes)
        await self._opened.enter_async_context(endpoint.running())
        return endpoint
