"""Lists in pages and portions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.model.pages import pages, portions


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
