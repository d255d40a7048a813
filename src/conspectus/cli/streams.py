"""streams, events and alerts: manage and search streams of captions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import FAILED, PARTIAL, confirm
from conspectus.cli.options import (
    Filter,
    Limit,
    MaxTokens,
    MinConfidence,
    MinSimilarity,
    MinTrustOption,
    Purge,
    Query,
    Wait,
    Yes,
)
from conspectus.cli.output import cell, dump, dump_line, note, progress, rows_table, write
from conspectus.cli.search import print_window
from conspectus.cli.session import NewSession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.alerts import AlertEvent, NewAlert
from conspectus.model.captions import Caption, CaptionImport, CaptionRange
from conspectus.model.filter_json import parse_filters
from conspectus.model.stream_events import NewEvent
from conspectus.model.stream_summaries import Summary, SummaryRequest
from conspectus.model.streams import Moments, NewStream, StreamQueryOptions
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import format_time, line_of
from conspectus.text.stream_clocks import StreamClock, clock_of

CAPTIONS_PER_PAGE = 1_000
TIME = "seconds, a timecode such as 00:12:30, or an ISO 8601 time"
Stream = Annotated[str, typer.Argument(metavar="STREAM", help="Name or id of a stream.")]
MAX_TEXT_LENGTH = 200
MAX_MOMENT_LENGTH = 400
PLAN = {"time_range": "time range", "skipped_streams": "skipped streams"}
"""Parts of a plan that are shown, with their labels."""
USUAL = SummaryRequest("")


@dataclass(frozen=True, slots=True)
class Within:
    """A time range of a stream."""

    start: Annotated[str | None, typer.Option("--from", help=f"Start: {TIME}.")] = None
    end: Annotated[str | None, typer.Option("--to", help="End, as --from.")] = None

    def range(self, *, contains: bool = False) -> CaptionRange:
        """Return the range."""
        return CaptionRange(self.start, self.end, contains)


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Filters and limits of a search."""

    stream: Annotated[list[str], typer.Option(help="Stream (name or id); repeatable (default: all).")] = (
        field(default_factory=list)
    )
    limit: Limit = 5
    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None
    parse_time: Annotated[
        bool,
        typer.Option("--parse-time/--ignore-time", help="Use times in the query, such as 'around 12:30'."),
    ] = True

    def options(self, session: Session, within: Within) -> StreamQueryOptions:
        """Return the options of the engine."""
        return {
            "streams": tuple(self.stream),
            "collection": session.collection,
            "range": within.range(),
            "read_times": self.parse_time,
            "min_similarity": self.min_similarity,
            "min_confidence": self.min_confidence,
            "min_trust": self.min_trust,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True)
class How:
    """Options of a summary."""

    refine: Annotated[bool, typer.Option("--refine", help="Refine one summary batch by batch.")] = False
    extractive: Annotated[bool, typer.Option("--extractive", help="Select sentences. Use no model.")] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Captions per batch.")] = USUAL.batch_size
    instructions: Annotated[str, typer.Option(help="Instructions for the model.")] = ""
    sentences: Annotated[int, typer.Option(min=1, help="Maximum number of sentences with --extractive.")] = (
        USUAL.sentences
    )


def captions_of(session: Session, stream: str, within: CaptionRange) -> Iterator[Caption]:
    """Yield all captions of a range, page by page."""
    after = None
    while True:
        page = session.engine.streams.list_captions(
            stream=stream, collection=session.collection, range=within, after=after, limit=CAPTIONS_PER_PAGE
        )
        yield from page.captions
        after = page.next
        if after is None:
            return


