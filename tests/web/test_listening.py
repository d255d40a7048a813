"""The socket that a server listens on."""

import asyncio
import socket

import pytest

from conspectus.web.serve import bound


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_small_answers_do_not_wait_for_the_ones_before(host: str) -> None:
    """Without this option each answer on a connection that is used again takes 40 ms longer."""
    has_no_delay: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        has_no_delay.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        writer.close()

    with bound(host, 0) as listener:
        async with await asyncio.start_server(talk, sock=listener):
            reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            assert await has_no_delay
