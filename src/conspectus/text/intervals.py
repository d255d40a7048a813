"""Intervals that belong together."""

from collections.abc import Sequence
from typing import Final

OVERLAP_SECONDS: Final = 0.1
"""Intervals that overlap for this long are joined, whatever the gap."""
GAP_SECONDS: Final = 4.0
"""Maximum gap between joined intervals."""


def runs(intervals: Sequence[tuple[float, float]], *, gap: float = GAP_SECONDS) -> list[list[int]]:
    """Group the indexes of intervals (start, end) that belong together, in the order of time.

    Intervals may be in any order and in any unit, if it is that of the gap.
    """
    groups: list[list[int]] = []
    latest = 0.0
    for index in sorted(range(len(intervals)), key=intervals.__getitem__):
        start, end = intervals[index]
        if groups and continues_interval(latest, start, gap=gap):
            groups[-1].append(index)
            latest = max(latest, end)
        else:
            groups.append([index])
            latest = end
    return groups


def continues_interval(end: float, start: float, *, gap: float = GAP_SECONDS) -> bool:
    """Return whether an interval that begins at `start` continues an earlier one that ended at `end`."""
    return end - start >= OVERLAP_SECONDS or start - end <= gap
