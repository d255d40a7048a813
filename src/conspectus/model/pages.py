"""Iteration over paginated lists, and lists in portions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, ParamSpec, Protocol, TypeVar


class Page(Protocol):
    """Part of a list, with the cursor of the next part (None: it is the last)."""

    @property
    def next(self) -> str | None:
        """The cursor of the next page."""


A = ParamSpec("A")
T = TypeVar("T")
P = TypeVar("P", bound=Page)


async def pages(read: Callable[A, Awaitable[P]], /, *args: A.args, **kwargs: A.kwargs) -> AsyncIterator[P]:
    """Yield all pages of `read` in order; it accepts the cursor of a page as `after`."""
    reader: Any = read
    page: P = await reader(*args, **kwargs)
    yield page
    while page.next is not None:
        page = await reader(*args, **{**kwargs, "after": page.next})
        yield page


def portions(items: Iterable[T], size_of: Callable[[T], int], *, most: int, room: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `most`, whose sizes add up to at most `room`."""
    portion: list[T] = []
    size = 0
    for item in items:
        if portion and (len(portion) == most or size + size_of(item) > room):
            yield portion
            portion, size = [], 0
        portion.append(item)
        size += size_of(item)
    if portion:
        yield portion
