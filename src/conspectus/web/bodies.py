"""Large JSON bodies: parsed outside the event loop, in pieces that each take little time."""

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
"""A body up to this size takes a few milliseconds at most, and is parsed at once."""
WIDTHS: Final = (1_024, 8_192, SMALL)
Scan: TypeAlias = Callable[..., tuple[Any, int]]


class Pieces(json.JSONDecoder):
    """Parses as its base does, but never more than a few milliseconds without letting other threads run.

    The fast parser of the standard library holds the interpreter until it is done. It gets single strings and
    numbers, and objects and lists that are short; longer ones are gone through here.
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
        """The parsed body. Raises TooLarge for one that would take far more memory than its size."""
        body = await self.body()
        if len(body) <= SMALL:
            return json.loads(body)
        limit: int = self.app.state.max_body_brackets
        brackets = body.count(b"{") + body.count(b"[")
        if brackets > limit:
            raise TooLarge("opening brackets of the body", size=brackets, limit=limit)
        return await asyncio.to_thread(parsed, body)


class BodyRoute(APIRoute):
    """A route whose requests are such."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of a request."""
        answer = super().get_route_handler()

        async def answering(request: Request) -> Response:
            return await answer(BodyRequest(request.scope, request.receive))

        return answering


def parsed(body: bytes) -> Any:
    """The value of a JSON document. Raises ValueError."""
    return Pieces().decode(body.decode(json.detect_encoding(body), "surrogatepass"))


async def handed_in(files: Sequence[UploadFile], folder: str) -> list[Upload]:
    """The files under numbers in a folder, with the names that they came with."""
    uploads = []
    for number, each in enumerate(files):
        place = Path(folder) / str(number)
        await asyncio.to_thread(_copy, each.file, place)
        uploads.append(Upload(each.filename or "", place))
    return uploads


def _copy(file: BinaryIO, place: Path) -> None:
    with place.open("wb") as target:
        shutil.copyfileobj(file, target)
