"""Failed authentications of each network address, counted by this process."""

import asyncio
import math
import time
from collections import OrderedDict
from typing import Final

from conspectus.settings import Settings
from conspectus.web.problem_details import refuse

AGAIN: Final = "Retry-After"
MINUTE: Final = 60.0
REMEMBERED: Final = 10_000


class Failures:
    """Answers late once an address has failed too often. A valid key is never refused for what others did."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.address_failures_per_minute
        self._delay = settings.failure_delay_seconds
        self._used_until: OrderedDict[str, float] = OrderedDict()

    async def note(self, address: str) -> None:
        """Count a failure. Raises Refused, after a pause, where there were too many."""
        if not self._most:
            return
        now = time.monotonic()
        used_until = max(self._used_until.get(address, now), now) + MINUTE / self._most
        if used_until - now > MINUTE:
            await asyncio.sleep(self._delay)
            wait = str(math.ceil(MINUTE / self._most))
            refuse(
                429,
                f"too many requests of this address had no valid key; ask again in {wait} s",
                **{AGAIN: wait},
            )
        self._used_until[address] = used_until
        self._used_until.move_to_end(address)
        if len(self._used_until) > REMEMBERED:
            self._used_until.popitem(last=False)
