"""Merge reports of events and entities into time ranges."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from conspectus.deferred import dataclass
from conspectus.model.ids import SourceId
from conspectus.model.stream_events import EntitySpan, EventSpan
from conspectus.streams.caption_format import format_time
from conspectus.text.intervals import GAP_SECONDS, runs
from conspectus.text.stream_clocks import StreamClock


@dataclass(frozen=True, slots=True)
class Report:
    """A report that something (`of`: a type, a name) happened from `start` to `end`, in seconds."""

    of: str
    start: float
    end: float
    document: str
    text: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """Overlapping or close reports of one thing, in the order of time."""

    of: str
    start: float
    end: float
    reports: tuple[Report, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """The distinct documents of the reports."""
        return _distinct(report.document for report in self.reports)


def group_reports(reports: Iterable[Report], *, gap: float = GAP_SECONDS) -> list[ReportGroup]:
    """Group overlapping or close reports of one thing, in the order of time; input order does not matter."""
    ordered = sorted(
        reports, key=lambda report: (report.of, report.start, report.end, report.document, report.text)
    )
    groups = [
        stretch
        for _, same in groupby(ordered, lambda report: report.of)
        for stretch in _merge_close_reports(list(same), gap)
    ]
    return sorted(groups, key=lambda group: (group.start, group.end, group.of))


def event_spans(stream: SourceId, reports: Iterable[Report], clock: StreamClock) -> list[EventSpan]:
    """Return the events of a stream from reports of types, with distinct descriptions and entities."""
    return [
        EventSpan(
            stream=stream,
            type=group.of,
            start=group.start,
            end=group.end,
            start_text=format_time(group.start, clock),
            end_text=format_time(group.end, clock),
            descriptions=_distinct(report.text for report in group.reports if report.text),
            entities=_distinct(name for report in group.reports for name in report.entities),
            documents=group.documents,
        )
        for group in group_reports(reports)
    ]


def entity_spans(stream: SourceId, reports: Iterable[Report], clock: StreamClock) -> list[EntitySpan]:
    """Return the time ranges of an entity from reports of a name."""
    return [
        EntitySpan(
            stream=stream,
            entity=group.of,
            start=group.start,
            end=group.end,
            start_text=format_time(group.start, clock),
            end_text=format_time(group.end, clock),
            documents=group.documents,
        )
        for group in group_reports(reports)
    ]


def _merge_close_reports(reports: Sequence[Report], gap: float) -> Iterator[ReportGroup]:
    """Return runs of reports of one thing."""
    for run in runs([(report.start, report.end) for report in reports], gap=gap):
        run_reports = tuple(reports[index] for index in run)
        yield ReportGroup(
            run_reports[0].of, run_reports[0].start, max(report.end for report in run_reports), run_reports
        )


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
