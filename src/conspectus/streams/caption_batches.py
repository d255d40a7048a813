"""Divide captions into batches, by index or by time."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from conspectus.deferred import dataclass
from conspectus.errors import Conflict
from conspectus.model.captions import Caption
from conspectus.ports.streams import CaptionPlace, SummaryBounds


@dataclass(frozen=True, slots=True)
class Batch:
    """Captions in order. `full` means that no more captions belong to the batch, judged by its size."""

    number: int
    captions: tuple[Caption, ...]
    full: bool

    @property
    def border(self) -> SummaryBounds:
        """Return the batch as it is stored."""
        spots = [time_key(caption) for caption in self.captions]
        return SummaryBounds(min(spots), max(spots), self.full)

    @property
    def times(self) -> tuple[float | None, float | None]:
        """The time range of the captions; None if no caption has a time."""
        starts = [caption.start for caption in self.captions if caption.start is not None]
        ends = [caption.end for caption in self.captions if caption.end is not None]
        return min(starts, default=None), max(ends, default=None)


def batches(captions: Sequence[Caption], size: int, bounds: Sequence[SummaryBounds] = ()) -> list[Batch]:
    """Divide captions, given in order, into batches of `size`.

    If all captions have an index, the batch is `index // size`. Duplicate indexes raise Conflict. Otherwise,
    captions are divided by time. Batches that were summarized before keep their borders, so a late caption
    changes only one batch. A batch is split when it exceeds twice the size.
    """
    if by_index(captions):
        return _by_index(captions, size)
    return _by_time(captions, size, bounds)


def by_index(captions: Sequence[Caption]) -> bool:
    """Return whether all captions have an index."""
    return all(caption.document.sequence is not None for caption in captions)


def time_key(caption: Caption) -> CaptionPlace:
    """Sort key of a caption by time. Captions without a time come last."""
    return (math.inf if caption.start is None else caption.start, caption.document.id)


def _by_index(captions: Sequence[Caption], size: int) -> list[Batch]:
    numbered: dict[int, Caption] = {}
    for caption in captions:
        index = caption.document.sequence or 0
        if index in numbered:
            raise Conflict("index", str(index), "two captions of the stream have it")
        numbered[index] = caption
    groups: defaultdict[int, list[Caption]] = defaultdict(list)
    for index in sorted(numbered):
        groups[index // size].append(numbered[index])
    return [Batch(number, tuple(group), len(group) == size) for number, group in enumerate(groups.values())]


def _by_time(captions: Sequence[Caption], size: int, bounds: Sequence[SummaryBounds]) -> list[Batch]:
    """Return the captions between kept borders, then the captions after the last border."""
    positions = {caption.document.id: number for number, caption in enumerate(captions)}
    ordered = sorted(captions, key=time_key)
    borders = sorted(bounds, key=lambda border: border.first)
    groups: list[list[Caption]] = [[] for _ in borders]
    rest: list[Caption] = []
    for caption in ordered:
        group_number = max(bisect_right(borders, time_key(caption), key=lambda border: border.first) - 1, 0)
        after_all = (
            group_number == len(borders) - 1
            and borders[group_number].full
            and time_key(caption) > borders[group_number].last
        )
        (rest if not borders or after_all else groups[group_number]).append(caption)
    if borders and not borders[-1].full:
        rest = groups.pop() + rest
    cut: list[tuple[list[Caption], bool]] = []
    for group in groups:
        cut += [(part, True) for part in _split(group, size)]
    cut += [(rest[at : at + size], len(rest) >= at + size) for at in range(0, len(rest), size)]
    batches = []
    for number, (part, full) in enumerate(cut):
        inside = sorted(part, key=lambda caption: positions[caption.document.id])
        batches.append(Batch(number, tuple(inside), full))
    return batches


def _split(group: Sequence[Caption], size: int) -> list[list[Caption]]:
    """Split a group that exceeds twice the size into parts of nearly equal length, at most `size` each."""
    if not group:
        return []
    parts = 1 if len(group) <= 2 * size else math.ceil(len(group) / size)
    edges = [len(group) * part // parts for part in range(parts + 1)]
    return [list(group[edges[part] : edges[part + 1]]) for part in range(parts)]
