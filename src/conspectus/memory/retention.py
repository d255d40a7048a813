"""Retention of memories: which are due by age or number, and the worker that deletes them."""

import math
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.memory.scopes import MEMORIES, beginning, holds, home_name, scope_of
from conspectus.model.filter import And, Eq, Filter, Not, Overlaps
from conspectus.model.memory import PINNED, MemoryReceipt, MemorySelection, Retention, Scope
from conspectus.model.records import Metadata
from conspectus.ports.jobs import Turn
from conspectus.streams.alert_worker import Leadership
from conspectus.text.times import parse_instant

MOST_DAYS = 365_000
MOST_MEMORIES = 1_000_000_000
COUNTED = ("memories", "versions", "chunks", "vectors", "edges")
ANY = "*"
"""Stands for any agent where a rule is for one conversation; no name is written so in addresses."""


def checked_retention(retention: Retention) -> Retention:
    """The retention, if it bounds anything. Raises InvalidInput."""
    if retention.days is None and retention.max_count is None:
        raise InvalidInput("days", "give days, max_count or both")
    if retention.days is not None:
        _require_days("days", retention.days)
    most = retention.max_count
    if most is not None and (isinstance(most, bool) or not isinstance(most, int)):
        raise InvalidInput("max_count", "must be a whole number")
    if most is not None and not 0 <= most <= MOST_MEMORIES:
        raise InvalidInput("max_count", f"must be from 0 to {MOST_MEMORIES}")
    return retention


def checked_forgetting(what: MemorySelection) -> MemorySelection:
    """What is to be forgotten, said in exactly one way. Raises InvalidInput."""
    ways = (what.ids or None, what.before, what.older_than_days, what.everything or None)
    if sum(each is not None for each in ways) != 1:
        raise InvalidInput("ids", "give exactly one of ids, before, older_than_days and everything")
    if what.older_than_days is not None:
        _require_days("older_than_days", what.older_than_days)
    return what


def meant(what: MemorySelection, now: datetime) -> Filter:
    """The filter of what is to be forgotten, where it is not given by ids."""
    parts: list[Filter] = [] if what.pinned else [Not(Eq((PINNED,), True))]
    if what.before is not None:
        parts.append(Overlaps(end=parse_instant(what.before)))
    if what.older_than_days is not None:
        parts.append(Overlaps(end=days_before(now, what.older_than_days)))
    return And(tuple(parts))


def days_before(now: datetime, days: float) -> datetime:
    """The instant so many days before now, or the first there is."""
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def strictest(retentions: Iterable[Retention]) -> Retention:
    """What several rules that hold for the same conversation come to."""
    rules = list(retentions)
    days = [each.days for each in rules if each.days is not None]
    most = [each.max_count for each in rules if each.max_count is not None]
    return Retention(min(days, default=None), min(most, default=None))


def holding(rules: Iterable[tuple[Scope, Retention]], home: Scope) -> Retention | None:
    """What holds for a conversation, if any rule does."""
    found = [retention for scope, retention in rules if holds(scope, home)]
    return strictest(found) if found else None


def added(one: MemoryReceipt, other: MemoryReceipt) -> MemoryReceipt:
    """Two receipts as one."""
    return MemoryReceipt(
        one.memories + other.memories,
        one.versions + other.versions,
        one.chunks + other.chunks,
        one.vectors + other.vectors,
        one.edges + other.edges,
        (*one.ids, *other.ids),
    )


def counts_of(result: Metadata | None) -> dict[str, int]:
    """What a job has counted of what is gone; nothing where it has counted nothing yet."""
    found = {name: (result or {}).get(name) for name in COUNTED}
    return {name: number if isinstance(number, int) else 0 for name, number in found.items()}


def written_for(scope: Scope) -> str:
    """How a rule says what it is for: as the names of its conversations begin, with `*` for any agent."""
    if scope.agent is None and scope.conversation is not None:
        user, _, conversation = home_name(scope).split("/")[1:]
        return "/".join((MEMORIES, user, ANY, conversation))
    return beginning(scope)


def read_from(begins: str) -> Scope:
    """The scope of a rule; the inverse of `written_for`."""
    kind, user, agent, conversation = (*begins.split("/"), "", "")[:4]
    return scope_of("/".join((kind, user, "" if agent == ANY else agent, conversation)))


def _require_days(field: str, days: float) -> None:
    number = not isinstance(days, bool) and isinstance(days, int | float)
    if not number or not math.isfinite(days) or not 0 <= days <= MOST_DAYS:
        raise InvalidInput(field, f"must be a number of days from 0 to {MOST_DAYS}")


FAULT_SECONDS: Final = 60.0
"""Seconds after which what could not be done is tried again."""


class RetentionWorker(Leadership):
    """Of all processes that have a store open, the one that has the turn looks after what is due."""

    def __init__(self, look: Callable[[], Awaitable[None]], *, turn: Turn, pause: float) -> None:
        super().__init__(turn, "carrying out retentions", again=FAULT_SECONDS)
        self._look = look
        self._between = pause

    async def _lead(self) -> None:
        """Look after what is due to the end, if it is this process's turn."""
        async with self._turn() as mine:
            while mine and not self._closing.is_set():
                await self._look()
                await self._pause(self._between)