def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Subtitle files or JSON captions.")],
    session: NewSession,
    *,
    stream: Annotated[str | None, typer.Option(help="Stream to add to (default: one per file).")] = None,
    start_time: Annotated[
        str | None, typer.Option(help="ISO 8601 time of second 0 (default: none, a recording).")
    ] = None,
    join_sentences: Annotated[
        bool, typer.Option("--join-sentences/--keep-cues", help="Join sentences that span several cues.")
    ] = True,
    wait: Wait = True,
) -> None:
    """Import captions from subtitle files."""
    with progress() as bars:
        if start_time is not None:
            for name in [stream] if stream else _stems(files):
                session.engine.streams.put(NewStream(name, session.collection, start_time=start_time))
        report = session.engine.streams.import_captions(
            files,
            stream=stream,
            collection=session.collection,
            sentences=join_sentences,
            wait=wait,
            progress=bars,
        )
    session.note_first(report.notices)
    session.show(report, _report_table(report))
    if report.failures:
        raise typer.Exit(PARTIAL if report.streams else FAILED)


def list_streams(session: Session, *, limit: Limit = 100) -> None:
    """List streams with their captions and time ranges."""
    streams = session.engine.streams.list(collection=session.collection)[:limit]
    titled, lively = any(stream.title for stream in streams), any(stream.live for stream in streams)
    names = [*(["title"] if titled else []), "captions", "from", "to", *(["live"] if lively else [])]
    rows = []
    for stream in streams:
        times = [text or "-" for text in (stream.first_text, stream.last_text)]
        live = ["live" if stream.live else ""] if lively else []
        rows.append([stream.source.name, *([stream.title] if titled else []), stream.captions, *times, *live])
    session.show_or_exit(streams, rows_table(["stream", *names], rows), "no streams")


def captions(
    stream: Stream,
    session: Session,
    within: Within,
    *,
    contains: Annotated[
        bool, typer.Option("--contains", help="Only captions inside the whole range.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Maximum number of results (default: all).")
    ] = None,
    ndjson: Annotated[
        bool, typer.Option("--ndjson", help="Print JSON Lines, which `streams import` reads.")
    ] = False,
) -> None:
    """List the captions of a stream by time."""
    captions = islice(captions_of(session, stream, within.range(contains=contains)), limit)
    if ndjson:
        count = 0
        for caption in captions:
            write(line_of(caption))
            count += 1
        if not count:
            session.end_with_nothing()
    else:
        listed = list(captions)
        session.show_or_exit(listed, captions_table(listed), "no captions")


