"""The requests of one sync: counted, spread over time, and bounded."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from conspectus.errors import RequestBudgetSpent
from conspectus.ports.web import Fetched, Fetcher

BURST_SECONDS: Final = 2.0
"""So many seconds' worth of requests may follow each other at once."""
BUSY_STATUSES: Final = frozenset({429, 503})
MAX_RETRY_AFTER_SECONDS: Final = 60.0


class MeteredFetcher:
    """A `Fetcher` with a token bucket of `per_second` requests (0: no limit) and a budget of requests.

    After a busy answer, the next request waits as long as its `Retry-After` says in seconds, at most a
    minute. `requests` counts what was sent, `waited_seconds` what was waited. `wait` sleeps for seconds.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        per_second: float,
        budget: int,
        wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher
        self._seconds_per_request = 1 / per_second if per_second else 0.0
        self._budget = budget
        self._wait = wait
        self._clock = clock
        self._next_at = clock() - BURST_SECONDS
        self._busy_until = clock()
        self.requests = 0
        self.waited_seconds = 0.0

    async def fetch(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Fetched:
        """Send a request as the other fetcher does. Raises RequestBudgetSpent once the budget is spent."""
        if self.requests >= self._budget:
            raise RequestBudgetSpent(self._budget)
        self.requests += 1
        await self._wait_for_turn()
        fetched = await self._fetcher.fetch(url, method=method, headers=headers, body=body)
        retry_after = fetched.headers.get("retry-after", "")
        if fetched.status in BUSY_STATUSES and retry_after.isdecimal():
            seconds = min(float(retry_after[:6]), MAX_RETRY_AFTER_SECONDS)
            self._busy_until = max(self._busy_until, self._clock() + seconds)
        return fetched

    async def _wait_for_turn(self) -> None:
        now = self._clock()
        self._next_at = max(self._next_at, now - BURST_SECONDS) + self._seconds_per_request
        delay = max(self._next_at, self._busy_until) - now
        if delay > 0:
            self.waited_seconds += delay
            await self._wait(delay)

    async def close(self) -> None:
        """Do nothing: the other fetcher stays open for whoever opened it."""
