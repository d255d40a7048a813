"""The protocol over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import DEFAULT_MAX_REQUEST_BODY_SIZE, StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from conspectus.engine import Engine
from conspectus.mcp.server import Context, build_server
from conspectus.mcp.tool import HTTP_PATH, ToolOptions


class Endpoint:
    """Answers messages that are posted, each for itself; there is nothing to listen to."""

    path = HTTP_PATH

    def __init__(self, options: ToolOptions, *, max_bytes: int) -> None:
        self._messages = StreamableHTTPSessionManager(
            build_server(_engine_of, options),
            json_response=True,
            stateless=True,
            max_request_body_size=min(max_bytes, DEFAULT_MAX_REQUEST_BODY_SIZE),
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """The time in which it answers, of which there is one only; it may end in another task."""
        begun, over = asyncio.Event(), asyncio.Event()

        async def answer() -> None:
            try:
                async with self._messages.run():
                    begun.set()
                    await over.wait()
            finally:
                begun.set()

        answering = asyncio.create_task(answer())
        await begun.wait()
        try:
            yield
        finally:
            over.set()
            await answering

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message."""
        if scope["method"] == "POST":
            await self._messages.handle_request(scope, receive, send)
        else:
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)


def _engine_of(context: Context) -> Engine:
    request = context.request
    assert isinstance(request, Request)
    engine: Engine = request.state.engine
    return engine
