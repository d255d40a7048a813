"""Connections without a valid key are read in turn."""

import asyncio
from typing import cast

from conspectus.settings import Settings
from conspectus.web.connections import Connection, Connections


class Client:
    """A connection that notes what is read of it."""

    def __init__(self, log: list[bytes], error: Exception | None = None) -> None:
        self._log = log
        self._error = error

    def read(self, sent: bytes) -> None:
        self._log.append(sent)
        if self._error is not None:
            raise self._error


def send(connections: Connections, client: Client, sent: bytes) -> None:
    connections.read_in_turn(cast(Connection, client), sent)


async def test_each_turn_of_the_event_loop_reads_what_one_client_sent() -> None:
    log: list[bytes] = []
    connections, client = Connections(Settings()), Client(log)
    for number in range(3):
        send(connections, client, b"%d" % number)
    assert log == []
    for number in range(3):
        await asyncio.sleep(0)
        assert log == [b"%d" % earlier for earlier in range(number + 1)]


async def test_a_client_that_fails_holds_up_no_other() -> None:
    log: list[bytes] = []
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _loop, context: errors.append(context["exception"])
    )
    connections, fault = Connections(Settings()), ValueError("broken")
    send(connections, Client(log, fault), b"first")
    send(connections, Client(log), b"second")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (log, errors) == ([b"first", b"second"], [fault])
