"""HTTP requests to the web within limits: the `Fetcher` and `Poster` ports.

Built on httpcore, the transport of httpx, because the checks belong to connections and responses. Proxies of
the environment and cookies are not used.
"""

import re
import ssl
from collections.abc import Mapping

import httpcore

from conspectus.errors import FetchFailed, InvalidInput
from conspectus.ports.web import Fetched
from conspectus.sources.web.address_policy import AddressPolicy, Resolve, resolve_name
from conspectus.sources.web.allowed_connections import Connections
from conspectus.sources.web.content_codings import Unpacker
from conspectus.sources.web.http_client import FetchLimits, HttpClient, HttpRequest, hold_to
from conspectus.text.urls import Url, parse_url

METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND"})
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
OURS = frozenset({
    "accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
CONNECTIONS = 100
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:+-]+)""", re.IGNORECASE | re.ASCII)


class WebFetcher(HttpClient):
    """The `Fetcher` port. `resolve` looks up names, `backend` connects to checked addresses."""

    def __init__(
        self,
        limits: FetchLimits,
        *,
        resolve: Resolve = resolve_name,
        backend: httpcore.AsyncNetworkBackend | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits
        boundary = AddressPolicy.from_entries(limits.allow)
        connections = Connections(boundary, resolve=resolve, below=backend)
        super().__init__(
            connections, limits.seconds, certificates, maximum=CONNECTIONS, max_idle=CONNECTIONS // 10
        )

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Fetched:
        """Send one request and follow its redirects. Any status is a response.

        Only POST, PUT and PATCH have a body.

        Raises InvalidInput for an invalid URL, method or header, ForbiddenAddress for an address that is not
        allowed, TooLarge for a response over a limit, and FetchFailed without a response.
        """
        if method.upper() not in METHODS:
            raise InvalidInput("method", f"must be one of {', '.join(sorted(METHODS))}")
        request = HttpRequest(method.upper(), _check_url(url), _check_headers(headers or {}), body)
        async with self._in_time(request.url.redacted):
            return await self._follow(request)

    async def _follow(self, request: HttpRequest) -> Fetched:
        for _ in range(self._limits.max_redirects + 1):
            answer = await self._answer(request)
            location = answer.headers.get("location")
            if answer.status not in REDIRECTS or not location:
                return answer
            request = _next(request, answer.status, location)
        reason = f"more than {self._limits.max_redirects} redirects"
        raise FetchFailed(request.url.redacted, reason)

    async def _answer(self, request: HttpRequest) -> Fetched:
        url, body = request.url, request.body if request.method in WITH_BODY else None
        async with self._request(request.method, url, url.redacted, _send(request), body) as response:
            headers: dict[str, str] = {}
            for raw_name, raw_value in response.headers:
                name, value = raw_name.decode("latin-1").lower(), _header_text(raw_value)
                if not name.startswith("set-cookie"):
                    headers[name] = f"{headers[name]}, {value}" if name in headers else value
            moved = response.status in REDIRECTS and "location" in headers
            empty = moved or request.method == "HEAD"
            content = b"" if empty else await self._body(response, headers)
        media_type = headers.get("content-type", "")
        charset = CHARSET.search(media_type)
        return Fetched(
            url=str(url),
            status=response.status,
            content_type=media_type.split(";")[0].split(",")[0].strip().lower(),
            charset=charset[1].lower() if charset else None,
            body=content,
            headers=headers,
        )

    async def _body(self, response: httpcore.Response, headers: Mapping[str, str]) -> bytes:
        limit = self._limits.max_bytes
        announced = headers.get("content-length", "")
        hold_to(limit, int(announced[:20]) if announced.isdecimal() else 0)
        codings = headers.get("content-encoding", "").lower().split(",")
        unpacker = Unpacker([coding.strip() for coding in codings], limit)
        pieces, size = [], 0
        async for piece in response.aiter_stream():
            size += len(piece)
            hold_to(limit, size)
            pieces.append(unpacker.feed(piece))
        if not unpacker.complete:
            raise httpcore.RemoteProtocolError("the compressed content ends too early")
        return b"".join(pieces)


def _check_url(text: str) -> Url:
    url = parse_url(text)
    if url.credentials:
        raise InvalidInput("url", "must not contain a user name or password; give an Authorization header")
    return url


def _check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Validate headers. Error messages never contain their values."""
    for name, value in headers.items():
        if not TOKEN.fullmatch(name):
            raise InvalidInput("headers", f"{name[:80]!r} cannot be the name of a header")
        if name.lower() in OURS:
            raise InvalidInput("headers", f"{name!r} cannot be set")
        if not VALUE.fullmatch(value):
            raise InvalidInput(
                "headers", f"the value of {name!r} has characters that are not allowed in headers"
            )
    return dict(headers)


def _next(request: HttpRequest, status: int, location: str) -> HttpRequest:
    try:
        following = request.redirect(status, location)
    except InvalidInput:
        following = None
    if following is None or following.url.credentials:
        raise FetchFailed(
            request.url.redacted, "redirects to an address that cannot be requested", status=status
        )
    return following


def _send(request: HttpRequest) -> Mapping[str, str]:
    usual = {"user-agent": "conspectus", "accept": "*/*"}
    header_names = {name.lower() for name in request.headers}
    left = {name: value for name, value in usual.items() if name not in header_names}
    return {"Host": request.url.authority, "Accept-Encoding": "gzip, deflate", **left, **request.headers}


def _header_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
