"""Failed sign-ins of an address."""

from dataclasses import replace

import pytest

from conspectus.settings import Settings
from conspectus.web.auth import FailureDelays
from conspectus.web.problem_details import Refused


@pytest.mark.parametrize("number", range(50))
async def test_the_allowance_does_not_depend_on_how_long_the_machine_runs(number: int) -> None:
    """The sum of a time and a minute is rounded where it passes a power of two."""
    settings = replace(Settings(), address_failures_per_minute=1, failure_delay_seconds=0)
    delays = FailureDelays(settings, monotonic=lambda: 8_192 - 60 + 1.1 * number + 1e-12)
    await delays.note("203.0.113.1")
    with pytest.raises(Refused):
        await delays.note("203.0.113.1")
    await delays.note("203.0.113.2")
