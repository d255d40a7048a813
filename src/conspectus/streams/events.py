"""What happened, out of reports of it: those of one thing that overlap, or are close, are one event."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from conspectus.model.ids import SourceId
from conspectus.model.streams import EntitySpan, EventSpan
from conspectus.text.intervals import GAP_SECONDS, runs


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
    """Runs of reports of one thing."""
    for run in runs([(each.start, each.end) for each in reports], gap=gap):
        mine = tuple(reports[place] for place in run)
        yield Stretch(mine[0].of, mine[0].start, max(each.end for each in mine), mine)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
