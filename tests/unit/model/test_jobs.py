"""Waits between attempts, and rates of jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import ProviderUnavailable
from conspectus.model.jobs import JobRates, safe_rate
from conspectus.model.retries import BUSY, RetryPolicy


class Vendor:
    """Refuses with these errors in turn, and then answers; it notes how long was waited."""

    def __init__(self, *errors: ProviderUnavailable) -> None:
        self.errors = list(errors)
        self.calls = 0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def ask(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    def policy(self, **fields: object) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, chance=lambda: 1.0, **fields)  # type: ignore[arg-type]


def busy(status: int | None = 429, retry_after: float | None = None) -> ProviderUnavailable:
    return ProviderUnavailable("vendor", "is busy", status=status, retry_after=retry_after)


async def test_waits_double_up_to_the_longest() -> None:
    vendor = Vendor(*(busy() for _ in range(5)))
    assert await vendor.policy(attempts=6, first_wait=1.0, max_wait=5.0).retry(vendor.ask) == "answer"
    assert vendor.waits == [1.0, 2.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(("attempts", "answers"), [(1, False), (2, False), (3, True), (9, True)])
async def test_there_are_as_many_attempts_as_the_policy_says(attempts: int, answers: bool) -> None:
    vendor = Vendor(busy(), busy(503))
    if answers:
        assert await vendor.policy(attempts=attempts).retry(vendor.ask) == "answer"
    else:
        with pytest.raises(ProviderUnavailable):
            await vendor.policy(attempts=attempts).retry(vendor.ask)
    assert vendor.calls == min(attempts, 3)
    assert len(vendor.waits) == vendor.calls - 1


@pytest.mark.parametrize("status", [None, 200, 400, 404, 500, 502, 504])
async def test_only_a_busy_provider_is_asked_again(status: int | None) -> None:
    assert status not in BUSY
    vendor = Vendor(busy(status))
    with pytest.raises(ProviderUnavailable):
        await vendor.policy().retry(vendor.ask)
    assert (vendor.calls, vendor.waits) == (1, [])


async def test_a_provider_says_how_long_to_wait_and_not_too_long() -> None:
    vendor = Vendor(busy(retry_after=0.0), busy(retry_after=5.0))
    assert await vendor.policy(max_wait=5.0).retry(vendor.ask) == "answer"
    assert vendor.waits == [0.0, 5.0]
    vendor = Vendor(busy(retry_after=5.5))
    with pytest.raises(ProviderUnavailable):
        await vendor.policy(max_wait=5.0).retry(vendor.ask)
    assert vendor.waits == []


@given(st.integers(0, 40), st.floats(0, 1))
def test_a_wait_is_shortened_by_half_at_most(attempt: int, chance: float) -> None:
    full_wait = RetryPolicy(chance=lambda: 1.0).wait(attempt, None)
    assert full_wait == min(30.0, 2.0**attempt)
    assert full_wait / 2 <= RetryPolicy(chance=lambda: chance).wait(attempt, None) <= full_wait
    assert RetryPolicy(chance=lambda: chance).wait(attempt, 7.0) == 7.0


def test_rates_are_in_percent_of_the_finished() -> None:
    assert (safe_rate(0, 0), safe_rate(5, 0), safe_rate(0, 3)) == (0.0, 0.0, 0.0)
    assert (safe_rate(1, 3), safe_rate(2, 3), safe_rate(3, 3)) == (33.3, 66.7, 100.0)
    assert (JobRates(8, 2, 1).failure_rate, JobRates(8, 2, 1).retry_rate) == (25.0, 12.5)
