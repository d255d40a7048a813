"""One process's view of an index: the manifest's segments, the tail, and what changed since the manifest."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conspectus.index.changes import Range, merged
from conspectus.index.segments import tail as tails
from conspectus.index.segments.manifest import Manifest, unpacked
from conspectus.index.segments.search import Snapshot
from conspectus.index.segments.segment import Row, Segment, Shape, open_segment
from conspectus.index.segments.segment_view import SegmentView


@dataclass(frozen=True, slots=True)
class TailUpdate:
    """Ids touched by changes up to `sequence`."""

    sequence: int
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class SegmentsState:
    """Never changed, always replaced. `steps` are those after the manifest's sequence."""

    shape: Shape
    manifest: Manifest
    applied: int = 0
    disk: tuple[SegmentView, ...] = ()
    tail: tails.Tail = ()
    steps: tuple[TailUpdate, ...] = ()

    @property
    def waiting(self) -> int:
        """How much a flush would take in: rows of the tail, and ids touched."""
        rows = sum(part.view.live for part in self.tail)
        return max(rows, len(self.steps) and sum(len(step.ranges) for step in self.steps))

    def snapshot(self) -> Snapshot:
        """What queries see."""
        views = (*self.disk, *(part.view for part in self.tail))
        return Snapshot(views, self.applied, self.shape.bm25)

    def after(self, sequence: int, ranges: Sequence[Range], rows: Sequence[Row]) -> "SegmentsState":
        """With every older row of the ranges dead, and these rows instead."""
        return replace(
            self,
            applied=max(self.applied, sequence),
            disk=tuple(view.without(ranges) for view in self.disk),
            tail=tails.extended(tails.without(self.tail, ranges), rows, self.shape),
            steps=(*self.steps, TailUpdate(sequence, tuple(ranges))),
        )

    def on(self, manifest: Manifest, directory: Path) -> "SegmentsState":
        """On a newer manifest: what it covers leaves the tail. Raises IndexDamaged."""
        held = {view.segment.path: view.segment for view in self.disk}
        steps = tuple(step for step in self.steps if step.sequence > manifest.sequence)
        later = merged(span for step in steps for span in step.ranges)
        views = [
            SegmentView(
                _opened(directory / entry.name, held, self.shape), unpacked(entry.dead, entry.rows)
            ).without(later)
            for entry in manifest.entries
        ]
        kept = [row for part in self.tail for row in part.live() if _inside(row.id, later)]
        return replace(
            self,
            manifest=manifest,
            applied=max(self.applied, manifest.sequence),
            disk=tuple(view for view in views if view.live),
            tail=tails.extended((), kept, self.shape),
            steps=steps,
        )


def _opened(path: Path, held: Mapping[Path | None, Segment], shape: Shape) -> Segment:
    return held[path] if path in held else open_segment(path, shape)


def _inside(number: int, ranges: Sequence[Range]) -> bool:
    place = bisect_right(ranges, number, key=_first) - 1
    return place >= 0 and number <= ranges[place][1]


def _first(span: Range) -> int:
    return span[0]
