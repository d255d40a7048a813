"""Retention of memories: which are due by age or number, and the worker that deletes them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from conspectus.errors import InvalidInput
from conspectus.memory.scopes import MEMORIES, common_prefix, includes_scope, scope_of, source_name
from conspectus.model.filter import And, Eq, Filter, Not, Overlaps
from conspectus.model.ids import DocumentId
from conspectus.model.memory import PINNED, MemoryReceipt, MemorySelection, Retention, Scope
from conspectus.model.records import Document, Metadata
from conspectus.ports.jobs import Turn
from conspectus.streams.leadership import PeriodicTask
from conspectus.text.times import parse_instant

COUNTED = ("memories", "versions", "chunks", "vectors", "edges", "facts", "answers")
ANY = "*"
"""Stands for any agent in the address of a rule for one conversation. Quoted names never contain it."""


def check_retention(retention: Retention) -> Retention:
    """Validate a retention rule, which must have a limit. Raises InvalidInput."""
    if retention.days is None and retention.max_count is None:
        raise InvalidInput("days", "give days, max_count or both")
    return retention


def check_forgetting(what: MemorySelection) -> MemorySelection:
    """Validate a selection for deletion, which must use exactly one criterion. Raises InvalidInput."""
    ways = (what.ids or None, what.before, what.older_than_days, what.everything or None)
    if sum(way is not None for way in ways) != 1:
        raise InvalidInput("ids", "give exactly one of ids, before, older_than_days and everything")
    return what


def selection_filter(what: MemorySelection, now: datetime) -> Filter:
    """Return the filter of a selection for deletion, except for its ids."""
    parts: list[Filter] = [] if what.pinned else [Not(Eq((PINNED,), True))]
    if what.before is not None:
        parts.append(Overlaps(end=parse_instant(what.before)))
    if what.older_than_days is not None:
        parts.append(Overlaps(end=days_before(now, what.older_than_days)))
    return And(tuple(parts))


def days_before(now: datetime, days: float) -> datetime:
    """Return the instant `days` days before now, or the earliest possible instant."""
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def oldest(turns: Sequence[Document], *, before: datetime | None, beyond: int | None) -> list[DocumentId]:
    """Return the turns that are older than `before`, or beyond the newest `beyond`."""
    dated = [(turn.occurred.start, turn.id) for turn in turns if turn.occurred is not None]
    return [
        name
        for rank, (start, name) in enumerate(sorted(dated, reverse=True))
        if (beyond is not None and rank >= beyond) or (before is not None and start < before)
    ]


def strictest(retentions: Iterable[Retention]) -> Retention:
    """Combine rules for the same conversation; the strictest limits apply."""
    rules = list(retentions)
    days = [rule.days for rule in rules if rule.days is not None]
    maximum = [rule.max_count for rule in rules if rule.max_count is not None]
    return Retention(min(days, default=None), min(maximum, default=None))


def combine_rules(rules: Iterable[tuple[Scope, Retention]], memory_scope: Scope) -> Retention | None:
    """Return the combined rule for a conversation, or None if no rule applies."""
    matching = [retention for scope, retention in rules if includes_scope(scope, memory_scope)]
    return strictest(matching) if matching else None


def add_receipts(one: MemoryReceipt, other: MemoryReceipt) -> MemoryReceipt:
    """Add up two receipts."""
    counts = {name: getattr(one, name) + getattr(other, name) for name in COUNTED}
    return MemoryReceipt(**counts, ids=(*one.ids, *other.ids))


def counts_of(result: Metadata | None) -> dict[str, int]:
    """Return the counts of deleted items from the result of a job; 0 if a count is missing."""
    counts = {name: (result or {}).get(name) for name in COUNTED}
    return {name: number if isinstance(number, int) else 0 for name, number in counts.items()}


def rule_address(scope: Scope) -> str:
    """Return the address of a rule: the common prefix of its conversations, with `*` for any agent."""
    if scope.agent is None and scope.conversation is not None:
        user, _, conversation = source_name(scope).split("/")[1:]
        return "/".join((MEMORIES, user, ANY, conversation))
    return common_prefix(scope)


def read_from(begins: str) -> Scope:
    """Return the scope of a rule from its address. The inverse of `rule_address`."""
    kind, user, agent, conversation = (*begins.split("/"), "", "")[:4]
    return scope_of("/".join((kind, user, "" if agent == ANY else agent, conversation)))


FAULT_SECONDS: Final = 60.0
"""Seconds before a failed run is repeated."""


class RetentionWorker(PeriodicTask):
    """Applies retention rules in one process per store: the process that holds the lock."""

    def __init__(self, look: Callable[[], Awaitable[None]], *, turn: Turn, pause: float) -> None:
        super().__init__(turn, "carrying out retentions", look, pause=pause, again=FAULT_SECONDS)
