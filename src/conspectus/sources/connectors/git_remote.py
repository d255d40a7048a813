"""Addresses of Git repositories, checked before Git may open a connection."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, literal, resolve_name
from conspectus.sources.web.allowed_hosts import AllowedHosts
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
    """The address for git, the only protocol that it may use, and settings that pin the checked addresses."""

    address: str
    protocol: str
    settings: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def pinned(self) -> bool:
        """Whether git itself has to be pinned to the checked addresses."""
        return self.protocol == "https" and bool(self.settings)


def protocol_of(address: str, protocols: Collection[str]) -> str:
    """Return the protocol of an address. Raises InvalidInput for unsupported ones."""
    scheme = SCHEME.match(address)
    protocol = scheme[1].lower() if scheme else "file"
    is_path = scheme is None and address.startswith("/")
    if protocol not in PROTOCOLS or "\0" in address or not (scheme or is_path):
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if protocol not in protocols:
        raise InvalidInput("address", f"{protocol} is not allowed here")
    return protocol


async def check_remote(
    address: str, *, protocols: Collection[str], boundary: AddressPolicy, resolve: Resolve = resolve_name
) -> Remote:
    """Check an address for git.

    Raises InvalidInput for an invalid address, ForbiddenAddress if the policy forbids its host, and
    FetchFailed if the host cannot be resolved.
    """
    protocol = protocol_of(address, protocols)
    if protocol == "file":
        return Remote(_local_path(address), protocol)
    user = USER.fullmatch(urlsplit(address).netloc)
    if user is None or (protocol == "https" and user[1]):
        raise InvalidInput("address", "must not contain a password or, for https, a user name")
    hosts = AllowedHosts(boundary, resolve)
    url = parse_url(re.sub("^ssh:", "https:", address, flags=re.IGNORECASE))
    if protocol == "https":
        addresses = await hosts.resolve(url.host, url.port, shown=url.redacted)
        return Remote(str(url), protocol, _curl_settings(url, addresses))
    port = urlsplit(address).port or SSH_PORT
    addresses = await hosts.resolve(url.host, port, shown=url.redacted)
    return _ssh_remote(url, port, user[1], addresses[0])


def _curl_settings(url: Url, addresses: Sequence[str]) -> tuple[str, ...]:
    """Pin the checked address with a setting of curl: git would resolve the name again."""
    if literal(url.host) is not None:
        return ()
    places = ",".join(f"[{address}]" if ":" in address else address for address in addresses)
    return (f"http.curloptResolve={url.host}:{url.port}:{places}",)


def _ssh_remote(url: Url, port: int, user: str | None, address: str) -> Remote:
    """Pin the checked address. The host key is still looked up by name."""
    name = url.host if port == SSH_PORT else f"[{url.host}]:{port}"
    host = f"[{url.host}]" if ":" in url.host else url.host
    command = f"{SSH} -o HostName={address} -o 'HostKeyAlias={name}'"
    at = f"{user}@" if user else ""
    return Remote(
        f"ssh://{at}{host}:{port}{url.path}",
        "ssh",
        environment={"GIT_SSH_COMMAND": command, "GIT_SSH_VARIANT": "ssh"},
    )


def _local_path(address: str) -> str:
    """Return the path of a local repository."""
    path = address
    if SCHEME.match(address):
        parts = urlsplit(address)
        if parts.netloc not in {"", "localhost"}:
            raise InvalidInput("address", "a file:// address must not contain a host")
        path = unquote(parts.path)
    if "\0" in path or not Path(path).is_absolute():
        raise InvalidInput("address", "use https://, ssh://, file:// or an absolute path")
    if not Path(path).is_dir():
        raise FetchFailed(path, "is not a folder", passing=True)
    return path
