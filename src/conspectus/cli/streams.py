"""streams, events and alerts: manage and search streams of captions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import FAILED, NOTHING, PARTIAL, confirm, show_found
from conspectus.cli.options import Common, Filter, Limit, MaxTokens, MinSimilarity, Purge, Query, Wait, Yes
from conspectus.cli.output import cell, dump, dump_line, note, plain_table, progress, show, write
from conspectus.cli.search import print_window
from conspectus.cli.session import Session, opened
from conspectus.errors import InvalidInput
from conspectus.model.filter import parse_filters
from conspectus.model.streams import (
    Alert,
    AlertEvent,
    Caption,
    CaptionImport,
    CaptionRange,
    EventSpan,
    Moments,
    NewAlert,
    NewEvent,
    NewStream,
    StreamQuery,
    Summary,
    SummaryRequest,
)
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import line_of, shown
from conspectus.text.times import StreamClock, clock_of

PAGE = 1_000
TIME = "seconds, a timecode such as 00:12:30, or an ISO 8601 time"
Stream = Annotated[str, typer.Argument(metavar="STREAM", help="Name or id of a stream.")]
TEXT = 200
NOTICES = 10
MOMENT_TEXT = 400
PLAN = {"time_range": "time range", "skipped_streams": "skipped streams"}
"""Parts of a plan that are shown, and their labels."""
USUAL = SummaryRequest("")


@dataclass(frozen=True, slots=True)
class Within:
    """A time range of a stream."""

    start: Annotated[str | None, typer.Option("--from", help=f"Start: {TIME}.")] = None
    end: Annotated[str | None, typer.Option("--to", help="End, as --from.")] = None

    def range(self, *, contains: bool = False) -> CaptionRange:
        """As the engine takes it."""
        return CaptionRange(self.start, self.end, contains)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search may return."""

    stream: Annotated[list[str], typer.Option(help="Stream (name or id); repeatable (default: all).")] = (
        field(default_factory=list)
    )
    limit: Limit = 5
    min_similarity: MinSimilarity = None
    parse_time: Annotated[
        bool,
        typer.Option("--parse-time/--ignore-time", help="Use times in the query, such as 'around 12:30'."),
    ] = True

    def question(self, query: str, session: Session, within: Within) -> StreamQuery:
        """The question as the engine takes it."""
        return StreamQuery(
            query,
            tuple(self.stream),
            session.collection,
            within.range(),
            self.parse_time,
            floor=self.min_similarity,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True)
class How:
    """How a summary is made."""

    refine: Annotated[bool, typer.Option("--refine", help="Refine one summary batch by batch.")] = False
    extractive: Annotated[bool, typer.Option("--extractive", help="Select sentences. Use no model.")] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Captions per batch.")] = USUAL.batch_size
    prompt: Annotated[str, typer.Option(help="Instructions for the model.")] = ""
    sentences: Annotated[int, typer.Option(min=1, help="Maximum number of sentences with --extractive.")] = (
        USUAL.sentences
    )


def captions_of(session: Session, stream: str, within: CaptionRange) -> Iterator[Caption]:
    """All captions of a range, page by page."""
    after = None
    while True:
        page = session.engine.streams.captions(
            stream=stream, collection=session.collection, within=within, after=after, limit=PAGE
        )
        yield from page.captions
        after = page.next
        if after is None:
            return


def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Subtitle files or JSON captions.")],
    common: Common,
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
    with opened(common, new=True) as session, progress() as bars:
        if start_time is not None:
            _set_start_time(session, start_time, [stream] if stream else _stems(files))
        report = session.engine.streams.import_captions(
            files,
            stream=stream,
            collection=session.collection,
            sentences=join_sentences,
            wait=wait,
            progress=bars,
        )
    if not common.json:
        _note_notices(report.notices)
    show(report, _report_table(report), as_json=common.json)
    if report.failures:
        raise typer.Exit(PARTIAL if report.streams else FAILED)


def list_streams(common: Common, *, limit: Limit = 100) -> None:
    """List streams with their captions and time ranges."""
    with opened(common) as session:
        streams = session.engine.streams.list(collection=session.collection)[:limit]
    show_found(streams, _streams_table(streams), "no streams", as_json=common.json)


