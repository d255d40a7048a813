"""Where git may be sent: which protocols, which hosts, and pinned to the addresses that were checked."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, literal, resolve_name
from conspectus.text.urls import Url, parse_url

PROTOCOLS = ("https", "ssh", "file")
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
USER = re.compile(r"(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?[^@]*")
SSH_PORT = 22
SSH = (
    "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ProxyCommand=none -o ProxyJump=none "
    "-o ClearAllForwardings=yes -o PermitLocalCommand=no -o ForwardAgent=no -o ConnectTimeout=30"
)


@dataclass(frozen=True, slots=True)
class Remote:
    """An address for git, the only protocol it may use, and settings that hold it to what was checked."""

    address: str
    protocol: str
    settings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def pinned(self) -> bool:
        """Whether git itself must see to it that a name leads to the checked addresses."""
        return self.protocol == "https" and bool(self.settings)


def local_or_remote(address: str, protocols: Collection[str]) -> str:
    """The protocol of an address. Raises InvalidInput for one that cannot be used here."""
    scheme = SCHEME.match(address)
    protocol = scheme[1].lower() if scheme else "file"
    if protocol not in PROTOCOLS or (scheme is None and not address.startswith("/")):
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if protocol not in protocols:
        raise InvalidInput("address", f"{protocol} is not allowed here")
    return protocol


async def checked(
    address: str, *, protocols: Collection[str], boundary: AddressPolicy, resolve: Resolve = resolve_name
) -> Remote:
    """The address as git may be given it.

    Raises InvalidInput for one that cannot be used, ForbiddenAddress where its host must not be asked, and
    FetchFailed where the host is not known.
    """
    protocol = local_or_remote(address, protocols)
    if protocol == "file":
        return Remote(_folder(address), protocol)
    user = USER.fullmatch(urlsplit(address).netloc)
    if user is None or (protocol == "https" and user[1]):
        raise InvalidInput("address", "must not hold a password, nor for https a user name")
    url = parse_url(re.sub("^ssh:", "https:", address, flags=re.IGNORECASE))
    if protocol == "https":
        addresses = await _resolved(url, url.port, boundary, resolve)
        return Remote(str(url), protocol, _curl(url, addresses))
    port = urlsplit(address).port or SSH_PORT
    addresses = await _resolved(url, port, boundary, resolve)
    return _ssh(url, port, user[1], addresses[0])


async def _resolved(url: Url, port: int, boundary: AddressPolicy, resolve: Resolve) -> Sequence[str]:
    """The addresses of the host, every one of which may be asked."""
    if not boundary.may_ask(url.host):
        raise ForbiddenAddress(url.shown)
    try:
        found = [url.host] if literal(url.host) is not None else await resolve(url.host, port)
    except OSError as fault:
        raise FetchFailed(url.shown, fault.strerror or "the host is not known", passing=True) from fault
    if not found:
        raise FetchFailed(url.shown, "the host is not known", passing=True)
    if not all(boundary.admits(url.host, ip_address(each)) for each in found):
        raise ForbiddenAddress(url.shown)
    return found


def _curl(url: Url, addresses: Sequence[str]) -> tuple[str, ...]:
    """git looks the name up again, so it is told the answer."""
    if literal(url.host) is not None:
        return ()
    places = ",".join(f"[{each}]" if ":" in each else each for each in addresses)
    return (f"http.curloptResolve={url.host}:{url.port}:{places}",)


def _ssh(url: Url, port: int, user: str | None, address: str) -> Remote:
    """The key of the host is still looked up under its name."""
    name = url.host if port == SSH_PORT else f"[{url.host}]:{port}"
    host = f"[{url.host}]" if ":" in url.host else url.host
    command = f"{SSH} -o HostName={address} -o 'HostKeyAlias={name}'"
    at = f"{user}@" if user else ""
    return Remote(
        f"ssh://{at}{host}:{port}{url.path}",
        "ssh",
        environment={"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"},
    )


def _folder(address: str) -> str:
    """The path of a local repository."""
    path = address
    if SCHEME.match(address):
        parts = urlsplit(address)
        if parts.netloc not in {"", "localhost"}:
            raise InvalidInput("address", "a file:// address names no host")
        path = unquote(parts.path)
    if "\0" in path or not Path(path).is_absolute():
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if not Path(path).is_dir():
        raise FetchFailed(path, "is not a folder", passing=True)
    return path
