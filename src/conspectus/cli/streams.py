"""streams: manage and search streams of captions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import argument, option
from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import FAILED, PARTIAL, confirm
from conspectus.cli.options import (
    Confirmation,
    MaxTokens,
    MinConfidence,
    MinSimilarity,
    MinTrustOption,
    Query,
    Wait,
)
from conspectus.cli.output import cell, dump, note, progress, rows_table, write
from conspectus.cli.search import print_window
from conspectus.cli.session import NewSession, Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.model.captions import Caption, CaptionImport, CaptionRange
from conspectus.model.parameters import StreamName
from conspectus.model.stream_summaries import Summary, SummaryRequest
from conspectus.model.streams import Moments, NewStream, StreamQuery, StreamQueryOptions
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import line_of
from conspectus.text.counts import format_count

CAPTIONS_PER_PAGE = 1_000
Stream = Annotated[str, argument(StreamName, metavar="STREAM")]
MAX_TEXT_LENGTH = 200
MAX_MOMENT_LENGTH = 400
PLAN = {"time_range": "time range", "skipped_streams": "skipped streams"}
"""Parts of a plan that are shown, with their labels."""
DEFAULTS = SummaryRequest("usual")


@dataclass(frozen=True, slots=True)
class Within:
    """A time range of a stream."""

    start: Annotated[str | None, option(CaptionRange, "start", "--from")] = None
    end: Annotated[str | None, option(CaptionRange, "end", "--to")] = None

    def range(self, *, contains: bool = False) -> CaptionRange:
        """Return the range."""
        return CaptionRange(self.start, self.end, contains)


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Filters and limits of a search."""

    stream: Annotated[list[str], option(StreamQuery, "streams")] = field(default_factory=list)
    limit: Annotated[int, option(StreamQuery, "limit", "--limit", "-n")] = 5
    min_similarity: MinSimilarity = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustOption = None
    parse_time: Annotated[bool, option(StreamQuery, "read_times", "--parse-time/--ignore-time")] = True

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
class SummaryOptions:
    """Options of a summary."""

    refine: Annotated[bool, typer.Option("--refine", help="Refine one summary batch by batch.")] = False
    extractive: Annotated[bool, option(SummaryRequest, "extractive", "--extractive")] = False
    batch_size: Annotated[int, option(SummaryRequest, "batch_size")] = DEFAULTS.batch_size
    instructions: Annotated[str, option(SummaryRequest, "instructions")] = ""
    sentences: Annotated[int, option(SummaryRequest, "sentences")] = DEFAULTS.sentences


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
    start_time: Annotated[str | None, option(NewStream, "start_time")] = None,
    join_sentences: Annotated[
        bool, typer.Option("--join-sentences/--keep-cues", help="Join sentences that span several cues.")
    ] = True,
    wait: Wait = True,
) -> None:
    """Import captions from subtitle files."""
    with progress() as bars:
        bars = session.follow_files(bars)
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


def _streams_table(streams: Sequence[StoredStream]) -> RenderableType:
    titled, lively = any(stream.title for stream in streams), any(stream.live for stream in streams)
    names = [*(["title"] if titled else []), "captions", "from", "to", *(["live"] if lively else [])]
    rows = []
    for stream in streams:
        times = [text or "-" for text in (stream.first_text, stream.last_text)]
        live = ["live" if stream.live else ""] if lively else []
        rows.append([stream.source.name, *([stream.title] if titled else []), stream.captions, *times, *live])
    return rows_table(["stream", *names], rows)


def captions(
    stream: Stream,
    session: Session,
    within: Within,
    *,
    contains: Annotated[bool, option(CaptionRange, "contains", "--contains")] = False,
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


def _confirm_stream(session: Session, arguments: Arguments) -> None:
    stored = session.engine.streams.get(arguments["stream"], collection=session.collection)
    name, captions = stored.source.name, stored.captions
    confirm(
        f"Delete the stream {name!r} with {format_count(captions, 'caption')}?", yes=arguments["extra"].yes
    )
    arguments.update(stream=stored.source.id, collection=stored.source.collection)


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


def summarize(stream: Stream, session: Session, within: Within, options: SummaryOptions) -> None:
    """Summarize a stream, or a time range of it."""
    with progress() as bars:
        summary = session.engine.summaries.summarize(
            stream,
            progress=bars,
            collection=session.collection,
            range=within.range(),
            mode="refine" if options.refine else "batches",
            batch_size=options.batch_size,
            instructions=options.instructions,
            extractive=options.extractive,
            sentences=options.sentences,
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
        note(f"left out: {format_count(batch.captions, 'caption')}, {start} to {end}: {batch.error}")
    captions = sum(batch.captions for batch in summary.batches if batch.state == "done")
    from conspectus.engine.summary_pipeline import EXTRACTIVE

    by = "chosen from" if summary.by == EXTRACTIVE else f"by {summary.by}, of"
    note("no captions" if summary.outcome == "empty" else f"{by} {format_count(captions, 'caption')}")


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


STREAMS_COMMANDS: Final = {
    "import": import_files,
    "list": Command(
        "streams:StreamService.list", "List streams with their captions and time ranges.", _streams_table,
        limit=100, nothing="no streams",
    ),
    "captions": captions, "search": search, "context": context, "summarize": summarize,
    "delete": Command(
        "streams:StreamService.delete", "Delete a stream with all its captions and events.", receipt_line,
        extra=Confirmation, prepare=_confirm_stream,
    ),
}  # fmt: skip
