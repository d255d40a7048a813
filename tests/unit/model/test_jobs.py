"""Waits between attempts, lists in pages and portions, and rates of jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import ProviderUnavailable
from conspectus.model.ids import is_stable_id, is_uuid
from conspectus.model.jobs import BUSY, JobRates, RetryPolicy, safe_rate
from conspectus.model.pages import pages, portions
from conspectus.model.trust import HIGHEST, ORIGINS, highest_in, least, least_trusted, origin_in
from conspectus.text.hashing import stable_id


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


@dataclass(frozen=True)
class Part:
    items: tuple[int, ...]
    next: str | None


class Listing:
    """Numbers in pages of two; a cursor is the place after a page."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.calls: list[tuple[str, str | None]] = []

    async def read(self, name: str, *, after: str | None = None) -> Part:
        self.calls.append((name, after))
        start = int(after or 0)
        end = min(start + 2, self.count)
        return Part(tuple(range(start, end)), str(end) if end < self.count else None)


@pytest.mark.parametrize(
    ("count", "expected"), [(0, [()]), (1, [(0,)]), (2, [(0, 1)]), (5, [(0, 1), (2, 3), (4,)])]
)
async def test_pages_are_read_to_the_last(count: int, expected: list[tuple[int, ...]]) -> None:
    listing = Listing(count)
    assert [page.items async for page in pages(listing.read, "x")] == expected
    assert {name for name, _ in listing.calls} == {"x"}


async def test_pages_go_on_after_a_cursor_and_no_page_is_read_ahead() -> None:
    listing = Listing(6)
    read_pages = pages(listing.read, "x", after="2")
    assert (await anext(read_pages)).items == (2, 3)
    assert listing.calls == [("x", "2")]
    assert [page.items async for page in read_pages] == [(4, 5)]


@given(st.lists(st.integers(0, 9)), st.integers(1, 4), st.integers(0, 20))
def test_portions_are_the_items_within_both_limits(sizes: list[int], most: int, room: int) -> None:
    size_portions = list(portions(sizes, lambda size: size, most=most, room=room))
    assert [size for portion in size_portions for size in portion] == sizes
    assert all(1 <= len(portion) <= most for portion in size_portions)
    assert all(sum(portion) <= room or len(portion) == 1 for portion in size_portions)
    for before, after in pairwise(size_portions):
        assert len(before) == most or sum(before) + after[0] > room


def test_no_more_is_taken_than_a_portion_needs() -> None:
    def endless() -> Iterator[int]:
        number = 0
        while True:
            yield (number := number + 1)

    assert next(portions(endless(), lambda _: 1, most=3, room=100)) == [1, 2, 3]


def test_rates_are_in_percent_of_the_finished() -> None:
    assert (safe_rate(0, 0), safe_rate(5, 0), safe_rate(0, 3)) == (0.0, 0.0, 0.0)
    assert (safe_rate(1, 3), safe_rate(2, 3), safe_rate(3, 3)) == (33.3, 66.7, 100.0)
    assert (JobRates(8, 2, 1).failure_rate, JobRates(8, 2, 1).retry_rate) == (25.0, 12.5)


@pytest.mark.parametrize(
    ("name", "uuid", "stable"),
    [
        (stable_id("x"), True, True),
        (stable_id("x").upper(), True, True),
        ("0b9e7a3c-1f2d-4c5e-9a7b-3d2f1e0c9b8a", True, False),
        ("0b9e7a3c1f2d5c5e9a7b3d2f1e0c9b8a", False, False),
        ("{0b9e7a3c-1f2d-5c5e-9a7b-3d2f1e0c9b8a}", False, False),
        ("0b9e7a3c-1f2d-5c5e-9a7b-3d2f1e0c9b8a\n", False, False),
        ("0b9e7a3g-1f2d-5c5e-9a7b-3d2f1e0c9b8a", False, False),
        ("", False, False),
    ],
)
def test_ids_have_the_form_of_a_uuid_and_those_of_sources_a_version(
    name: str, uuid: bool, stable: bool
) -> None:
    assert (is_uuid(name), is_stable_id(name)) == (uuid, stable)


@pytest.mark.parametrize(
    ("kind", "role", "origin"),
    [
        ("manual", None, "user"),
        ("manual", "user", "user"),
        ("manual", "", "user"),
        ("manual", "Assistant", "agent"),
        ("manual", "MODEL", "agent"),
        ("manual", "function", "tool"),
        ("web", None, "web"),
        ("web", "assistant", "web"),
        ("wiki", None, "import"),
        ("wiki", "tool", "tool"),
    ],
)
def test_a_text_comes_from_the_least_trusted_of_its_source_and_role(
    kind: str, role: str | None, origin: str
) -> None:
    assert origin_in(kind, role) == origin


def test_without_a_limit_everything_is_trusted() -> None:
    assert (least(), least(None), least_trusted(), least_trusted(None)) == (
        "trusted",
        "trusted",
        "user",
        "user",
    )
    assert least("standard", None, "quarantined", "untrusted") == "quarantined"
    assert least_trusted("tool", "web") == "tool"
    assert set(HIGHEST) == set(ORIGINS)
    assert [highest_in(kind) for kind in ("channel", "stream", "manual", "memory")] == [
        "standard", "standard", "trusted", "trusted",
    ]  # fmt: skip
