"""A local model vendor for tests: speaks a vendor's protocol, counts what it is asked, fails on demand.

    async with ModelServer(openai()) as vendor:
        vendor.plan.append(failing(429, retry_after=1))
        ...
        assert [call.body["input"] for call in vendor.calls] == [["a"], ["a"]]

What each vendor says is in `vendor_protocols`.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from tests.support.web_server import Answer, Request, ScriptedServer

Say: TypeAlias = Callable[["ModelCall"], Answer]
"""The vendor's answer to a request, as it should be."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request that came: where, with which headers (names in lower case), and its JSON."""

    path: str
    headers: Mapping[str, str]
    body: Any


def told(content: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON; underscores in the names of headers stand for hyphens."""
    named_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(content).encode(), status, "application/json", named_headers)


def failing(status: int, message: str = "planned", *, retry_after: float | str | None = None) -> Answer:
    """A failure in words that every vendor's library can read."""
    headers = {} if retry_after is None else {"Retry_After": str(retry_after)}
    return told({"error": {"message": message, "code": status}, "message": message}, status, **headers)


def never() -> Answer:
    """An answer that does not come while anybody waits for it."""
    return Answer(delay=3600.0)


class ModelServer:
    """A vendor with the protocol of `paths`; each request takes the next of `plan`, if there is one.

    `asked` is set by the first request.
    """

    def __init__(self, paths: Mapping[str, Say]) -> None:
        self.plan: deque[Answer] = deque()
        self.calls: list[ModelCall] = []
        self.asked = asyncio.Event()
        self._server = ScriptedServer({path: self._speaking(say) for path, say in paths.items()})

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Break off whatever is going on."""
        await self._server.__aexit__(kind, error, traceback)

    def say(self, path: str, say: Say) -> None:
        """Answer otherwise on a path from now on."""
        self._server.answers[path] = self._speaking(say)

    @property
    def base(self) -> str:
        """The server's URL without a path."""
        return self._server.base

    @property
    def misses(self) -> list[str]:
        """The paths that were asked for and that the vendor does not have."""
        return [request.path for request in self._server.requests if request.path not in self._server.answers]

    def _speaking(self, say: Say) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            call = ModelCall(request.path, request.headers, json.loads(request.body))
            self.calls.append(call)
            self.asked.set()
            return self.plan.popleft() if self.plan else say(call)

        return answer
