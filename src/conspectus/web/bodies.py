"""Large JSON bodies, parsed outside the event loop in short steps."""

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from fastapi import Request, Response, UploadFile
from fastapi.routing import APIRoute

from conspectus.errors import TooLarge
from conspectus.model.jobs import Upload

SMALL: Final = 65_536
"""Bodies up to this size are parsed at once, in a few milliseconds at most."""
WIDTHS: Final = (1_024, 8_192, SMALL)
Scan: TypeAlias = Callable[..., tuple[Any, int]]


class Pieces(json.JSONDecoder):
    """A JSON decoder that lets other threads run every few milliseconds.

    The fast parser of the standard library holds the GIL until it is done. It is used for single strings and
    numbers, and for short objects and lists; longer ones are iterated here.
    """

    parse_array: Scan
    parse_object: Scan
    scan_once: Scan

    def __init__(self) -> None:
        super().__init__()
        self._at_once = self.scan_once
        self.scan_once = self._value

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        opening = text[at : at + 1]
        if opening not in {"{", "["}:
            return self._at_once(text, at)
        for width in WIDTHS:
            try:
                value, size = self._at_once(text[at : at + width], 0)
            except (StopIteration, ValueError):
                continue
            return value, at + size
        if opening == "{":
            return self.parse_object((text, at + 1), self.strict, self._value, None, None)
        return self.parse_array((text, at + 1), self._value)


class BodyRequest(Request):
    """A request whose body may be a large JSON document."""

    async def json(self) -> Any:
        """Return the parsed body. Raises TooLarge if it would need far more memory than its size."""
        body = await self.body()
        if len(body) <= SMALL:
            return json.loads(body)
        limit: int = self.app.state.max_body_brackets
        brackets = body.count(b"{") + body.count(b"[")
        if brackets > limit:
            raise TooLarge("opening brackets of the body", size=brackets, limit=limit)
        return await asyncio.to_thread(parsed, body)


class BodyRoute(APIRoute):
    """A route with such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        answer = super().get_route_handler()

        async def answering(request: Request) -> Response:
            return await answer(BodyRequest(request.scope, request.receive))

        return answering


def parsed(body: bytes) -> Any:
    """Return the value of a JSON document. Raises ValueError."""
    return Pieces().decode(body.decode(json.detect_encoding(body), "surrogatepass"))


async def handed_in(files: Sequence[UploadFile], folder: str) -> list[Upload]:
    """Store uploaded files under numbers in a folder. Returns their paths with the original names."""
    uploads = []
    for number, each in enumerate(files):
        place = Path(folder) / str(number)
        await asyncio.to_thread(_copy, each.file, place)
        uploads.append(Upload(each.filename or "", place))
    return uploads


def _copy(file: BinaryIO, place: Path) -> None:
    with place.open("wb") as target:
        shutil.copyfileobj(file, target)
