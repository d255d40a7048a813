"""The policy which network addresses requests may connect to, checked with the address of the connection.

The networks are those of the IANA registries of special-purpose addresses, and of clouds with public metadata
addresses. Of IPv6, only globally assigned addresses are public. Addresses that embed an IPv4 address are
checked as that one, and tunnels are forbidden.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

import httpcore

from conspectus.deferred import dataclass
from conspectus.errors import ForbiddenAddress, InvalidInput
from conspectus.text.urls import Address, parse_url

Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Connecting: TypeAlias = Coroutine[Any, Any, httpcore.AsyncNetworkStream]

SPECIAL_4 = tuple(map(IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)))  # fmt: skip
PUBLIC_6 = IPv6Network("2000::/3")
SPECIAL_6 = tuple(map(IPv6Network, (
    "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)))  # fmt: skip
TRANSLATED_6 = IPv6Network("64:ff9b::/96")
INSIDE = (
    ".localhost", ".local", ".localdomain", ".internal", ".intranet", ".private", ".corp", ".home", ".lan",
    ".home.arpa",
)  # fmt: skip
MORE_THAN_A_NAME = re.compile(r"[/:@?#\\]")
ATTEMPTS = 4


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address in TRANSLATED_6:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in PUBLIC_6 and not any(address in network for network in SPECIAL_6)


def is_inside_name(name: str) -> bool:
    """Return whether a name is only meaningful in a local network."""
    return "." not in name or name.endswith(INSIDE)


def literal(host: str) -> Address | None:
    """Return the IP address if the host is one; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The allowed targets: the public internet, and the names and networks that the operator allows.

    An allowed name may resolve to any address. Other names need an allowed network for local addresses.
    """

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def from_entries(cls, entries: Iterable[str]) -> "AddressPolicy":
        """Parse names, addresses and networks. Raises InvalidInput."""
        names, networks = set(), []
        for entry in filter(None, map(str.strip, entries)):
            try:
                networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                names.add(_allowed_name(entry))
        return cls(frozenset(names), tuple(networks))

    def may_ask(self, host: str) -> bool:
        """Return whether a host may be allowed, before it is resolved."""
        address = literal(host)
        if address is not None:
            return self.is_allowed(host, address)
        return host in self.names or bool(self.networks) or not is_inside_name(host)

    def is_allowed(self, host: str, address: Address) -> bool:
        """Return whether a host is allowed at an address."""
        plain = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        if host in self.names or any((plain or address) in network for network in self.networks):
            return True
        return is_public(address) and (literal(host) is not None or not is_inside_name(host))


def _allowed_name(entry: str) -> str:
    try:
        host = "" if MORE_THAN_A_NAME.search(entry) else parse_url(f"http://{entry}/").host
    except InvalidInput:
        host = ""
    if not host or literal(host) is not None:
        raise InvalidInput("fetch_allowed_networks", f"{entry!r} is not a name, address or network")
    return host


async def resolve_name(name: str, port: int) -> Sequence[str]:
    """Return all addresses of a name, in the order of the system's preference. Raises OSError."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(socket_address[0]) for *_, socket_address in infos))


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
