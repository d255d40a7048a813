"""Connections to addresses that the policy allows, for httpcore."""

import socket
from collections.abc import Coroutine, Iterable, Sequence
from ipaddress import ip_address
from typing import Any, TypeAlias

import httpcore

from conspectus.errors import ForbiddenAddress
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, literal

Connecting: TypeAlias = Coroutine[Any, Any, httpcore.AsyncNetworkStream]

ATTEMPTS = 4


class Connections(httpcore.AsyncNetworkBackend):
    """A network backend that connects to checked addresses only. A name is resolved here, once.

    One forbidden address forbids the name, so that the order of addresses cannot be exploited.
    """

    def __init__(
        self, boundary: AddressPolicy, *, resolve: Resolve, below: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._boundary = boundary
        self._resolve = resolve
        self._below = below or httpcore.AnyIOBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> Connecting:
        """Connect to the first address that answers. Raises ForbiddenAddress, OSError or httpcore errors."""
        return self._connect(host, port, timeout)

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> Connecting:
        """Raises ForbiddenAddress."""
        raise ForbiddenAddress("a local socket")

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await self._below.sleep(seconds)

    async def _connect(self, host: str, port: int, longest: float | None) -> httpcore.AsyncNetworkStream:
        addresses = await self._addresses(host, port)
        share = None if longest is None else longest / len(addresses)
        for address in addresses[:-1]:
            try:
                return await self._below.connect_tcp(address, port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._below.connect_tcp(addresses[-1], port, timeout=share)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if not self._boundary.may_ask(host):
            raise ForbiddenAddress(host)
        addresses = [host] if literal(host) is not None else await self._resolve(host, port)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        if not all(self._boundary.is_allowed(host, ip_address(address)) for address in addresses):
            raise ForbiddenAddress(host)
        return addresses[:ATTEMPTS]
