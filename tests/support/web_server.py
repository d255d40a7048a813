"""A small web server for tests: on the loopback, with an answer scripted for each path.

    async with ScriptedServer({"/page": Answer(b"<h1>Hi</h1>", type="text/html")}) as server:
        await fetcher.fetch(f"{server.base}/page")
        assert server.count("/page") == 1

A path has one answer, or several that are given in turn (the last one again and again), or a function of
the request. A path without an answer is 404. Every answer ends its connection.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from ssl import SSLContext
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import parse_qs

HEAD_LIMIT = 1 << 20
BLOCK = bytes(1 << 20)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; names of headers are lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The target up to the question mark."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> Mapping[str, str]:
        """The last value of each parameter."""
        fields = parse_qs(self.target.partition("?")[2], keep_blank_values=True)
        return {name: values[-1] for name, values in fields.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. Times are in seconds.

    `delay` passes before the first byte; an event is waited for. With `piece`, the body goes out in pieces
    of so many bytes, with `pause` after each. `endless` sends the body over and over, without a length,
    until the client leaves; `broken` ends the connection halfway through the body. `headers` go out as they
    are and replace those the server would send, a wrong Content-Length included.
    """

    body: bytes = b""
    status: int = 200
    type: str | None = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float | asyncio.Event = 0.0
    piece: int = 0
    pause: float = 0.0
    endless: bool = False
    broken: bool = False

    def head(self) -> bytes:
        """The status line and the headers."""
        lines = {"Connection": "close"}
        if not self.endless:
            lines["Content-Length"] = str(len(self.body))
        if self.type is not None:
            lines["Content-Type"] = self.type
        names = {name.lower() for name in self.headers}
        lines = {name: value for name, value in lines.items() if name.lower() not in names}
        reason = HTTPStatus(self.status).phrase if self.status in set(HTTPStatus) else "Unknown"
        rows = [f"{name}: {value}" for name, value in {**lines, **self.headers}.items()]
        return "\r\n".join([f"HTTP/1.1 {self.status} {reason}", *rows, "", ""]).encode("utf-8")


Script: TypeAlias = Answer | Sequence[Answer] | Callable[[Request], Answer]


def redirect(to: str, status: int = 302) -> Answer:
    """An answer that sends the client elsewhere."""
    return Answer(status=status, type=None, headers={"Location": to})


def compressed(body: bytes, encoding: str = "gzip", *, type: str = "text/plain") -> Answer:
    """A body as gzip or deflate."""
    packer = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    return Answer(packer.compress(body) + packer.flush(), type=type, headers={"Content-Encoding": encoding})


def gzip_bomb(size: int) -> Answer:
    """Zeros that unpack to `size` bytes from about a thousandth of that."""
    packer = zlib.compressobj(level=9, wbits=31)
    blocks = [packer.compress(BLOCK) for _ in range(size // len(BLOCK))]
    blocks += [packer.compress(BLOCK[: size % len(BLOCK)]), packer.flush()]
    return Answer(b"".join(blocks), headers={"Content-Encoding": "gzip"})


class ScriptedServer:
    """The server; `answers` may be changed while it runs, `requests` are all that came, in order."""

    def __init__(
        self,
        answers: Mapping[str, Script] | None = None,
        *,
        host: str = "127.0.0.1",
        tls: SSLContext | None = None,
    ) -> None:
        self.answers: dict[str, Script] = dict(answers or {})
        self.requests: list[Request] = []
        self.port = 0
        self._host = host
        self._tls = tls
        self._given: dict[str, int] = {}
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._server = await asyncio.start_server(
            self._accept, self._host, 0, ssl=self._tls, limit=HEAD_LIMIT
        )
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
    def base(self) -> str:
        """The server's URL without a path, as `http://127.0.0.1:4711`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def count(self, path: str | None = None) -> int:
        """How many requests came, in all or for one path."""
        return sum(path is None or request.path == path for request in self.requests)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            self.requests.append(request)
            await _send(self._answer(request), request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            writer.close()
            await _quietly(writer.wait_closed())

    def _answer(self, request: Request) -> Answer:
        script = self.answers.get(request.path, Answer(b"not here", 404))
        if isinstance(script, Answer):
            return script
        if callable(script):
            return script(request)
        turn = self._given.get(request.path, 0)
        self._given[request.path] = turn + 1
        return script[min(turn, len(script) - 1)]


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    pairs = [line.partition(":") for line in head[1:] if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body)


async def _send(answer: Answer, request: Request, writer: asyncio.StreamWriter) -> None:
    if isinstance(answer.delay, asyncio.Event):
        await answer.delay.wait()
    else:
        await asyncio.sleep(answer.delay)
    writer.write(answer.head())
    await writer.drain()
    if request.method == "HEAD":
        return
    body = answer.body[: len(answer.body) // 2] if answer.broken else answer.body
    await _send_body(body, answer, writer)
    while answer.endless and body:
        await _send_body(body, answer, writer)


async def _send_body(body: bytes, answer: Answer, writer: asyncio.StreamWriter) -> None:
    size = answer.piece or max(1, len(body))
    for start in range(0, len(body), size):
        writer.write(body[start : start + size])
        await writer.drain()
        await asyncio.sleep(answer.pause)


async def _quietly(closing: Awaitable[None]) -> None:
    """Wait for an end that the client may already have brought about in its own way."""
    try:
        await closing
    except OSError:
        return