def delete(stream: Stream, session: Session, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a stream with all its captions and events."""
    stored = session.engine.streams.get(stream, collection=session.collection)
    confirm(f"Delete the stream {stored.source.name!r} with {stored.captions:,} captions?", yes=yes)
    receipt = session.engine.streams.delete(
        stored.source.id, collection=stored.source.collection, purge=purge
    )
    session.show(receipt, receipt_line(receipt))


def captions_table(captions: Sequence[Caption]) -> RenderableType:
    """Return captions with their times, and their speakers if known."""
    spoken = any(caption.document.author for caption in captions)
    rows = []
    for caption in captions:
        times = [text or "-" for text in (caption.start_text, caption.end_text)]
        rows.append(
            [
                *times,
                *([caption.document.author] if spoken else []),
                cell(caption.text, limit=MAX_TEXT_LENGTH),
            ]
        )
    return rows_table(("from", "to", *(["speaker"] if spoken else []), "text"), rows)


def search(query: Query, session: Session, within: Within, options: SearchFilters) -> None:
    """Search streams for the moments that answer a query."""
    moments = session.engine.streams.search(query, **options.options(session, within))
    _note_plan(session, moments.plan, moments.notices)
    session.show_or_exit(moments, _moments_picture(moments), "no match", matches=moments.moments)


def context(
    query: Query, session: Session, within: Within, options: SearchFilters, *, max_tokens: MaxTokens = 4_000
) -> None:
    """Print the context window for a query on streams."""
    stream_window = session.engine.streams.window(query, max_tokens, **options.options(session, within))
    print_window(session, stream_window, stream_window.window)
    _note_plan(session, stream_window.plan, stream_window.window.notices)
    if not stream_window.captions:
        session.end_with_nothing("no match")


def summarize(stream: Stream, session: Session, within: Within, how: How) -> None:
    """Summarize a stream, or a time range of it."""
    with progress() as bars:
        summary = session.engine.summaries.summarize(
            stream,
            progress=bars,
            collection=session.collection,
            range=within.range(),
            mode="refine" if how.refine else "batches",
            batch_size=how.batch_size,
            instructions=how.instructions,
            extractive=how.extractive,
            sentences=how.sentences,
        )
    if session.json:
        dump(summary)
    else:
        _show_summary(summary)
    if summary.outcome == "empty":
        session.end_with_nothing()
    if summary.failures:
        raise typer.Exit(PARTIAL if summary.text else FAILED)


def _stems(files: Iterable[Path]) -> list[str]:
    """Return the stream names of files. Raises InvalidInput for folders and missing files."""
    for path in files:
        if not path.is_file():
            raise InvalidInput("start_time", f"{str(path)!r} is not a file; give files or --stream")
    return [path.stem for path in files]


def _report_table(report: CaptionImport) -> RenderableType:
    names = ("added", "replaced", "unchanged", "skipped")
    counts = ", ".join(f"{getattr(report, name)} {name}" for name in names)
    failed = [rows_table(("failed", "reason"), report.failures)] if report.failures else []
    return Group(rows_table(("stream", "captions"), report.streams.items()), counts, *failed)


def _show_summary(summary: Summary) -> None:
    if summary.text:
        write(summary.text)
    for batch in summary.failures:
        start, end = (text or "-" for text in (batch.start_text, batch.end_text))
        note(f"left out: {batch.captions} captions, {start} to {end}: {batch.error}")
    captions = sum(batch.captions for batch in summary.batches if batch.state == "done")
    from conspectus.engine.summary_pipeline import EXTRACTIVE

    by = "chosen from" if summary.by == EXTRACTIVE else f"by {summary.by}, of"
    note("no captions" if summary.outcome == "empty" else f"{by} {captions:,} captions")


def _note_plan(session: Session, plan: Mapping[str, str], notices: Sequence[str]) -> None:
    session.note(*(f"{label}: {plan[part]}" for part, label in PLAN.items() if part in plan), *notices)


def _moments_picture(moments: Moments) -> RenderableType:
    """Return each moment with stream and times, and its captions below."""
    lines: list[RenderableType] = []
    for number, moment in enumerate(moments.moments, 1):
        times = cell(f"{moment.start_text} to {moment.end_text}")
        head_parts = cell(f"{number} {moment.stream.name}", style="bold"), times
        head = Text("  ").join([*head_parts, cell(f"{moment.score:.3f}", style="dim")])
        text = " ".join(caption.text for caption in moment.captions)
        lines += [head, Padding(cell(text, limit=MAX_MOMENT_LENGTH), (0, 0, 0, 2))]
    return Group(*lines)


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Fields of an event."""

    end: Annotated[str | None, typer.Option("--to", help="End, as --from.")] = None
    description: Annotated[str, typer.Option(help="Description.")] = ""
    entity: Annotated[list[str], typer.Option(help="Entity that took part; repeatable.")] = field(
        default_factory=list
    )
    key: Annotated[str | None, typer.Option(help="Key. An event with this key is replaced.")] = None


def add_event(
    stream: Stream,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="Type of the event.")],
    session: NewSession,
    options: EventOptions,
    *,
    start: Annotated[str, typer.Option("--from", help=f"Start: {TIME}.")],
) -> None:
    """Add an event to a stream."""
    event = NewEvent(type, start, options.end, options.description, tuple(options.entity), options.key)
    [written] = session.engine.events.add(event, stream=stream, collection=session.collection)
    session.show(written, f"{written.outcome} {written.id}")


def list_events(
    stream: Stream,
    session: Session,
    within: Within,
    *,
    type: Annotated[str | None, typer.Option(help="Type of events.")] = None,
    limit: Limit = 100,
) -> None:
    """List the events of a stream. Adjacent ones are merged."""
    events = session.engine.events.list(
        stream=stream, collection=session.collection, range=within.range(), type=type
    )
    rows = (
        (
            event.type, event.start_text, event.end_text, str(len(event.documents)), event.entities,
            cell("; ".join(event.descriptions), limit=MAX_TEXT_LENGTH),
        )
        for event in events[:limit]
    )  # fmt: skip
    columns = ("type", "from", "to", "reports", "entities", "description")
    session.show_or_exit(events[:limit], rows_table(columns, rows), "no events")


