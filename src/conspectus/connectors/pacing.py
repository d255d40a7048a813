"""Requests of connectors at the pace that servers ask for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from conspectus.ports.web import Fetched, Fetcher

Wait: TypeAlias = Callable[[float], Awaitable[None]]

BUSY_STATUSES: Final = frozenset({429, 503})
MAX_ATTEMPTS: Final = 5
FIRST_WAIT_SECONDS: Final = 1.0
"""The wait after the first busy answer without `Retry-After`; it doubles with each attempt."""
MAX_WAIT_SECONDS: Final = 60.0


class PacedFetcher:
    """A `Fetcher` that waits and tries again while a server is busy: 429 and 503, five attempts in all.

    It waits as long as `Retry-After` says in seconds, at most a minute. Without it, it waits 1, 2, 4 and 8
    seconds. The last busy answer is returned. `wait` sleeps for seconds.
    """

    def __init__(self, fetcher: Fetcher, *, wait: Wait = asyncio.sleep) -> None:
        self._fetcher = fetcher
        self._wait = wait

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Fetched:
        """Send a request as the other fetcher does, which says what it raises."""
        fetched = await self._fetcher.fetch(url, method=method, headers=headers, body=body)
        for attempt in range(MAX_ATTEMPTS - 1):
            if fetched.status not in BUSY_STATUSES:
                break
            await self._wait(_seconds_to_wait(fetched, attempt))
            fetched = await self._fetcher.fetch(url, method=method, headers=headers, body=body)
        return fetched

    async def close(self) -> None:
        """Do nothing: the other fetcher stays open for whoever opened it."""


def _seconds_to_wait(fetched: Fetched, attempt: int) -> float:
    retry_after = fetched.headers.get("retry-after", "")
    if retry_after.isdecimal():
        return min(float(retry_after[:6]), MAX_WAIT_SECONDS)
    return FIRST_WAIT_SECONDS * float(2**attempt)
