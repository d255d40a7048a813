"""Large JSON bodies: parsed outside the event loop, in pieces that each take little time."""

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from fastapi import Request, Response, UploadFile
from fastapi.routing import APIRoute

from conspectus.errors import InvalidInput
from conspectus.model.jobs import Upload
from conspectus.web.body_limits import ACCOUNT, SMALL_BODY_BYTES, BodyAccount, BodyLimits, ValueCounter

WIDTHS: Final = (1_024, 8_192, SMALL_BODY_BYTES)
"""Characters that the fast parser is given at once: the fewest in which an object or a list ends."""
Scan: TypeAlias = Callable[..., tuple[Any, int]]


class Pieces(json.JSONDecoder):
    """A JSON decoder that lets other threads run after a few milliseconds at most.

    The fast parser of the standard library holds the interpreter until it is done. It gets single strings and
    numbers, and objects and lists that are short. The members of longer ones are parsed one by one here.
    """

    parse_array: Scan
    parse_object: Scan
    scan_once: Scan

    def __init__(self, ended: threading.Event | None = None) -> None:
        super().__init__()
        self._scan_fast = self.scan_once
        self._ended = ended
        self.scan_once = self._value

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        if self._ended is not None and self._ended.is_set():
            raise ValueError("the request has ended")
        opening = text[at : at + 1]
        if opening not in {"{", "["}:
            return self._scan_fast(text, at)
        for width in WIDTHS:
            try:
                value, size = self._scan_fast(text[at : at + width], 0)
            except (StopIteration, ValueError):
                continue
            return value, at + size
        if opening == "{":
            return self.parse_object((text, at + 1), self.strict, self._value, None, None)
        return self.parse_array((text, at + 1), self._value)


class BodyRequest(Request):
    """A request whose body may be a large JSON document."""

    async def body(self) -> bytes:
        """Return the bytes of the body. Raises TooLarge or TooManyBodyBytes while they arrive."""
        if not hasattr(self, "_body"):
            limits: BodyLimits = self.app.state.body_limits
            account = self.scope["state"].get(ACCOUNT)
            self._body = await _receive(self, ValueCounter(limits.max_values), limits.counting, account)
        return self._body

    async def json(self) -> Any:
        """Return the parsed body. Raises TooLarge, or InvalidInput for a large one that is not UTF-8."""
        body = await self.body()
        if len(body) <= SMALL_BODY_BYTES:
            return json.loads(body)
        if not json.detect_encoding(body).startswith("utf-8"):
            raise InvalidInput("body", f"must be UTF-8 where it is longer than {SMALL_BODY_BYTES} bytes")
        limits: BodyLimits = self.app.state.body_limits
        ended = threading.Event()
        async with limits.parsing:
            try:
                return await asyncio.to_thread(parse_json, body, ended)
            finally:
                ended.set()


async def _receive(
    request: Request, counter: ValueCounter, counting: asyncio.Lock, account: BodyAccount | None
) -> bytes:
    """Read a body in pieces, each of which is counted before the next one is read."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if account is not None:
            account.take(size)
        pieces.append(piece)
        if size > SMALL_BODY_BYTES:
            await _count_values(
                counter, pieces if size - len(piece) <= SMALL_BODY_BYTES else [piece], counting
            )
    return b"".join(pieces)


async def _count_values(counter: ValueCounter, pieces: Sequence[bytes], counting: asyncio.Lock) -> None:
    """Count the values of pieces in steps. Each turn of the event loop takes one step of one body."""
    for piece in pieces:
        for start in range(0, len(piece), SMALL_BODY_BYTES):
            async with counting:
                counter.add(piece[start : start + SMALL_BODY_BYTES])
                await asyncio.sleep(0)


class BodyRoute(APIRoute):
    """A route whose requests are `BodyRequest`s."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of a request, which gets a `BodyRequest`."""
        answer = super().get_route_handler()

        async def answer_request(request: Request) -> Response:
            return await answer(BodyRequest(request.scope, request.receive))

        return answer_request


def parse_json(body: bytes, ended: threading.Event | None = None) -> Any:
    """Parse a JSON document. Raises ValueError, also soon after `ended` is set."""
    return Pieces(ended).decode(body.decode(json.detect_encoding(body), "surrogatepass"))


async def save_uploads(files: Sequence[UploadFile], folder: str) -> list[Upload]:
    """Write uploaded files to a folder, numbered, and return them with their own names."""
    uploads = []
    for number, file in enumerate(files):
        path = Path(folder) / str(number)
        await asyncio.to_thread(_copy, file.file, path)
        uploads.append(Upload(file.filename or "", path))
    return uploads


def _copy(file: BinaryIO, path: Path) -> None:
    with path.open("wb") as target:
        shutil.copyfileobj(file, target)
