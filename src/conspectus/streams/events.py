"""What happened, out of reports of it: those of one thing that overlap, or are close, are one event."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from conspectus.model.ids import SourceId
from conspectus.model.video import EntitySpan, EventSpan

OVERLAP_SECONDS: Final = 0.1
"""Reports that overlap for so long tell of the same event, however small a gap is allowed."""
GAP_SECONDS: Final = 4.0
"""Reports tell of the same event when no more than so much lies between them."""


@dataclass(frozen=True, slots=True)
class Report:
    """Somebody's word that something (`of`: a type, a name) was so from `start` to `end`, in seconds."""

    of: str
    start: float
    end: float
    document: str
    text: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Reports of one thing that belong together, in the order of time."""

    of: str
    start: float
    end: float
    reports: tuple[Report, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """The documents that report it, each once."""
        return _distinct(each.document for each in self.reports)


def stretches(reports: Iterable[Report], *, gap: float = GAP_SECONDS) -> list[Stretch]:
    """The reports put together, in the order of time; the order in which they are given does not matter."""
    ordered = sorted(reports, key=lambda each: (each.of, each.start, each.end, each.document, each.text))
    found = [
        stretch for _, same in groupby(ordered, lambda each: each.of) for stretch in _joined(list(same), gap)
    ]
    return sorted(found, key=lambda each: (each.start, each.end, each.of))


def belongs(end: float, start: float, *, gap: float = GAP_SECONDS) -> bool:
    """Whether what begins at `start` goes on with what ended at `end` and began no later."""
    return end - start >= OVERLAP_SECONDS or start - end <= gap


def event_spans(stream: SourceId, reports: Iterable[Report]) -> list[EventSpan]:
    """Events of a stream, given reports of types, with every description and entity once."""
    return [
        EventSpan(
            stream=stream,
            type=each.of,
            start=each.start,
            end=each.end,
            descriptions=_distinct(report.text for report in each.reports if report.text),
            entities=_distinct(name for report in each.reports for name in report.entities),
            documents=each.documents,
        )
        for each in stretches(reports)
    ]


def entity_spans(stream: SourceId, reports: Iterable[Report]) -> list[EntitySpan]:
    """When somebody or something is there, given reports of a name."""
    return [EntitySpan(stream, each.of, each.start, each.end, each.documents) for each in stretches(reports)]


def _joined(reports: Sequence[Report], gap: float) -> Iterator[Stretch]:
    """Runs of reports of one thing, which are in the order of their beginnings."""
    run = [reports[0]]
    end = reports[0].end
    for each in reports[1:]:
        if belongs(end, each.start, gap=gap):
            run.append(each)
            end = max(end, each.end)
        else:
            yield Stretch(run[0].of, run[0].start, end, tuple(run))
            run, end = [each], each.end
    yield Stretch(run[0].of, run[0].start, end, tuple(run))


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
