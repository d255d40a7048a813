"""Statements that SQLAlchemy compiled for a store, for all stores of the process with the same driver.

Compiling the statements of a new store takes longer than running them.
"""

from functools import cache
from typing import Any, Final

from sqlalchemy import Compiled, Dialect
from sqlalchemy.util import LRUCache

MAX_STATEMENTS: Final = 1_000
"""Number of compiled statements that stay when older ones are dropped."""


class CompiledStatements(LRUCache[Any, Compiled]):
    """A `compiled_cache` that several engines share.

    A key of SQLAlchemy has the dialect of the engine. Each engine has its own, but all of a class compile
    alike: what they learn from their databases changes none of our statements.
    """

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        """Return the compiled statement of a key of SQLAlchemy."""
        return super().get(_shared_key(key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Compiled) -> None:
        super().__setitem__(_shared_key(key), compiled)


@cache
def compiled_statements() -> CompiledStatements:
    """Return the compiled statements of this process."""
    return CompiledStatements(MAX_STATEMENTS)


def _shared_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key with the class of the dialect in place of the dialect."""
    return tuple(type(part) if isinstance(part, Dialect) else part for part in key)
