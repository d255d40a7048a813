"""How much each of many may have in a minute, whichever process gives it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RateCount:
    """Whether there was as much left as was asked for, and for how many seconds the minute goes on."""

    granted: bool
    seconds: float


class RateCounters(Protocol):
    """The counts of a store; the minutes are those of its clock."""

    async def take(self, name: str, count: int, *, most: int) -> RateCount:
        """Take so much of what a name may have this minute: all of it, or nothing."""
        ...
