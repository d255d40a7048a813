"""The metadata of an issuer (OpenID Connect Discovery): fetched, checked, and kept for a while."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from conspectus.errors import FetchFailed, InvalidInput, TooLarge
from conspectus.ports.web import Fetched, Fetcher
from conspectus.text.urls import is_tamper_proof

METADATA_PATH: Final = "/.well-known/openid-configuration"
REFRESH_SECONDS: Final = 600.0
"""Age after which the metadata are fetched again."""
MIN_FETCH_INTERVAL: Final = 5.0
"""Seconds between two fetches, however many people sign in while the issuer is away."""


class IssuerFault(Exception):
    """The issuer published nothing usable; the message is a sentence for the operator."""


class IssuerMetadata:
    """The metadata of an issuer, fetched at the first use. Old ones are used while it is away."""

    def __init__(
        self, issuer: str, fetcher: Fetcher, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.issuer = issuer
        self._fetcher = fetcher
        self._monotonic = monotonic
        self._metadata: Mapping[str, Any] | None = None
        self._refresh_at = self._next_fetch = monotonic()
        self._fetching = asyncio.Lock()

    async def read(self) -> Mapping[str, Any]:
        """Return the metadata. Raises IssuerFault if there are none yet, and the issuer is away."""
        async with self._fetching:
            if self._monotonic() >= max(self._refresh_at, self._next_fetch):
                await self._refresh()
        if self._metadata is None:
            raise IssuerFault(f"{self.issuer} could not be reached a moment ago")
        return self._metadata

    async def _refresh(self) -> None:
        """Fetch the metadata, or keep the present ones. Raises IssuerFault if there are none."""
        now = self._monotonic()
        self._next_fetch = now + MIN_FETCH_INTERVAL
        try:
            self._metadata = await fetch_metadata(self._fetcher, self.issuer)
        except IssuerFault:
            if self._metadata is None:
                raise
        else:
            self._refresh_at = now + REFRESH_SECONDS


async def fetch_metadata(fetcher: Fetcher, issuer: str) -> Mapping[str, Any]:
    """Fetch the metadata of an issuer, and check that they are its own. Raises IssuerFault."""
    metadata = await fetch_json(fetcher, issuer.rstrip("/") + METADATA_PATH)
    if metadata.get("issuer") != issuer:
        raise IssuerFault(
            f"the metadata name the issuer {metadata.get('issuer')!r:.200}, and CONSPECTUS_OIDC_ISSUER is"
            f" {issuer!r}: both must be equal, to the last slash"
        )
    return metadata


def read_endpoint(metadata: Mapping[str, Any], name: str) -> str:
    """Return an address of the metadata. Raises IssuerFault if somebody on the way could change answers."""
    address = metadata.get(name)
    if not isinstance(address, str) or not is_tamper_proof(address):
        raise IssuerFault(f"the metadata have no `{name}` with https, which the issuer must publish")
    return address


async def fetch_json(fetcher: Fetcher, address: str) -> Mapping[str, Any]:
    """Fetch a JSON object. Raises IssuerFault."""
    try:
        response = await fetcher.fetch(address, headers={"Accept": "application/json"})
    except (FetchFailed, TooLarge, InvalidInput) as fault:
        reason = str(fault).removeprefix(f"{address}: ")
        raise IssuerFault(
            f"{address} cannot be fetched: {reason}. Correct CONSPECTUS_OIDC_ISSUER, or let the server reach"
            " that host"
        ) from fault
    if response.status != 200:
        raise IssuerFault(
            f"{address} answers with the status {response.status}; correct CONSPECTUS_OIDC_ISSUER"
        )
    return read_json(response)


def read_json(response: Fetched) -> Mapping[str, Any]:
    """Return the JSON object of a response. Raises IssuerFault."""
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise IssuerFault(f"{response.url} is no JSON object")
    return document
