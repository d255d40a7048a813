"""The public keys of an issuer, as its metadata publishes them (OpenID Connect Discovery, RFC 7517)."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from conspectus.ports.web import Fetcher
from conspectus.providers.issuer_metadata import IssuerFault, fetch_json, fetch_metadata, read_endpoint

REFRESH_SECONDS: Final = 600.0
"""Age after which keys are fetched again, while the present ones are used."""
MIN_FETCH_INTERVAL: Final = 30.0
"""Seconds between two fetches, however many tokens name unknown keys."""
MAX_KEYS: Final = 100
MAX_KEY_ID: Final = 256
KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})
"""Kinds of keys of which one half is public."""

logger = logging.getLogger(__name__)


class IssuerKeys:
    """Keys of an issuer by their id. They are kept for `max_stale_seconds` while the issuer is away."""

    def __init__(
        self,
        issuer: str,
        fetcher: Fetcher,
        *,
        max_stale_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer = issuer
        self._fetcher = fetcher
        self._max_stale_seconds = max_stale_seconds
        self._monotonic = monotonic
        self._keys: Mapping[str, Mapping[str, Any]] = {}
        self._fetched: float | None = None
        self._next_fetch = monotonic()
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, key_id: str) -> Mapping[str, Any] | None:
        """Return the key of that id. An unknown id has the keys fetched, unless they just were."""
        age = self._age()
        if age <= self._max_stale_seconds and key_id in self._keys:
            if age > REFRESH_SECONDS:
                self._begin_fetch()
            return self._keys[key_id]
        fetching = self._begin_fetch()
        if fetching is not None:
            await asyncio.shield(fetching)
        return self._keys.get(key_id) if self._age() <= self._max_stale_seconds else None

    @property
    def has_keys(self) -> bool:
        """Whether there are keys that are not too old."""
        return self._age() <= self._max_stale_seconds

    async def load(self) -> Mapping[str, Mapping[str, Any]]:
        """Fetch the metadata and the keys. Raises IssuerFault."""
        metadata = await fetch_metadata(self._fetcher, self._issuer)
        address = read_endpoint(metadata, "jwks_uri")
        return read_keys(await fetch_json(self._fetcher, address))

    async def close(self) -> None:
        """Stop fetching, and release connections."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)
        await self._fetcher.close()

    def _age(self) -> float:
        return float("inf") if self._fetched is None else self._monotonic() - self._fetched

    def _begin_fetch(self) -> asyncio.Task[None] | None:
        """Return the fetch that is running, or a new one; None if it is too early for one."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._monotonic() < self._next_fetch:
            return None
        self._next_fetch = self._monotonic() + MIN_FETCH_INTERVAL
        self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        """Replace the keys, or keep the present ones if the issuer publishes nothing usable."""
        try:
            self._keys = await self.load()
        except IssuerFault as fault:
            logger.warning("issuer_keys_unavailable reason=%(reason)s", {"reason": str(fault)})
        else:
            self._fetched = self._monotonic()


def read_keys(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the public keys for signatures by their id. Raises IssuerFault if there is none.

    An id that two of them share is left out: nobody could say which one is meant.
    """
    listed = document.get("keys")
    keys: Sequence[Any] = listed[:MAX_KEYS] if isinstance(listed, list) else ()
    usable = [key for key in keys if isinstance(key, dict) and _is_for_signatures(key)]
    counts = Counter(key["kid"] for key in usable)
    by_id = {key["kid"]: key for key in usable if counts[key["kid"]] == 1}
    if not by_id:
        raise IssuerFault("the issuer publishes no key for signatures that has a `kid` of its own")
    return by_id


def _is_for_signatures(key: Mapping[str, Any]) -> bool:
    key_id, operations = key.get("kid"), key.get("key_ops", ["verify"])
    return (
        isinstance(key_id, str)
        and 0 < len(key_id) <= MAX_KEY_ID
        and key.get("kty") in KEY_TYPES
        and key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        and "d" not in key
    )
