"""Posts signed bodies to webhooks: the `Poster` port."""

import hashlib
import hmac
import ssl
from collections.abc import Mapping
from typing import Final

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, resolve_name
from conspectus.sources.web.allowed_connections import Connections
from conspectus.sources.web.http_client import HttpClient
from conspectus.text.urls import Url, parse_url

ID_HEADER: Final = "Conspectus-Id"
SIGNATURE_HEADER: Final = "Conspectus-Signature"
POST_CONNECTIONS: Final = 1_000
"""Maximum number of concurrent deliveries."""
PASSING: Final = frozenset({408, 425, 429})
"""Statuses that are retried, besides those of the server's own failures."""


class WebhookPoster(HttpClient):
    """The `Poster` port. With a `key`, bodies are signed with HMAC-SHA256 as `sha256=<hex>`.

    The address policy is checked at each delivery, because a name may resolve to an internal address by then.
    Redirects are not followed, because they could lead the content anywhere.
    """

    def __init__(
        self,
        boundary: AddressPolicy,
        *,
        key: str = "",
        seconds: float = 10.0,
        resolve: Resolve = resolve_name,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._boundary = boundary
        self._key = key.encode()
        connections = Connections(boundary, resolve=resolve)
        super().__init__(connections, seconds, certificates, maximum=POST_CONNECTIONS, max_idle=0)

    def check(self, url: str) -> None:
        """Raises InvalidInput for an invalid address, and ForbiddenAddress for one that is not allowed."""
        self._check(url)

    async def post(self, url: str, body: bytes, *, id: str) -> None:
        """Send JSON once. Raises FetchFailed unless the status is 2xx, and ForbiddenAddress."""
        target = self._check(url)
        address = _redact(target)
        headers = self._headers(target, body, id)
        async with self._in_time(address), self._request("POST", target, address, headers, body) as response:
            status = response.status
        if not 200 <= status < 300:
            passing = status in PASSING or status >= 500
            raise FetchFailed(address, f"answered HTTP {status}", status=status, passing=passing)

    def _check(self, text: str) -> Url:
        url = parse_url(text)
        if url.credentials:
            raise InvalidInput("webhook", "must not contain a user name or password")
        if not self._boundary.may_ask(url.host):
            raise ForbiddenAddress(_redact(url))
        return url

    def _headers(self, url: Url, body: bytes, id: str) -> Mapping[str, str]:
        headers = {
            "Host": url.authority,
            "User-Agent": "conspectus",
            "Accept": "*/*",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            ID_HEADER: id,
        }
        if self._key:
            headers[SIGNATURE_HEADER] = f"sha256={hmac.new(self._key, body, hashlib.sha256).hexdigest()}"
        return headers


def _redact(url: Url) -> str:
    """Return the address for messages, without path and query, which may be secret."""
    return f"{url.scheme}://{url.authority}"
