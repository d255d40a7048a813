"""Which captions are summarised together: the same ones, in whatever order they arrive."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from conspectus.errors import Conflict
from conspectus.model.streams import Caption
from conspectus.ports.summaries import Spot, SummaryBounds


@dataclass(frozen=True, slots=True)
class Batch:
    """Captions in their order; `full` means that none is still to come, as far as the size says."""

    number: int
    captions: tuple[Caption, ...]
    full: bool

    @property
    def border(self) -> SummaryBounds:
        """What to keep of it."""
        spots = [spot(each) for each in self.captions]
        return SummaryBounds(min(spots), max(spots), self.full)

    @property
    def times(self) -> tuple[float | None, float | None]:
        """From when to when, None where no caption has a time."""
        starts = [each.start for each in self.captions if each.start is not None]
        ends = [each.end for each in self.captions if each.end is not None]
        return min(starts, default=None), max(ends, default=None)


def batches(captions: Sequence[Caption], size: int, kept: Sequence[SummaryBounds] = ()) -> list[Batch]:
    """Captions, given in their order, as batches of `size`.

    Where all have an index, by `index // size`; Conflict where two have the same. Otherwise by time: what was
    summarised before keeps its borders, so that a late caption changes only the batch it falls into, which
    splits when it has grown beyond twice the size.
    """
    if by_index(captions):
        return _by_index(captions, size)
    return _by_time(captions, size, kept)


def by_index(captions: Sequence[Caption]) -> bool:
    """Whether all of them have an index."""
    return all(each.document.sequence is not None for each in captions)


def spot(caption: Caption) -> Spot:
    """Where a caption stands by time; those without one come last."""
    return (math.inf if caption.start is None else caption.start, caption.document.id)


def _by_index(captions: Sequence[Caption], size: int) -> list[Batch]:
    numbered: dict[int, Caption] = {}
    for each in captions:
        index = each.document.sequence or 0
        if index in numbered:
            raise Conflict("index", str(index), "two captions of the stream have it")
        numbered[index] = each
    groups: defaultdict[int, list[Caption]] = defaultdict(list)
    for index in sorted(numbered):
        groups[index // size].append(numbered[index])
    return [Batch(number, tuple(group), len(group) == size) for number, group in enumerate(groups.values())]


def _by_time(captions: Sequence[Caption], size: int, kept: Sequence[SummaryBounds]) -> list[Batch]:
    """The groups between kept borders, then what came after the last of them."""
    place = {each.document.id: number for number, each in enumerate(captions)}
    ordered = sorted(captions, key=spot)
    borders = sorted(kept, key=lambda border: border.first)
    groups: list[list[Caption]] = [[] for _ in borders]
    rest: list[Caption] = []
    for each in ordered:
        own = max(bisect_right(borders, spot(each), key=lambda border: border.first) - 1, 0)
        after_all = own == len(borders) - 1 and borders[own].full and spot(each) > borders[own].last
        (rest if not borders or after_all else groups[own]).append(each)
    if borders and not borders[-1].full:
        rest = groups.pop() + rest
    cut: list[tuple[list[Caption], bool]] = []
    for group in groups:
        cut += [(part, True) for part in _split(group, size)]
    cut += [(rest[at : at + size], len(rest) >= at + size) for at in range(0, len(rest), size)]
    made = []
    for number, (part, full) in enumerate(cut):
        inside = sorted(part, key=lambda each: place[each.document.id])
        made.append(Batch(number, tuple(inside), full))
    return made


def _split(group: Sequence[Caption], size: int) -> list[list[Caption]]:
    """As it is up to twice the size; beyond that in parts as equal as can be, none larger than the size."""
    if not group:
        return []
    parts = 1 if len(group) <= 2 * size else math.ceil(len(group) / size)
    edges = [len(group) * part // parts for part in range(parts + 1)]
    return [list(group[edges[part] : edges[part + 1]]) for part in range(parts)]
