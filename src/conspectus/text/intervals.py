"""Stretches of time that lie close together."""

from collections.abc import Sequence
from typing import Final

OVERLAP_SECONDS: Final = 0.1
"""Stretches that overlap for so long are one, whatever gap is allowed."""
GAP_SECONDS: Final = 4.0
"""Stretches with no more than so much between them are one."""


def runs(stretches: Sequence[tuple[float, float]], *, gap: float = GAP_SECONDS) -> list[list[int]]:
    """The places of stretches (start, end) that belong together, run by run, in the order of time.

    The order in which they are given does not matter, nor does the unit of time, if it is that of the gap.
    """
    found: list[list[int]] = []
    latest = 0.0
    for place in sorted(range(len(stretches)), key=stretches.__getitem__):
        start, end = stretches[place]
        if found and belongs(latest, start, gap=gap):
            found[-1].append(place)
            latest = max(latest, end)
        else:
            found.append([place])
            latest = end
    return found


def belongs(end: float, start: float, *, gap: float = GAP_SECONDS) -> bool:
    """Whether what begins at `start` goes on with what ended at `end` and began no later."""
    return end - start >= OVERLAP_SECONDS or start - end <= gap
