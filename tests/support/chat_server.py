"""A local server for tests that speaks OpenAI's streaming chat completions, and fails on demand.

    async with ChatServer(["Paris", " [1]"]) as server:
        server.plan.append(refusing(429, "rate_limit_exceeded", retry_after=7))
        server.plan.append(stumbling("cut", after=1))
        model = HostedChatModel("openai:small", url=server.url)
        ...
        assert server.calls[0].body["messages"][-1]["content"] == "Where?"

Each request takes the next of `plan`, if there is one; else it is answered with the pieces. A word read is
one token, a piece said another.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from tests.support.chat_chunks import Pieces, chunks, dump

Trouble = Literal[
    "dropped", "cut", "cut_quietly", "silent", "garbage", "not_json", "empty", "filtered", "error"
]
Says: TypeAlias = Sequence[str] | Callable[["ChatCall"], Sequence[str]]

PATH: Final = "/v1/chat/completions"
HEAD_LIMIT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One request that came: its headers (names in lower case) and its JSON."""

    headers: Mapping[str, str]
    body: Any

    @property
    def words(self) -> int:
        """The words of all messages."""
        return sum(len(str(message["content"]).split()) for message in self.body["messages"])


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request: a refusal with a `status`, or `trouble` after so many pieces."""

    status: int = 0
    code: str = ""
    message: str = "planned"
    retry_after: float | None = None
    trouble: Trouble | None = None
    after: int = 0


def refusing(
    status: int, code: str = "planned", *, message: str = "planned", retry_after: float | None = None
) -> Fault:
    """A refusal before the stream."""
    return Fault(status, code, message, retry_after)


def stumbling(trouble: Trouble, *, after: int = 0) -> Fault:
    """Trouble within the stream.

    `dropped` is no answer at all, `cut` breaks off, `cut_quietly` ends as if all had been said, `silent` says
    nothing more until the client leaves, `garbage` and `not_json` are no protocol, `empty` says nothing,
    `filtered` is stopped by a filter, `error` is an error in the stream.
    """
    return Fault(trouble=trouble, after=after)


class ChatServer:
    """The server; `calls` are all requests, `open` counts answers under way.

    `left` counts clients that went away before the end of an answer, and `leaving` is set by the first one;
    `asked` is set by each request and `silent` when an answer falls silent. With a `key` others are refused,
    with a `model` all others are unknown, and prompts with room for the answer over `window` are too long.
    With `tells` off, the tokens are never told.
    """

    def __init__(
        self,
        says: Says = ("Hello", " world"),
        *,
        key: str | None = None,
        model: str | None = None,
        window: int | None = None,
        tells: bool = True,
    ) -> None:
        self.says = says
        self.tells = tells
        self.plan: deque[Fault] = deque()
        self.calls: list[ChatCall] = []
        self.open = 0
        self.left = 0
        self.asked, self.silent, self.leaving = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.port = 0
        self._key = key
        self._model = model
        self._window = window
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Break off whatever is going on."""
        if self._server is None:
            return
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """The base address, as clients of OpenAI want it."""
        return f"http://127.0.0.1:{self.port}/v1"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer, beside a watch on whether the client is still there."""
        try:
            path, call = await _read(reader)
            self.calls.append(call)
            self.asked.set()
            answer = asyncio.ensure_future(self._answer(path, call, writer))
            gone = asyncio.ensure_future(reader.read(1))
            await _first_of(answer, gone)
            if not answer.done() or answer.cancelled():
                self.left += 1
                self.leaving.set()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, path: str, call: ChatCall, writer: asyncio.StreamWriter) -> None:
        fault = self.plan.popleft() if self.plan else self._refusal(path, call)
        if fault.trouble == "dropped":
            return
        if fault.status:
            await _send(writer, _refused(fault))
            return
        if fault.trouble == "not_json":
            await _send(writer, _head(200, "application/json") + b"{ this is not JSON")
            return
        self.open += 1
        try:
            await self._stream(call, fault, writer)
        finally:
            self.open -= 1

    def _refusal(self, path: str, call: ChatCall) -> Fault:
        """What an honest server says to a request that it cannot answer; a Fault of nothing if it can."""
        body = call.body
        if path != PATH:
            return refusing(404, "unknown_url", message=f"Unknown request URL: POST {path}")
        if self._key is not None and call.headers.get("authorization") != f"Bearer {self._key}":
            authorization = call.headers.get("authorization")
            return refusing(401, "invalid_api_key", message=f"Incorrect API key provided: {authorization}")
        if self._model is not None and body["model"] != self._model:
            return refusing(404, "model_not_found", message=f"The model {body['model']} does not exist")
        if self._window is not None and call.words + _maximum(body) > self._window:
            return refusing(400, "context_length_exceeded", message="maximum context length exceeded")
        if not body.get("stream"):
            return refusing(400, "unsupported_value", message="only streams are served")
        return Fault()

    async def _stream(self, call: ChatCall, fault: Fault, writer: asyncio.StreamWriter) -> None:
        await _send(writer, _head(200, "text/event-stream", "Transfer-Encoding: chunked"))
        async for data in self._data(call, fault):
            frame = f"data: {data}\n\n".encode()
            await _send(writer, b"%x\r\n%s\r\n" % (len(frame), frame))
        if fault.trouble != "cut":
            await _send(writer, b"0\r\n\r\n")

    async def _data(self, call: ChatCall, fault: Fault) -> AsyncIterator[str]:
        """What the frames hold, with the trouble in its place."""
        texts = tuple(self.says(call) if callable(self.says) else self.says)[: _maximum(call.body)]
        options = call.body.get("stream_options") or {}
        tells = self.tells and bool(options.get("include_usage"))
        pieces = Pieces(call.body["model"], texts, words=call.words if tells else None)
        if fault.trouble is None:
            for chunk in chunks(pieces):
                yield dump(chunk)
            yield "[DONE]"
            return
        for chunk in chunks(pieces.until(fault.after)):
            yield dump(chunk)
        if fault.trouble == "silent":
            self.silent.set()
            await asyncio.Event().wait()
        for data in pieces.ending(fault.trouble):
            yield data


def _maximum(body: Any) -> int:
    return int(body.get("max_completion_tokens") or body.get("max_tokens") or 1_000)


def _head(status: int, kind: str, *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Planned", f"Content-Type: {kind}", "Connection: close", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def _refused(fault: Fault) -> bytes:
    error = {"message": fault.message, "type": "invalid_request_error", "param": None, "code": fault.code}
    more = [] if fault.retry_after is None else [f"Retry-After: {fault.retry_after}"]
    return _head(fault.status, "application/json", *more) + dump({"error": error}).encode()


async def _first_of(answer: asyncio.Future[None], gone: asyncio.Future[bytes]) -> None:
    """Wait for the end of the answer or of the client, then end the other."""
    ends: tuple[asyncio.Future[Any], ...] = (answer, gone)
    try:
        await asyncio.wait({*ends}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> tuple[str, ChatCall]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in head[1:] if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return head[0].split(" ")[1], ChatCall(headers, json.loads(body))


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()
