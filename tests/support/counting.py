"""Statements and transactions of the connections of this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine as Database
from sqlalchemy import event


@dataclass
class Counted:
    statements: int = 0
    transactions: int = 0


@contextmanager
def counting() -> Iterator[Counted]:
    """Count what any connection of this process does in the block."""
    counted = Counted()

    def execute(*_: Any) -> None:
        counted.statements += 1

    def begin(*_: Any) -> None:
        counted.transactions += 1

    event.listen(Database, "before_cursor_execute", execute)
    event.listen(Database, "begin", begin)
    try:
        yield counted
    finally:
        event.remove(Database, "before_cursor_execute", execute)
        event.remove(Database, "begin", begin)
