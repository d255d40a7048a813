"""Requests of an API key in a minute, counted by processes that share one quota."""

import asyncio
import time
from collections import OrderedDict
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from conspectus.deferred import dataclass
from conspectus.errors import RateLimited
from conspectus.ports.jobs import RateCounters

LEASES_PER_MINUTE: Final = 20
"""About how many times a minute a process leases more of a key's quota."""
MAX_LEASES: Final = 10_000
"""Keys whose lease a process remembers."""


@dataclass(slots=True)
class QuotaLease:
    """The requests of a key that this process may still answer until the minute is over."""

    remaining: int
    until: float
    is_exhausted: bool
    """Whether the quota of the key is used up, in all processes."""

    @property
    def is_conclusive(self) -> bool:
        """Whether the next request can be answered or refused without asking the store."""
        return time.monotonic() < self.until and (self.is_exhausted or self.remaining > 0)


class Rates:
    """Refuses requests of keys that reached their limit. A `maximum` of 0 means no limit."""

    def __init__(self, app: ASGIApp, rate_counters: RateCounters, maximum: int) -> None:
        self._app = app
        self._rate_counters = rate_counters
        self._maximum = maximum
        self._step = quota_step(maximum)
        self._leases: OrderedDict[str, QuotaLease] = OrderedDict()
        self._leasing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if its key may have another one. Raises RateLimited."""
        person = scope.get("state", {}).get("person")
        if self._maximum and person is not None and person.credential is not None:
            await self._count_request(person.credential)
        await self._app(scope, receive, send)

    async def _count_request(self, key: str) -> None:
        lease = self._leases.get(key)
        if lease is None or not lease.is_conclusive:
            async with self._leasing:
                lease = self._leases.get(key)
                if lease is None or not lease.is_conclusive:
                    lease = await self._lease_quota(key)
        if lease.is_exhausted:
            raise RateLimited(self._maximum, retry_after=max(lease.until - time.monotonic(), 1.0))
        lease.remaining -= 1

    async def _lease_quota(self, key: str) -> QuotaLease:
        count = await self._rate_counters.take(f"key {key}", self._step, maximum=self._maximum)
        remaining = self._step if count.granted else 0
        lease = QuotaLease(remaining, time.monotonic() + count.seconds, is_exhausted=not count.granted)
        self._leases[key] = lease
        self._leases.move_to_end(key)
        if len(self._leases) > MAX_LEASES:
            self._leases.popitem(last=False)
        return lease


def quota_step(maximum: int) -> int:
    """Return the largest divisor of the quota that is at most 1/LEASES_PER_MINUTE of it, at least 1."""
    steps = range(1, maximum // LEASES_PER_MINUTE + 1)
    return max((step for step in steps if maximum % step == 0), default=1)
