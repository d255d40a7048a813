"""The connections of a process: how many there may be, and how long the head of a request may take."""

import asyncio
import ipaddress
import resource
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import h11
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from conspectus.settings import Settings
from conspectus.web.problem_details import CODES, Problem

HEAD_BYTES: Final = 32_768
"""Most bytes of the request line and the headers."""
IPV6_PREFIX: Final = 64
"""Bits of an IPv6 address by which clients are told apart."""
CONNECTION: Final = "connection"
"""The name of the connection in the state of a request."""
DETAILS: Final = {
    400: "this is not a valid HTTP/1.1 request",
    408: "the head of the request did not arrive in time",
    431: f"the request line and the headers are too large; at most {HEAD_BYTES} bytes are allowed",
}


class Connections(ServerState):
    """The open connections.

    Where there are too many, the oldest that has shown no valid key is closed, or else the longest idle one.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.seconds = settings.header_seconds
        self.is_ending = False
        """Whether the server has closed its connections: one that was accepted too late is closed at once."""
        self._maximum = affordable(settings.max_connections)
        self._maximum_of_address = settings.max_address_connections or self._maximum
        self._unproven: dict[Connection, str] = {}
        self._idle: dict[Connection, None] = {}
        self._of_address: dict[str, int] = {}
        self._unread: deque[tuple[Connection, bytes]] = deque()

    def read_in_turn(self, connection: "Connection", data: bytes) -> None:
        """Read what an unproven connection sent, after the others before it: one in a turn of the event loop.

        However many such clients send at once, every step of all other requests waits for one of them only.
        """
        self._unread.append((connection, data))
        if len(self._unread) == 1:
            asyncio.get_running_loop().call_soon(self._read_next)

    def _read_next(self) -> None:
        connection, data = self._unread[0]
        try:
            connection.read(data)
        finally:
            self._unread.popleft()
            if self._unread:
                asyncio.get_running_loop().call_soon(self._read_next)

    def add(self, connection: "Connection", address: str) -> None:
        """Count a new connection, and close one where that makes too many."""
        self._unproven[connection] = address
        of_address = self._of_address[address] = self._of_address.get(address, 0) + 1
        if of_address > self._maximum_of_address:
            next(oldest for oldest, network in self._unproven.items() if network == address).drop()
        elif len(self.connections) > self._maximum:
            next(iter(self._unproven if len(self._unproven) > 1 else self._idle), connection).drop()

    def note_idle(self, connection: "Connection") -> None:
        """Note that a connection with a valid key waits for its next request."""
        self._idle[connection] = None

    def remove(self, connection: "Connection") -> None:
        """Keep a connection from being closed for others: it is in use, or closed."""
        self._idle.pop(connection, None)
        address = self._unproven.pop(connection, None)
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]


class Parser(h11.Connection):
    """Refuses what the library lets through: a large head that came at once, and a length given twice.

    A head that says how long its body is goes out with the first of the body: one packet for most answers.
    """

    _head: Sequence[bytes] = ()

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        """Return the parts to be written now; None for the end of the connection."""
        sent = super().send_with_data_passthrough(event)
        if sent is None:
            return None
        if isinstance(event, h11.Response) and any(name == b"content-length" for name, _ in event.headers):
            self._head = sent
            return []
        whole, self._head = [*self._head, *sent], ()
        return whole

    def next_event(self) -> Any:
        """Return the next part of a request. Raises RemoteProtocolError."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding are given")
            size = len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
            if size > HEAD_BYTES:
                raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
        return event


class Connection(H11Protocol):
    """A connection that is closed unless the next request begins, and its head is whole, in time."""

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self.conn = Parser(h11.SERVER, HEAD_BYTES)
        self._connections = server_state
        self._proven = self._refused = False
        self._timer: asyncio.TimerHandle | None = None
        self._when_lost: Callable[[], None] | None = None

    @contextmanager
    def call_on_disconnect(self, call: Callable[[], None]) -> Iterator[None]:
        """Call a function if the client disconnects during the block."""
        self._when_lost = call
        try:
            yield
        finally:
            self._when_lost = None

    @property
    def _is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._connections.add(self, network_of(self.client))
        self._update_timer()
        if self._connections.is_ending:
            self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and stop its timer."""
        super().connection_lost(exc)
        self._connections.remove(self)
        if self._when_lost is not None:
            self._when_lost()
        self._update_timer()

    def data_received(self, data: bytes) -> None:
        """Continue to read, at once with a valid key, and else in turn. The time limit of the head continues.

        What a refused client still sends is discarded.
        """
        if self._proven:
            self.read(data)
        elif not self._refused:
            self.transport.pause_reading()
            self._connections.read_in_turn(self, data)

    def read(self, data: bytes) -> None:
        """Read what the client sent, unless it was refused or has left."""
        if not self._refused and not self.transport.is_closing():
            super().data_received(data)
            self._update_timer()
        if not self.flow.read_paused:
            self.transport.resume_reading()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._proven and self._is_waiting and not self.transport.is_closing():
            self._connections.note_idle(self)
        self._update_timer()

    def prove(self) -> None:
        """Note that the request came with a valid key."""
        self._proven = True
        self._connections.remove(self)

    def drop(self) -> None:
        """Close the connection at once."""
        self._connections.remove(self)
        self._connections.connections.discard(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not a request, and close the connection."""
        self._refuse(getattr(sys.exception(), "error_status_hint", 400))

    def _update_timer(self) -> None:
        """Start the timer if a request is waited for, else stop it."""
        if self._is_waiting and not self.transport.is_closing():
            if self._timer is None and self._connections.seconds:
                self._timer = self.loop.call_later(self._connections.seconds, self._time_out)
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408)
        self.transport.close()

    def _refuse(self, status: int) -> None:
        """Answer, and read no more.

        A client that still sends would lose the answer if the connection were closed at once.
        """
        self._refused = True
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(b"".join(self._refusal(status)))
        if self._is_waiting and self._timer is not None:
            self.transport.write_eof()
        else:
            self.transport.close()

    def _refusal(self, status: int) -> Iterator[bytes]:
        known = status if status in DETAILS else 400
        answer = Problem(known, CODES[known], DETAILS[known]).response()
        headers = [*answer.raw_headers, (b"connection", b"close")]
        for event in (h11.Response(status_code=known, headers=headers), h11.Data(data=bytes(answer.body))):
            yield self.conn.send(event) or b""


def network_of(client: tuple[str, int] | None) -> str:
    """Return the network of a client's address: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))


def affordable(requested: int) -> int:
    """Return the limit of connections: as many as wanted, but at most three quarters of the descriptors.

    A soft limit of descriptors that is too low is raised as far as the system allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = requested + requested // 3
    if soft < needed:
        room = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
            soft = room
    return requested if soft == resource.RLIM_INFINITY else min(requested, soft * 3 // 4)
