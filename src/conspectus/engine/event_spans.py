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
    """A report that the subject, a type of event or a name, occurred from `start` to `end`, in seconds."""

    subject: str
    start: float
    end: float
    document: str
    text: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportGroup:
    """Overlapping or close reports of one subject, in the order of time."""

    subject: str
    start: float
    end: float
    reports: tuple[Report, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """The distinct documents of the reports."""
        return _distinct(report.document for report in self.reports)


def group_reports(reports: Iterable[Report], *, gap: float = GAP_SECONDS) -> list[ReportGroup]:
    """Group overlapping or close reports of one subject, in any order, and sort the groups by time."""
    ordered = sorted(
        reports, key=lambda report: (report.subject, report.start, report.end, report.document, report.text)
    )
    groups = [
        group
        for _, subject_reports in groupby(ordered, lambda report: report.subject)
        for group in _merge_close_reports(list(subject_reports), gap)
    ]
    return sorted(groups, key=lambda group: (group.start, group.end, group.subject))


def event_spans(stream: SourceId, reports: Iterable[Report], clock: StreamClock) -> list[EventSpan]:
    """Return the events of a stream from reports of types, with distinct descriptions and entities."""
    return [
        EventSpan(
            stream=stream,
            type=group.subject,
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
            entity=group.subject,
            start=group.start,
            end=group.end,
            start_text=format_time(group.start, clock),
            end_text=format_time(group.end, clock),
            documents=group.documents,
        )
        for group in group_reports(reports)
    ]


def _merge_close_reports(reports: Sequence[Report], gap: float) -> Iterator[ReportGroup]:
    """Yield the groups of reports of one subject, which are sorted by time."""
    for run in runs([(report.start, report.end) for report in reports], gap=gap):
        run_reports = tuple(reports[index] for index in run)
        yield ReportGroup(
            run_reports[0].subject,
            run_reports[0].start,
            max(report.end for report in run_reports),
            run_reports,
        )


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))
