"""Requests of the command line to a server and its identity provider, answered by small JSON objects."""

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from conspectus.deferred import dataclass
from conspectus.errors import LoginFailed, ServerUnavailable
from conspectus.text.urls import is_tamper_proof

MAX_ANSWER_BYTES: Final = 1_000_000
RESOURCE_PATH: Final = "/.well-known/oauth-protected-resource"
ISSUER_PATH: Final = "/.well-known/openid-configuration"
DEVICE_CLIENT: Final = "conspectus_device_client_id"


@dataclass(frozen=True, slots=True)
class IssuerAnswer:
    """The status and the JSON object of an answer; one that is none is empty."""

    status: int
    document: Mapping[str, Any]

    @property
    def error(self) -> str:
        """The code of the error (RFC 6749, 5.2); empty without one."""
        error = self.document.get("error")
        return error if isinstance(error, str) else ""


async def request_json(
    http: httpx.AsyncClient, address: str, form: Mapping[str, str] | None = None
) -> IssuerAnswer:
    """Return the answer to a GET, or with a form to a POST. Raises ServerUnavailable."""
    method = "GET" if form is None else "POST"
    try:
        async with http.stream(
            method, address, data=form, headers={"Accept": "application/json"}, follow_redirects=False
        ) as response:
            body = await _read_body(response, address)
    except (httpx.HTTPError, httpx.InvalidURL) as fault:
        raise ServerUnavailable(address, str(fault) or type(fault).__name__) from fault
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = {}
    return IssuerAnswer(response.status_code, document if isinstance(document, dict) else {})


async def _read_body(response: httpx.Response, address: str) -> bytes:
    """Return the body of an answer. Raises ServerUnavailable for a large one."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise ServerUnavailable(address, f"the answer has more than {MAX_ANSWER_BYTES:,} bytes")
    return bytes(body)


async def read_resource(http: httpx.AsyncClient, server: str) -> Mapping[str, Any]:
    """Return what a server says of its identity provider. Raises LoginFailed or ServerUnavailable."""
    answer = await request_json(http, f"{server}{RESOURCE_PATH}")
    issuers = answer.document.get("authorization_servers")
    if answer.status != httpx.codes.OK or not isinstance(issuers, list) or not issuers:
        raise LoginFailed(
            f"{server} names no identity provider: its administrator sets CONSPECTUS_OIDC_ISSUER"
        )
    if answer.document.get("resource") != server:
        raise LoginFailed(
            f"{server} calls itself {answer.document.get('resource')!r:.200}: use that address, or let its"
            " administrator set CONSPECTUS_PUBLIC_ADDRESS"
        )
    return answer.document


async def read_issuer(http: httpx.AsyncClient, issuer: object) -> Mapping[str, Any]:
    """Return the metadata of an issuer. Raises LoginFailed or ServerUnavailable."""
    if not isinstance(issuer, str) or not is_tamper_proof(issuer):
        raise LoginFailed(f"the identity provider {issuer!r:.200} has no address with https")
    answer = await request_json(http, issuer.rstrip("/") + ISSUER_PATH)
    if answer.status != httpx.codes.OK or answer.document.get("issuer") != issuer:
        raise LoginFailed(
            f"{issuer} publishes no metadata of its own; its administrator checks CONSPECTUS_OIDC_ISSUER"
        )
    return answer.document


def read_address(metadata: Mapping[str, Any], name: str) -> str | None:
    """Return an address of the metadata; None if there is none that nobody on the way can change."""
    address = metadata.get(name)
    return address if isinstance(address, str) and is_tamper_proof(address) else None


def read_text(document: Mapping[str, Any], name: str) -> str:
    """Return a text that an answer must have, on one line. Raises LoginFailed."""
    text = document.get(name)
    if not isinstance(text, str) or not text or not text.isprintable():
        raise LoginFailed(f"the identity provider sent no `{name}`")
    return text
