"""The policy which network addresses requests may connect to, checked with the address of the connection.

The networks are those of the IANA registries of special-purpose addresses, and of clouds with public metadata
addresses. Of IPv6, only globally assigned addresses are public. Addresses that embed an IPv4 address are
checked as that one, and tunnels are forbidden.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.text.urls import Address, parse_url

Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

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