def captions(
    stream: Stream,
    common: Common,
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
    with opened(common) as session:
        clock = clock_of(session.engine.streams.get(stream, collection=session.collection).source)
        found = islice(captions_of(session, stream, within.range(contains=contains)), limit)
        if ndjson:
            count = _export(found)
            if not count:
                raise typer.Exit(NOTHING)
        else:
            listed = list(found)
            show_found(listed, captions_table(listed, clock), "no captions", as_json=common.json)


def delete(stream: Stream, common: Common, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a stream with all its captions and events."""
    with opened(common) as session:
        found = session.engine.streams.get(stream, collection=session.collection)
        confirm(f"Delete the stream {found.source.name!r} with {found.captions:,} captions?", yes=yes)
        receipt = session.engine.collections.delete_source(found.source.id, purge=purge)
    show(receipt, receipt_line(receipt), as_json=common.json)


def captions_table(found: Sequence[Caption], clock: StreamClock) -> RenderableType:
    """Captions with their times, and their speakers if known."""
    spoken = any(each.document.author for each in found)
    table = plain_table("from", "to", *(["speaker"] if spoken else []), "text")
    for each in found:
        times = [cell("-" if second is None else shown(second, clock)) for second in (each.start, each.end)]
        speaker = [cell(each.document.author or "")] if spoken else []
        table.add_row(*times, *speaker, cell(each.text, limit=TEXT))
    return table


def search(query: Query, common: Common, within: Within, wanted: Wanted) -> None:
    """Search streams for the moments that answer a query."""
    with opened(common) as session:
        found = session.engine.streams.find_moments(wanted.question(query, session, within))
    if not common.json:
        _show_plan(found.plan, found.notices)
    if common.json or found.moments:
        show(found, _moments_picture(found), as_json=common.json)
    if not found.moments:
        _end_with_nothing(common)


def context(
    query: Query, common: Common, within: Within, wanted: Wanted, *, max_tokens: MaxTokens = 4_000
) -> None:
    """Print the context window for a query on streams."""
    with opened(common) as session:
        found = session.engine.streams.window(wanted.question(query, session, within), max_tokens)
    print_window(found, found.window, as_json=common.json)
    if not common.json:
        _show_plan(found.plan, found.window.notices)
    if not found.captions:
        _end_with_nothing(common)


def summarize(stream: Stream, common: Common, within: Within, how: How) -> None:
    """Summarize a stream, or a time range of it."""
    with opened(common) as session, progress() as bars:
        request = SummaryRequest(
            stream,
            session.collection,
            within.range(),
            "refine" if how.refine else "batches",
            how.batch_size,
            how.prompt,
            extractive=how.extractive,
            sentences=how.sentences,
        )
        made = session.engine.summaries.summarize(request, progress=bars)
        clock = clock_of(session.engine.streams.get(stream, collection=session.collection).source)
    if common.json:
        dump(made)
    else:
        _show_summary(made, clock)
    if made.outcome == "empty":
        raise typer.Exit(NOTHING)
    if made.failures:
        raise typer.Exit(PARTIAL if made.text else FAILED)


def _export(found: Iterable[Caption]) -> int:
    count = 0
    for each in found:
        write(line_of(each))
        count += 1
    return count


def _note_notices(notices: Sequence[str]) -> None:
    for notice in notices[:NOTICES]:
        note(notice)
    if len(notices) > NOTICES:
        note(f"and {len(notices) - NOTICES} more notices; --json lists all")


def _stems(files: Iterable[Path]) -> list[str]:
    """The streams that files become. Raises InvalidInput for folders, and for what is not there."""
    for each in files:
        if not each.is_file():
            raise InvalidInput("start_time", f"{str(each)!r} is not a file; give files or --stream")
    return [each.stem for each in files]


def _set_start_time(session: Session, start_time: str, names: Iterable[str]) -> None:
    for name in names:
        session.engine.streams.put(NewStream(name, session.collection, origin=start_time))


def _streams_table(streams: Sequence[StoredStream]) -> RenderableType:
    titled, lively = any(each.title for each in streams), any(each.live for each in streams)
    names = [*(["title"] if titled else []), "captions", "from", "to", *(["live"] if lively else [])]
    table = plain_table("stream", *names)
    for each in streams:
        clock = clock_of(each.source)
        times = ["-" if end is None else shown(clock.seconds(end), clock) for end in (each.first, each.last)]
        title = [cell(each.title)] if titled else []
        live = ["live" if each.live else ""] if lively else []
        table.add_row(cell(each.source.name), *title, f"{each.captions:,}", *map(cell, times), *live)
    return table


def _report_table(report: CaptionImport) -> RenderableType:
    table = plain_table("stream", "captions")
    for name, count in report.streams.items():
        table.add_row(cell(name), f"{count:,}")
    names = ("added", "replaced", "unchanged", "skipped")
    counts = ", ".join(f"{getattr(report, name)} {name}" for name in names)
    failed = plain_table("failed", "reason")
    for name, reason in report.failures:
        failed.add_row(cell(name), cell(reason))
    return Group(table, counts, failed) if report.failures else Group(table, counts)


def _show_summary(made: Summary, clock: StreamClock) -> None:
    if made.text:
        write(made.text)
    for each in made.failures:
        start, end = ("-" if second is None else shown(second, clock) for second in (each.start, each.end))
        note(f"left out: {each.captions} captions, {start} to {end}: {each.error}")
    captions = sum(each.captions for each in made.batches if each.state == "done")
    from conspectus.engine.summary_pipeline import EXTRACTIVE

    by = "chosen from" if made.by == EXTRACTIVE else f"by {made.by}, of"
    note("no captions" if made.outcome == "empty" else f"{by} {captions:,} captions")


def _end_with_nothing(common: Common) -> None:
    if not common.json:
        note("no match")
    raise typer.Exit(NOTHING)


def _show_plan(plan: Mapping[str, str], notices: tuple[str, ...]) -> None:
    for part, label in PLAN.items():
        if part in plan:
            note(f"{label}: {plan[part]}")
    for notice in notices:
        note(notice)


def _moments_picture(found: Moments) -> RenderableType:
    """Each moment with its stream and times, and its captions below."""
    lines: list[RenderableType] = []
    for number, each in enumerate(found.moments, 1):
        clock = clock_of(each.stream)
        start, end = (shown(second, clock) for second in (each.start, each.end))
        place = cell(f"{number} {each.stream.name}", style="bold"), cell(f"{start} to {end}")
        head = Text("  ").join([*place, cell(f"{each.score:.3f}", style="dim")])
        text = " ".join(caption.text for caption in each.captions)
        lines += [head, Padding(cell(text, limit=MOMENT_TEXT), (0, 0, 0, 2))]
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
    common: Common,
    told: EventOptions,
    *,
    start: Annotated[str, typer.Option("--from", help=f"Start: {TIME}.")],
) -> None:
    """Add an event to a stream."""
    event = NewEvent(type, start, told.end, told.description, tuple(told.entity), told.key)
    with opened(common, new=True) as session:
        [written] = session.engine.events.add(event, stream=stream, collection=session.collection)
    show(written, f"{written.outcome} {written.id}", as_json=common.json)


def list_events(
    stream: Stream,
    common: Common,
    within: Within,
    *,
    type: Annotated[str | None, typer.Option(help="Type of events.")] = None,
    limit: Limit = 100,
) -> None:
    """List the events of a stream. Adjacent ones are merged."""
    with opened(common) as session:
        found = session.engine.events.list(
            stream=stream, collection=session.collection, within=within.range(), type=type
        )
    found = found[:limit]
    show_found(found, _table(found), "no events", as_json=common.json)


def _table(found: Iterable[EventSpan]) -> RenderableType:
    table = plain_table("type", "from", "to", "reports", "entities", "description")
    for each in found:
        times = [cell(each.start_text), cell(each.end_text)]
        said = cell("; ".join(each.descriptions), limit=TEXT)
        table.add_row(cell(each.type), *times, str(len(each.documents)), cell(", ".join(each.entities)), said)
    return table


USUAL_GAP = NewAlert("")


@dataclass(frozen=True, slots=True)
class Watched:
    """Which captions an alert checks, and its webhook."""

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
    common: Common,
    watched: Watched,
) -> None:
    """Create an alert for new captions."""
    with opened(common, new=True) as session:
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
        made = session.engine.alerts.put(alert)
    show(made, f"created {made.id}", as_json=common.json)


def list_alerts(common: Common, *, limit: Limit = 100) -> None:
    """List your alerts."""
    with opened(common) as session:
        found = session.engine.alerts.list(collection=common.collection)[:limit]
    show_found(found, _alerts_table(found), "no alerts", as_json=common.json)


def delete_alert(
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="Id of an alert.")], common: Common
) -> None:
    """Delete an alert with its matches."""
    with opened(common) as session:
        session.engine.alerts.delete(alert)
    show({"deleted": alert}, f"deleted {alert}", as_json=common.json)


def watch_alerts(
    common: Common,
    *,
    alert: Annotated[str | None, typer.Option(help="Id of an alert (default: all).")] = None,
    after: Annotated[int | None, typer.Option(help="Number of the last match to skip.")] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Number of matches to print (default: no limit)."),
    ] = None,
) -> None:
    """Print alert matches until interrupted."""
    with (
        opened(common) as session,
        closing(session.engine.alerts.subscribe(alert=alert, after=after)) as events,
    ):
        from conspectus.engine import Engine

        if isinstance(session.engine.asynchronous, Engine):
            session.engine.alerts.start()
        streams: dict[str, StoredStream] = {}
        for number, event in enumerate(events, 1):
            if common.json:
                dump_line(event)
            else:
                write(_told(event, _stream_of(event, session, streams)))
            if number == limit:
                return
    note("the stream of matches ended")


def _stream_of(event: AlertEvent, session: Session, known: dict[str, StoredStream]) -> StoredStream | None:
    """The stream of a match, looked up once; None if it was deleted."""
    if event.stream not in known:
        for home in {each.collection for each in session.engine.alerts.list() if each.id == event.alert}:
            found = session.engine.streams.list(collection=home)
            known.update((each.source.id, each) for each in found)
    return known.get(event.stream)


def _told(event: AlertEvent, stream: StoredStream | None) -> str:
    clock = StreamClock() if stream is None else clock_of(stream.source)
    when = "" if event.start is None else f" at {shown(event.start, clock)}"
    where = "" if stream is None else f" in {stream.source.name}"
    return f"{event.number} {event.name}{where}{when}: {' '.join(event.text.split())} ({event.reason})"


def _alerts_table(found: Iterable[Alert]) -> RenderableType:
    table = plain_table("id", "name", "query", "streams", "min similarity", "webhook")
    for each in found:
        floor = "keywords" if each.min_similarity is None else f"{each.min_similarity:.2f}"
        streams = str(len(each.streams)) if each.streams else "all"
        query = cell(each.query, limit=TEXT)
        table.add_row(cell(each.id), cell(each.name), query, streams, floor, cell(each.webhook or ""))
    return table
