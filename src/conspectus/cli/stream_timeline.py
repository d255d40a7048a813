"""streams timeline: captions, events and entities of a stream over time."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from datetime import timedelta
from itertools import islice
from typing import Annotated, Final

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from conspectus.cli.output import cell
from conspectus.cli.session import Session
from conspectus.cli.streams import Stream, Within, captions_of
from conspectus.deferred import dataclass
from conspectus.model.captions import EPOCH_YEAR, Caption, CaptionRange
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import format_time
from conspectus.text.stream_clocks import StreamClock, clock_of, timecode

MAX_ENTITIES = 8
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
PLAIN: Final = " .:-=+*#@"
"""Characters for growing fractions, also for terminals without Unicode."""
MAX_LABEL_LENGTH: Final = 24
MIN_CELLS: Final = 10
GAP_CELLS: Final = 4
LABEL_GAP_CELLS: Final = 2
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
STEPS: Final = (
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 7, 14, 30, 90, 365, 3_650)),
)
"""Distances between two labels of the axis, in seconds."""
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TimelineSelection:
    """The selection to draw; by default all types of events and the most frequent entities."""

    entity: Annotated[list[str], typer.Option(help="Entity; repeatable.")] = field(default_factory=list)
    type: Annotated[list[str], typer.Option(help="Type of events; repeatable.")] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: a name, and the time ranges in which it occurs, in seconds."""

    name: str
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Picture:
    """A time range of a stream with its captions, events and entities."""

    title: str
    clock: StreamClock
    first: float
    last: float
    captions: Sequence[Span]
    lanes: Sequence[Lane]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the title, and the rows in the width of the terminal."""
        names = ["captions", *(lane.name for lane in self.lanes)]
        counts = [f"{len(spans):,}" for spans in (self.captions, *(lane.spans for lane in self.lanes))]
        label = min(MAX_LABEL_LENGTH, max(map(cell_len, names)))
        cells = max(MIN_CELLS, options.max_width - label - max(map(len, counts)) - GAP_CELLS)
        scale = Scale(self.first, max(self.last, self.first + STEPS[0]), cells)
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=label)
        table.add_column(no_wrap=True, overflow="crop", width=cells)
        table.add_column(no_wrap=True, justify="right")
        ramp = PLAIN if options.ascii_only else BLOCKS
        bars = [Text(blocks(density(self.captions, scale), ramp), style="cyan")]
        bars += [Text(blocks(coverage(lane.spans, scale), ramp), style="green") for lane in self.lanes]
        for name, bar, count in zip(names, bars, counts, strict=True):
            table.add_row(cell(name), bar, count)
        ruler, labels = axis(scale, self.clock, ascii_only=options.ascii_only)
        table.add_row("", Text(ruler, style="dim"))
        table.add_row("", Text(labels))
        yield cell(
            f"{self.title}, {format_time(self.first, self.clock)} to {format_time(self.last, self.clock)}"
        )
        yield table


@dataclass(frozen=True, slots=True)
class Scale:
    """The time scale of a row."""

    first: float
    last: float
    cells: int

    @property
    def seconds(self) -> float:
        """The number of seconds per cell."""
        return (self.last - self.first) / self.cells

    def place(self, second: float) -> float:
        """Return the position of a time, in cells from the left."""
        return (second - self.first) / self.seconds

    def find_overlapped_cells(self, span: Span) -> range:
        """Return the cells that overlap a time range; an instant is in one cell."""
        begins, ends = self.place(span[0]), self.place(span[1])
        if begins > self.cells or ends < 0:
            return range(0)
        left = min(self.cells - 1, max(0, math.floor(begins)))
        return range(left, max(left + 1, min(self.cells, math.ceil(ends))))


def timeline(stream: Stream, session: Session, within: Within, selection: TimelineSelection) -> None:
    """Draw captions, events and entities over time."""
    stored = session.engine.streams.get(stream, collection=session.collection)
    span = within.range()
    captions = [*captions_of(session, stream, span)]
    lanes = [*_events(session, stream, span, selection), *_entities(session, stream, span, selection)]
    picture = _picture(stored, span, _spans(captions), lanes)
    drawn = [*picture.captions, *(span for lane in lanes for span in lane.spans)]
    details = {
        "first": picture.first,
        "last": picture.last,
        "captions": picture.captions,
        "lanes": {lane.name: lane.spans for lane in picture.lanes},
    }
    session.show_or_exit(details, picture, "no captions or events with times", matches=drawn)


def density(spans: Iterable[Span], scale: Scale) -> list[float]:
    """Return the number of ranges in each cell, relative to the maximum."""
    counts = [0] * scale.cells
    for span in spans:
        for number in scale.find_overlapped_cells(span):
            counts[number] += 1
    maximum = max(counts) or 1
    return [count / maximum for count in counts]


def coverage(spans: Iterable[Span], scale: Scale) -> list[float]:
    """Return the covered fraction of each cell; the shortest range is still visible."""
    shares = [0.0] * scale.cells
    for start, end in _join_ranges(spans):
        for number in scale.find_overlapped_cells((start, end)):
            inside = min(scale.place(end), number + 1) - max(scale.place(start), number)
            shares[number] = min(1.0, shares[number] + max(inside, 1e-9))
    return shares


def blocks(shares: Iterable[float], ramp: str = BLOCKS) -> str:
    """Return fractions from 0 to 1 as blocks; only 0 is empty."""
    maximum = len(ramp) - 1
    return "".join(ramp[math.ceil(min(1.0, max(0.0, share)) * maximum)] for share in shares)


def axis(scale: Scale, clock: StreamClock, *, ascii_only: bool = False) -> tuple[str, str]:
    """Return a ruler with labels at round times below it."""
    fitting = (
        duration
        for duration in STEPS
        if duration / scale.seconds >= len(_label(scale.last, duration, clock)) + LABEL_GAP_CELLS
    )
    step = next(fitting, STEPS[-1])
    ruler, labels = ["-" if ascii_only else "─"] * scale.cells, ""
    for second in _ticks(step, scale, clock):
        cell_number, label = math.floor(scale.place(second)), _label(second, step, clock)
        if cell_number >= scale.cells:
            break
        ruler[cell_number] = "+" if ascii_only else "┬"
        if len(labels) <= cell_number <= scale.cells - len(label):
            labels = labels.ljust(cell_number) + label + " " * LABEL_GAP_CELLS
    return "".join(ruler), labels.rstrip()


def _events(session: Session, stream: str, within: CaptionRange, selection: TimelineSelection) -> list[Lane]:
    """Return a row for each type of event."""
    if selection.entity and not selection.type:
        return []
    spans: dict[str, list[Span]] = {type_name: [] for type_name in selection.type}
    for event in session.engine.events.list(stream=stream, collection=session.collection, range=within):
        if not selection.type or event.type in spans:
            spans.setdefault(event.type, []).append((event.start, event.end))
    return [Lane(name, type_spans) for name, type_spans in sorted(spans.items())]


def _entities(
    session: Session, stream: str, within: CaptionRange, selection: TimelineSelection
) -> list[Lane]:
    """Return a row for each given name, or for the most frequent ones."""
    names = selection.entity
    if not names and not selection.type:
        counts = session.engine.events.count_entities(
            stream=stream, collection=session.collection, range=within
        )
        often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        names = [name for name, _ in islice(often, MAX_ENTITIES)]
    return [
        Lane(
            name,
            [
                (presence.start, presence.end)
                for presence in session.engine.events.entity_timeline(
                    name, stream=stream, collection=session.collection, range=within
                )
            ],
        )
        for name in names
    ]


def _picture(
    stream: StoredStream, within: CaptionRange, captions: Sequence[Span], lanes: Sequence[Lane]
) -> Picture:
    clock = clock_of(stream.source)
    everything = [*captions, *(span for lane in lanes for span in lane.spans)]
    earliest = min((start for start, _ in everything), default=0.0)
    first = _second(within.start, clock, earliest if stream.wall else 0.0)
    last = _second(within.end, clock, max((end for _, end in everything), default=first))
    name = stream.title or stream.source.name
    return Picture(name, clock, first, max(first, last), captions, lanes)


def _second(when: object, clock: StreamClock, otherwise: float) -> float:
    return clock.seconds(clock.instant(when)) if isinstance(when, str) else otherwise


def _spans(captions: Sequence[Caption]) -> list[Span]:
    return [
        (caption.start, caption.start if caption.end is None else caption.end)
        for caption in captions
        if caption.start is not None
    ]


def _ticks(step: float, scale: Scale, clock: StreamClock) -> Iterator[float]:
    """Yield round times: of a recording from its start, of a calendar from midnight."""
    midnight = 0.0
    if _is_calendar(scale.first, clock):
        local = (clock.origin + timedelta(seconds=scale.first)).astimezone(clock.zone)
        midnight = clock.seconds(local.replace(hour=0, minute=0, second=0, microsecond=0))
    number = math.ceil((scale.first - midnight) / step)
    while (second := midnight + number * step) <= scale.last:
        yield second
        number += 1


def _label(second: float, step: float, clock: StreamClock) -> str:
    if not _is_calendar(second, clock):
        return timecode(second)
    local = (clock.origin + timedelta(seconds=second)).astimezone(clock.zone)
    if step >= DAY:
        return f"{local:%Y-%m-%d}"
    return f"{local:%H:%M}" if step >= MINUTE else f"{local:%H:%M:%S}"


def _is_calendar(second: float, clock: StreamClock) -> bool:
    return (clock.origin + timedelta(seconds=second)).year != EPOCH_YEAR


def _join_ranges(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield ranges in order, with overlapping ones merged."""
    last: Span | None = None
    for start, end in sorted(spans):
        if last is None or start > last[1]:
            if last is not None:
                yield last
            last = (start, end)
        else:
            last = (last[0], max(last[1], end))
    if last is not None:
        yield last


STREAMS_COMMANDS: Final = {
    "timeline": timeline,
}  # fmt: skip
