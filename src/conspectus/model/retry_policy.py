"""Retries of requests to a busy provider."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from conspectus.errors import ProviderUnavailable

T = TypeVar("T")

BUSY: Final = frozenset({429, 503})
"""Statuses that allow a retry. The caller handles missing responses and server errors."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts and waits in seconds; `sleep` and `chance` can be replaced.

    Responses with a status in `busy` are retried. The wait doubles from `first_wait` up to `longest_wait` and
    is shortened randomly to at least half, so that clients that were refused together do not return together.
    """

    attempts: int = 5
    first_wait: float = 1.0
    max_wait: float = 30.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    busy: frozenset[int] = BUSY

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first).

        `retry_after` overrides them.
        """
        if retry_after is not None:
            return retry_after
        return min(self.max_wait, self.first_wait * 2.0**attempt) * (0.5 + 0.5 * self.chance())

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call until the provider is no longer busy, and return the result.

        If the provider requests more than `longest_wait`, its error is raised.
        """
        attempt = 0
        while True:
            try:
                return await ask()
            except ProviderUnavailable as error:
                wait = self.wait(attempt, error.retry_after)
                attempt += 1
                if error.status not in self.busy or attempt >= self.attempts or wait > self.max_wait:
                    raise
            await self.sleep(wait)
