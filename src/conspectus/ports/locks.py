"""Work that one of all processes does which have a store open."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias


class Lock(Protocol):
    """Whether it is this process's turn, for as long as the block of the turn lasts."""

    @property
    def fence(self) -> int:
        """A number that grows from one holder to the next, so that the next one's writes count for more."""
        ...

    def __bool__(self) -> bool:
        """Whether this process was given the turn."""
        ...

    async def confirm(self) -> None:
        """Raise TurnLost if another process may have the turn by now, as after this one stood still."""
        ...


Turn: TypeAlias = Callable[[], AbstractAsyncContextManager[Lock]]
"""Opens a block that has the turn, or not, and does not wait for it.

What runs in a block whose turn is lost is cancelled, and the block raises TurnLost; where nobody can say
whose turn it is, opening it raises StorageError.
"""

Turns: TypeAlias = Callable[[str], AbstractAsyncContextManager[Lock]]
"""Opens turns by the names of what is done in them."""
