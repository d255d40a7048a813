"""How long a provider that is busy is asked again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from conspectus.errors import ProviderUnavailable

T = TypeVar("T")

BUSY: Final = frozenset({429, 503})
"""The answers that ask for patience. No answer at all, or a server's own fault, is left to the caller."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long: times in seconds, `attempts` in total; `sleep` and `chance` can be replaced.

    Answers with a status of `busy` ask for it.

    The wait doubles from `first_wait` up to `longest_wait`, shortened by chance to at least its half, so that
    many who were refused together do not come back together.
    """

    attempts: int = 5
    first_wait: float = 1.0
    longest_wait: float = 30.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    busy: frozenset[int] = BUSY

    def wait(self, attempt: int, retry_after: float | None) -> float:
        """Seconds after a failed attempt (0 is the first); what the provider asked for wins."""
        if retry_after is not None:
            return retry_after
        return min(self.longest_wait, self.first_wait * 2.0**attempt) * (0.5 + 0.5 * self.chance())

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, asking again while the provider says that it is busy.

        A provider that asks for more than the longest wait is not asked again: its error tells the caller.
        """
        attempt = 0
        while True:
            try:
                return await ask()
            except ProviderUnavailable as error:
                wait = self.wait(attempt, error.retry_after)
                attempt += 1
                if error.status not in self.busy or attempt >= self.attempts or wait > self.longest_wait:
                    raise
            await self.sleep(wait)
