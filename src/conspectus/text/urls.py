"""Parsing of web addresses, shared by all code that requests, checks or displays them.

Host names are normalized as browsers do (percent-encoding, Unicode, IDNA, all notations of numbers), so that
no other interpretation leads to another host. Ambiguous addresses are rejected.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias
from urllib.parse import quote, unquote, urljoin

import idna

from conspectus.errors import InvalidInput
from conspectus.text.late_patterns import re_pattern

Address: TypeAlias = IPv4Address | IPv6Address

FORM = re_pattern(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
AUTHORITY = re_pattern(r"(?:(?P<user>[^\\]*)@)?(?P<host>\[[^\[\]]*\]|[^:@\[\]\\]*)(?::(?P<port>[0-9]{0,5}))?")
NAME = re_pattern(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
NUMBER = re_pattern(r"0x[0-9a-f]*|[0-9]+")
CONTROL = re_pattern(r"[\x00-\x1f\x7f]")
MAX_NAME_LENGTH = 253
DEFAULT_PORTS = {"http": 80, "https": 443}
SAFE_CHARACTERS = "!$%&'()*+,-./:;=@_~[]|^"


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
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

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

    def joined(self, reference: str) -> "Url":
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
    place = AUTHORITY.fullmatch(form[2])
    if place is None:
        raise InvalidInput("url", "has no valid host")
    scheme = form[1].lower()
    port = int(place["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise InvalidInput("url", "has a port that does not exist")
    host = _normal_host(place["host"])
    path, query = _without_dots(_quoted(form[3] or "/")), _quoted(form[4] or "", "?")
    return Url(scheme, host, port, path, query, place["user"] is not None)


def _quoted(text: str, more: str = "") -> str:
    try:
        return quote(text, safe=SAFE_CHARACTERS + more)
    except UnicodeEncodeError:
        raise InvalidInput("url", "has invalid escaped characters") from None


def _without_dots(path: str) -> str:
    """Resolve `.` and `..` in a path, never above the root."""
    kept: list[str] = []
    folders = path.split("/")[1:]
    for place, name in enumerate(folders, 1):
        plain = name.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        if plain not in {".", ".."}:
            kept.append(name)
        elif place == len(folders):
            kept.append("")
    return "/" + "/".join(kept)


def _normal_host(host: str) -> str:
    """Return the host in its usual notation: an IP address or an ASCII name."""
    try:
        if host.startswith("["):
            return str(_version_6(host[1:-1]))
        name = _ascii_name(unquote(host, errors="strict"))
        if NUMBER.fullmatch(name.rpartition(".")[2]):
            return str(_version_4(name.split(".")))
    except ValueError:
        raise InvalidInput("url", "has no valid host") from None
    if len(name) > MAX_NAME_LENGTH or not NAME.fullmatch(name):
        raise InvalidInput("url", "has no valid host")
    return name


def _ascii_name(name: str) -> str:
    if name.isascii():
        return name.lower().removesuffix(".")
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError("too long")
    mapped = idna.uts46_remap(name, std3_rules=False, transitional=False).removesuffix(".")
    labels = [label if label.isascii() else idna.alabel(label).decode("ascii") for label in mapped.split(".")]
    return ".".join(labels)


def _version_6(text: str) -> IPv6Address:
    if "%" in text or not text.isascii():
        raise ValueError("IPv6 zones are not supported")
    return IPv6Address(text)


def _version_4(parts: Sequence[str]) -> IPv4Address:
    """Parse one to four numbers, decimal, octal or hexadecimal; the last one fills the remaining bytes."""
    numbers = [_number(part) for part in parts]
    *first, last = numbers
    if len(numbers) > 4 or any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        raise ValueError("not an address")
    return IPv4Address(sum(number << (24 - 8 * place) for place, number in enumerate(first)) + last)


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    if not part.isdigit():
        raise ValueError("not a number")
    return int(part, 8 if part.startswith("0") else 10)
