"""JSON lines over HTTP: routes that send or accept them, and bodies that are read as they come."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match
from starlette.types import Scope

from conspectus.errors import ConspectusError, InvalidInput, TooLarge
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.model.pages import Page, pages
from conspectus.web.bodies import BodyRoute
from conspectus.web.problem_details import Problem, Refused, problem_of, refuse

MEDIA_TYPE: Final = "application/x-ndjson"
MAX_LINE_LENGTH: Final = 1_000_000
"""Most bytes of a line."""
MIN_BYTES_PER_SECOND: Final = 500
"""Bytes a second at which a body must arrive, once `request_timeout_seconds` are used up."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
LINES: Final[dict[str, Any]] = {MEDIA_TYPE: {"schema": {"type": "string"}}}
SENT_AS_LINES: Final = {"requestBody": {"content": LINES}}
"""The OpenAPI entries of routes that accept or return lines."""

P = TypeVar("P", bound=Page)
L = TypeVar("L")


class LinesRoute(BodyRoute):
    """A route for those who send JSON lines, or who ask for them."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route: it sends JSON lines, or accepts them."""
        matched_route = super().matches(scope)
        header = "content-type" if scope["type"] == "http" and scope["method"] == "POST" else "accept"
        has_lines = any(
            media_type.partition(";")[0].strip().lower() == MEDIA_TYPE
            for media_type in Headers(scope=scope).get(header, "").split(",")
        )
        return matched_route if has_lines else (Match.NONE, {})


async def lines_in(
    pieces: AsyncIterable[bytes], max_line_length: int = MAX_LINE_LENGTH
) -> AsyncGenerator[tuple[int, bytes], None]:
    """Yield the lines of a body that are not empty, with their numbers from 1. Raises TooLarge."""
    rest, number = b"", 0
    async for piece in pieces:
        *complete_lines, rest = (rest + piece).split(b"\n")
        for line_bytes in complete_lines:
            number += 1
            if line := _read(line_bytes, number, max_line_length):
                yield number, line
        _read(rest, number + 1, max_line_length)
    if line := _read(rest, number + 1, max_line_length):
        yield number + 1, line


def decode_line(number: int, line: bytes) -> tuple[str, int]:
    """Return the text of a line, and its size. Raises InvalidInput with its number."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"line {number}", f"is not UTF-8: {fault.reason}") from fault
    return text, len(text)


async def send_as_lines(read: Callable[..., Awaitable[P]], lines: Callable[[P], Iterable[str]]) -> Response:
    """Return a response that sends the lines of all pages as they are read.

    An error while the first page is read is raised, so that it becomes an error response.
    """
    parts = (
        "".join(f"{line}\n" for line in lines(page)).encode("utf-8", "replace") async for page in pages(read)
    )
    first_page = await anext(parts)

    async def send_all() -> AsyncGenerator[bytes, None]:
        yield first_page
        async for part in parts:
            yield part

    return StreamingResponse(send_all(), media_type=MEDIA_TYPE)


class LineBatches(Generic[L]):
    """Writes the lines of a body batch by batch, with one batch in memory.

    `read` converts a line with its number to a value and its size in characters. `write` writes a batch, with
    the numbers of its lines, and returns the outcome of each: one of `outcomes`.
    """

    def __init__(
        self,
        read: Callable[[int, bytes], tuple[L, int]],
        write: Callable[[Sequence[int], Sequence[L]], Awaitable[Iterable[str]]],
        outcomes: Iterable[str],
    ) -> None:
        self._read = read
        self._write = write
        self._counts = dict.fromkeys(outcomes, 0)
        self._waiting: list[tuple[int, L]] = []
        self._size = 0

    async def take(
        self, pieces: AsyncIterable[bytes], max_line_length: int = MAX_LINE_LENGTH
    ) -> Mapping[str, int]:
        """Import all lines, and count their outcomes.

        Raises Refused. Its problem has the number of the wrong line, or those of its batch, counted from 1,
        and the outcomes of the lines before it.
        """
        try:
            async for number, line in lines_in(pieces, max_line_length):
                value, size = self._read(number, line)
                if len(self._waiting) == BATCH_DOCUMENTS or self._size + size > BATCH_CHARACTERS:
                    await self._write_waiting()
                self._waiting.append((number, value))
                self._size += size
            await self._write_waiting()
        except Refused as fault:
            raise make_refusal(fault.problem, **self._counts) from fault
        except ConspectusError as fault:
            raise make_refusal(problem_of(fault), **self._counts) from fault
        return self._counts

    async def _write_waiting(self) -> None:
        """Write the pending lines, all or none. Raises Refused with the numbers of its lines."""
        if not self._waiting:
            return
        numbers = [number for number, _ in self._waiting]
        try:
            done = await self._write(numbers, [value for _, value in self._waiting])
        except ConspectusError as fault:
            raise make_refusal(problem_of(fault), first_line=numbers[0], last_line=numbers[-1]) from fault
        for outcome in done:
            self._counts[outcome] += 1
        self._waiting, self._size = [], 0


def make_refusal(problem: Problem, **facts: int) -> Refused:
    """Return the error that ends a request with a problem and more facts."""
    return Refused(replace(problem, facts={**problem.facts, **facts}))


async def read_pieces(pieces: AsyncIterable[bytes], seconds: float) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a body as they come. Raises Refused where it ends too early, or comes too slowly.

    All waiting together takes `seconds` at most, and each piece gives back the time that its bytes may take.
    """
    waiting, clock, left = aiter(pieces), asyncio.get_running_loop().time, seconds
    while True:
        begun = clock()
        try:
            async with asyncio.timeout(left if seconds else None):
                piece = await anext(waiting)
        except StopAsyncIteration:
            return
        except TimeoutError:
            refuse(
                408,
                f"the body came too slowly: in {seconds} s, fewer than {MIN_BYTES_PER_SECOND} bytes a second",
            )
        except ClientDisconnect:
            refuse(408, "the request did not arrive whole")
        left = min(seconds, left - (clock() - begun) + len(piece) / MIN_BYTES_PER_SECOND)
        yield piece


def _read(line: bytes, number: int, max_line_length: int) -> bytes:
    if len(line) > max_line_length:
        raise TooLarge(f"line {number}", size=len(line), limit=max_line_length)
    return (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).strip()
