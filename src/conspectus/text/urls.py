"""Parsing of web addresses, shared by all code that requests, checks or displays them.

Host names are normalized as browsers do (percent-encoding, Unicode, IDNA, all notations of numbers), so that
no other interpretation leads to another host. Ambiguous addresses are rejected.
"""

import re
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias
from urllib.parse import urljoin

from pydantic_core import Url as WhatwgUrl

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.text.late_patterns import re_pattern

Address: TypeAlias = IPv4Address | IPv6Address

FORM = re_pattern(r"https?://(?P<user>[^/?#\\]*@)?[^/?#\\@]+(?:[/?#].*)?", re.IGNORECASE | re.DOTALL)
NAME = re_pattern(r"(?:[a-z0-9_-]{1,63}\.){0,126}[a-z0-9_-]{1,63}|\[[0-9a-f:.]*\]")
CONTROL = re_pattern(r"[\x00-\x1f\x7f]")
MAX_NAME_LENGTH = 253
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Url:
    """A normalized web address without fragment, user name and password.

    `host` is a lower-case ASCII name, or an IP address without brackets; `credentials` says that a user name
    or password was removed.
    """

    scheme: str
    host: str
    port: int
    path: str
    query: str
    credentials: bool = False

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"

    @property
    def authority(self) -> str:
        """Host and port; the default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == DEFAULT_PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: equal for addresses of one site."""
        return self.scheme, self.host, self.port

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def redacted(self) -> str:
        """The address for messages and logs, without the query, which may contain secrets."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def resolve(self, reference: str) -> "Url":
        """Resolve a reference against this address. Raises InvalidInput."""
        try:
            return parse_url(urljoin(str(self), reference.strip()))
        except ValueError:
            raise InvalidInput("url", "is not an http or https address") from None


def parse_url(text: str) -> Url:
    """Parse a web address. Raises InvalidInput without the address in its message."""
    trimmed = text.strip(" \t\r\n")
    form = FORM.fullmatch(trimmed)
    if form is None or CONTROL.search(trimmed):
        raise InvalidInput("url", "is not an http or https address")
    try:
        parsed = WhatwgUrl(trimmed)
    except ValueError:
        raise InvalidInput("url", "has no valid host or port") from None
    host = (parsed.host or "").removesuffix(".")
    if len(host) > MAX_NAME_LENGTH or not NAME.fullmatch(host):
        raise InvalidInput("url", "has no valid host")
    if not parsed.port:
        raise InvalidInput("url", "has a port that does not exist")
    return Url(
        parsed.scheme,
        host.strip("[]"),
        parsed.port,
        parsed.path or "/",
        parsed.query or "",
        form["user"] is not None,
    )


def is_tamper_proof(text: str) -> bool:
    """Return whether nobody on the way can change what an address returns: https, or on this machine."""
    try:
        url = parse_url(text)
    except InvalidInput:
        return False
    return url.scheme == "https" or url.host in LOOPBACK_HOSTS
