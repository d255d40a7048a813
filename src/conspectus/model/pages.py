"""Iteration over paginated lists."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, ParamSpec, Protocol, TypeVar


class Page(Protocol):
    """Part of a list, with the cursor of the next part (None: it is the last)."""

    @property
    def next(self) -> str | None:
        """The cursor of the next page."""
        ...


A = ParamSpec("A")
P = TypeVar("P", bound=Page)


async def pages(read: Callable[A, Awaitable[P]], /, *args: A.args, **kwargs: A.kwargs) -> AsyncIterator[P]:
    """Yield all pages of `read` in order; it accepts the cursor of a page as `after`."""
    reader: Any = read
    page: P = await reader(*args, **kwargs)
    yield page
    while page.next is not None:
        page = await reader(*args, **{**kwargs, "after": page.next})
        yield page