USUAL_GAP = NewAlert("")


@dataclass(frozen=True, slots=True)
class Watched:
    """Options that select the captions of an alert, and its webhook."""

    stream: Annotated[list[str], typer.Option(help="Stream (name or id); repeatable (default: all).")] = (
        field(default_factory=list)
    )
    filter: Filter = field(default_factory=list)
    min_similarity: Annotated[float, typer.Option(help="Minimum cosine similarity (0 to 1).")] = 0.5
    keywords_only: Annotated[
        bool, typer.Option("--keywords-only", help="Match only captions with all words of the query.")
    ] = False
    merge_seconds: Annotated[
        float, typer.Option(min=0.0, help="Maximum gap between merged matches in seconds.")
    ] = USUAL_GAP.gap_seconds
    webhook: Annotated[str | None, typer.Option(help="URL that receives matches by POST.")] = None


def add_alert(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Query to match new captions with.")],
    session: NewSession,
    watched: Watched,
) -> None:
    """Create an alert for new captions."""
    alert = NewAlert(
        name,
        query,
        session.collection,
        tuple(watched.stream),
        parse_filters(watched.filter),
        None if watched.keywords_only else watched.min_similarity,
        watched.merge_seconds,
        watched.webhook,
    )
    stored = session.engine.alerts.put(alert)
    session.show(stored, f"created {stored.id}")


def list_alerts(session: Session, *, limit: Limit = 100) -> None:
    """List your alerts."""
    alerts = session.engine.alerts.list(collection=session.common.collection)[:limit]
    rows = (
        (
            alert.id, alert.name, cell(alert.query, limit=MAX_TEXT_LENGTH),
            str(len(alert.streams)) if alert.streams else "all",
            "keywords" if alert.min_similarity is None else f"{alert.min_similarity:.2f}", alert.webhook,
        )
        for alert in alerts
    )  # fmt: skip
    columns = ("id", "name", "query", "streams", "min similarity", "webhook")
    session.show_or_exit(alerts, rows_table(columns, rows), "no alerts")


def delete_alert(
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="Id of an alert.")], session: Session
) -> None:
    """Delete an alert with its matches."""
    session.engine.alerts.delete(alert)
    session.show({"deleted": alert}, f"deleted {alert}")


def watch_alerts(
    session: Session,
    *,
    alert: Annotated[str | None, typer.Option(help="Id of an alert (default: all).")] = None,
    after: Annotated[int | None, typer.Option(help="Number of the last match to skip.")] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Number of matches to print (default: no limit)."),
    ] = None,
) -> None:
    """Print alert matches until interrupted."""
    with closing(session.engine.alerts.subscribe(alert=alert, after=after)) as events:
        from conspectus.engine import Engine

        if isinstance(session.engine.asynchronous, Engine):
            session.engine.alerts.start()
        streams: dict[str, StoredStream] = {}
        for number, event in enumerate(events, 1):
            if session.json:
                dump_line(event)
            else:
                write(_details(event, _stream_of(event, session, streams)))
            if number == limit:
                return
    note("the stream of matches ended")


def _stream_of(event: AlertEvent, session: Session, streams: dict[str, StoredStream]) -> StoredStream | None:
    """Return the stream of a match, cached; None if it was deleted."""
    if event.stream not in streams:
        for collection in {
            alert.collection for alert in session.engine.alerts.list() if alert.id == event.alert
        }:
            stored_streams = session.engine.streams.list(collection=collection)
            streams.update((stored.source.id, stored) for stored in stored_streams)
    return streams.get(event.stream)


def _details(event: AlertEvent, stream: StoredStream | None) -> str:
    clock = StreamClock() if stream is None else clock_of(stream.source)
    when = "" if event.start is None else f" at {format_time(event.start, clock)}"
    where = "" if stream is None else f" in {stream.source.name}"
    return f"{event.number} {event.name}{where}{when}: {' '.join(event.text.split())} ({event.reason})"
