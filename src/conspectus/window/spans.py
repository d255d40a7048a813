"""Character spans of one document that a window already shows."""

from bisect import bisect_left
from dataclasses import dataclass, field


@dataclass(slots=True)
class Spans:
    """Half-open spans that neither overlap nor touch, ascending."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def near(self, start: int, end: int) -> slice:
        """Which of them overlap or touch [start, end)."""
        first = bisect_left(self.ends, start)
        last = first
        while last < len(self.starts) and self.starts[last] <= end:
            last += 1
        return slice(first, last)

    def fresh(self, start: int, end: int) -> int:
        """How many characters of [start, end) none of them covers."""
        near = self.near(start, end)
        covered = zip(self.starts[near], self.ends[near], strict=True)
        return end - start - sum(min(e, end) - max(s, start) for s, e in covered)

    def covered_until(self, start: int) -> int:
        """The end of the span that covers or touches the position, else the position itself."""
        index = bisect_left(self.ends, start)
        inside = index < len(self.starts) and self.starts[index] <= start
        return self.ends[index] if inside else start

    def add(self, start: int, end: int) -> None:
        """Take in a span; those that it overlaps or touches become one with it."""
        near = self.near(start, end)
        if near.start < near.stop:
            start, end = min(start, self.starts[near.start]), max(end, self.ends[near.stop - 1])
        self.starts[near] = [start]
        self.ends[near] = [end]
