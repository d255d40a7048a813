"""The server over streamable HTTP, as an application that is put beside others.

Whoever asks is settled before: the engine that answers is that of the request's state. There are no
sessions, so nothing of one request can be used by another, and any process can answer any of them.
"""

from contextlib import AbstractAsyncContextManager

from mcp.server.streamable_http_manager import DEFAULT_MAX_REQUEST_BODY_SIZE, StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from conspectus.engine import Engine
from conspectus.mcp.offer import Options
from conspectus.mcp.server import Context, build_server

PATH = "/mcp"


class Endpoint:
    """Answers messages that are posted, each for itself; there is nothing to listen to."""

    def __init__(self, options: Options, *, most_bytes: int) -> None:
        self._messages = StreamableHTTPSessionManager(
            build_server(_engine_of, options),
            json_response=True,
            stateless=True,
            max_request_body_size=min(most_bytes, DEFAULT_MAX_REQUEST_BODY_SIZE),
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        """The time in which it answers; there is one only."""
        return self._messages.run()

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
