"""What came since the manifest: small segments in memory, each at least twice as large as the next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from conspectus.index.changes import Range
from conspectus.index.segments.postings import MOST_ROWS
from conspectus.index.segments.segment import Row, Shape, segment_in_memory
from conspectus.index.segments.segment_view import SegmentView


@dataclass(frozen=True, slots=True)
class TailSegment:
    """A segment in memory with the rows it was made of, so that it can be made anew with others."""

    view: SegmentView
    rows: Sequence[Row]

    def live(self) -> list[Row]:
        """The rows that are not dead."""
        dead = self.view.dead
        return list(self.rows) if dead is None else [self.rows[i] for i in np.flatnonzero(~dead).tolist()]


Tail = tuple[TailSegment, ...]


def without(tail: Tail, ranges: Sequence[Range]) -> Tail:
    """The tail with all rows of those ids dead."""
    parts = (TailSegment(part.view.without(ranges), part.rows) for part in tail)
    return tuple(part for part in parts if part.view.live)


def extended(tail: Tail, rows: Iterable[Row], shape: Shape) -> Tail:
    """The tail with further rows, whose ids it does not hold alive."""
    parts, pool = list(tail), list(rows)
    if not pool:
        return tail
    while parts and parts[-1].view.live <= 2 * len(pool) <= MOST_ROWS:
        pool += parts.pop().live()
    pool.sort(key=_id)
    pieces = [pool[start : start + MOST_ROWS] for start in range(0, len(pool), MOST_ROWS)]
    return (*parts, *(TailSegment(SegmentView(segment_in_memory(piece, shape)), piece) for piece in pieces))


def _id(row: Row) -> int:
    return row.id
