"""How attempts are repeated."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from conspectus.deferred import dataclass
from conspectus.errors import ProviderUnavailable

T = TypeVar("T")

BUSY: Final = frozenset({429, 503})
"""Statuses that allow a retry. The caller handles missing responses and server errors."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of attempts and waits in seconds; `sleep` and `chance` can be replaced.

    Responses with a status in `busy` are retried, and invalid ones `invalid_attempts` times in all. The wait
    doubles from `first_wait` up to `max_wait` and is shortened randomly to at least half, so that clients
    that were refused together do not return together.
    """

    attempts: int = 5
    first_wait: float = 1.0
    max_wait: float = 30.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    busy: frozenset[int] = BUSY
    invalid_attempts: int = 2

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after a failed attempt (0 is the first).

        `retry_after` overrides them.
        """
        if retry_after is not None:
            return retry_after
        return min(self.max_wait, self.first_wait * 2.0**attempt) * (0.5 + 0.5 * self.chance())

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call until the provider is no longer busy and answers properly, and return the result.

        If the provider requests more than `max_wait`, its error is raised.
        """
        attempt = 0
        while True:
            try:
                return await ask()
            except ProviderUnavailable as error:
                wait = self.wait(attempt, error.retry_after)
                attempt += 1
                if attempt >= self._attempts_after(error) or wait > self.max_wait:
                    raise
            await self.sleep(wait)

    def _attempts_after(self, error: ProviderUnavailable) -> int:
        """Return how many attempts an error allows."""
        if error.status in self.busy:
            return self.attempts
        if error.verdict == "answer":
            return min(self.invalid_attempts, self.attempts)
        return 1
