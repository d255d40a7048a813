"""Sets of spans of characters."""

from bisect import bisect_left
from dataclasses import field

from conspectus.deferred import dataclass


@dataclass(slots=True)
class Spans:
    """A set of half-open spans, ascending, that neither overlap nor touch."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def find_touching(self, start: int, end: int) -> slice:
        """Return the spans that overlap or touch [start, end)."""
        first = bisect_left(self.ends, start)
        last = first
        while last < len(self.starts) and self.starts[last] <= end:
            last += 1
        return slice(first, last)

    def count_uncovered(self, start: int, end: int) -> int:
        """Return the number of characters of [start, end) that no span covers."""
        near = self.find_touching(start, end)
        covered = zip(self.starts[near], self.ends[near], strict=True)
        return end - start - sum(min(e, end) - max(s, start) for s, e in covered)

    def find_cover_end(self, start: int) -> int:
        """Return the end of the span that covers or touches a position, or else the position."""
        index = bisect_left(self.ends, start)
        inside = index < len(self.starts) and self.starts[index] <= start
        return self.ends[index] if inside else start

    def add(self, start: int, end: int) -> None:
        """Add a span and merge it with spans that it overlaps or touches."""
        near = self.find_touching(start, end)
        if near.start < near.stop:
            start, end = min(start, self.starts[near.start]), max(end, self.ends[near.stop - 1])
        self.starts[near] = [start]
        self.ends[near] = [end]
