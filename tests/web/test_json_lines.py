"""JSON lines as they arrive, however they are cut."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from conspectus.errors import TooLarge
from conspectus.web.ndjson import MAX_LINE_LENGTH, MIN_BYTES_PER_SECOND, lines_in, read_pieces
from conspectus.web.problem_details import Refused


async def send_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read_lines(*pieces: bytes) -> list[tuple[int, bytes]]:
    return [line async for line in lines_in(send_pieces(*pieces))]


@given(st.binary(max_size=60).map(lambda body: body.replace(b"a", b"\n")), st.lists(st.integers(0, 60)))
def test_cuts_change_nothing(body: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in pairwise(bounds)]
    assert asyncio.run(read_lines(*pieces)) == asyncio.run(read_lines(body))


async def test_lines_keep_their_numbers() -> None:
    assert await read_lines(b"\xef\xbb\xbf{}\r\n\n  \n", b"[", b"1]") == [(1, b"{}"), (4, b"[1]")]
    assert await read_lines() == await read_lines(b"\n\n") == []


@pytest.mark.parametrize("ended", [b"", b"\n"])
async def test_a_line_that_is_too_long_is_refused(ended: bytes) -> None:
    piece = b"x" * 100_000
    with pytest.raises(TooLarge) as caught:
        await read_lines(b"{}\n", *[piece] * 11, ended)
    assert (caught.value.field, caught.value.limit) == ("line 2", MAX_LINE_LENGTH)


async def test_a_body_that_stops_is_refused() -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"{}"
        await asyncio.Event().wait()

    async def gone() -> AsyncIterator[bytes]:
        yield b"{}"
        raise ClientDisconnect

    for pieces in (stuck(), gone()):
        seen = []
        with pytest.raises(Refused) as caught:
            async for piece in read_pieces(pieces, 0.01):
                seen.append(piece)
        assert (seen, caught.value.problem.status) == ([b"{}"], 408)
    assert [piece async for piece in read_pieces(send_pieces(b"a", b"b"), 0)] == [b"a", b"b"]


async def test_a_body_that_comes_too_slowly_is_refused() -> None:
    async def dripping(piece: bytes) -> AsyncIterator[bytes]:
        for _ in range(20):
            yield piece
            await asyncio.sleep(0.02)

    seen = []
    with pytest.raises(Refused) as caught:
        async for piece in read_pieces(dripping(b"{"), 0.1):
            seen.append(piece)
    assert (caught.value.problem.status, len(seen) < 10) == (408, True)
    quick = b"{" * MIN_BYTES_PER_SECOND
    assert [piece async for piece in read_pieces(dripping(quick), 0.1)] == [quick] * 20
    assert len([piece async for piece in read_pieces(dripping(b"{"), 0)]) == 20


async def test_many_bytes_pay_for_no_later_wait() -> None:
    async def begun() -> AsyncIterator[bytes]:
        yield b"{" * MIN_BYTES_PER_SECOND * 1_000
        await asyncio.Event().wait()

    with pytest.raises(Refused):
        async with asyncio.timeout(5):
            async for _ in read_pieces(begun(), 0.05):
                pass
