"""streams: captions, the moments that answer a query, and summaries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from conspectus.cli.errors import FAILED, NOTHING, PARTIAL, show_found
from conspectus.cli.options import Common
from conspectus.cli.output import cell, dump, note, plain_table, progress, show, write
from conspectus.cli.session import Session, opened
from conspectus.engine.summary_pipeline import EXTRACTIVE
from conspectus.errors import InvalidInput
from conspectus.model.streams import (
    Caption,
    CaptionImport,
    CaptionRange,
    Moments,
    NewStream,
    StreamQuery,
    StreamWindow,
    Summary,
    SummaryRequest,
)
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import line_of, shown
from conspectus.text.clocks import StreamClock, clock_of

PAGE = 1_000
TIME = "seconds, a timecode such as 00:12:30, or an ISO 8601 time"
Stream = Annotated[str, typer.Argument(metavar="STREAM", help="Name or id of a stream.")]
TEXT = 200
NOTICES = 10
MOMENT_TEXT = 400
TIME_RANGE = "time range"
"""The part of a plan that says which times the question was read to name."""
LEFT_OUT = "left out"
"""The part that names streams without such a time."""
USUAL = SummaryRequest("")


@dataclass(frozen=True, slots=True)
class Within:
    """Which stretch of a stream."""

    start: Annotated[str | None, typer.Option("--from", help=f"From when on: {TIME}.")] = None
    end: Annotated[str | None, typer.Option("--to", help="Until when, as --from.")] = None

    def range(self, *, contains: bool = False) -> CaptionRange:
        """As the engine takes it."""
        return CaptionRange(self.start, self.end, contains)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be found, and how much of it."""

    stream: Annotated[
        list[str], typer.Option(help="Only this stream (name or id); may be repeated. Default: all.")
    ] = field(default_factory=list)
    limit: Annotated[int, typer.Option(min=1, help="Most moments.")] = 5
    floor: Annotated[
        float | None, typer.Option(help="Leave out what is less similar than this (cosine, 0 to 1).")
    ] = None
    read_times: Annotated[
        bool, typer.Option("--times/--no-times", help="Read times in the question, such as 'around 12:30'.")
    ] = True
    window: Annotated[
        bool, typer.Option("--window", help="Print the captions as context for a model instead.")
    ] = False
    budget: Annotated[int, typer.Option(min=0, help="With --window: most tokens.")] = 4_000

    def question(self, prompt: str, session: Session, within: Within) -> StreamQuery:
        """The question as the engine takes it."""
        return StreamQuery(
            prompt,
            tuple(self.stream),
            session.collection,
            within.range(),
            self.read_times,
            floor=self.floor,
            limit=self.limit,
        )


@dataclass(frozen=True, slots=True)
class How:
    """How a summary is made."""

    refine: Annotated[
        bool, typer.Option("--refine", help="Improve one summary with each batch, in order.")
    ] = False
    extractive: Annotated[
        bool, typer.Option("--extractive", help="Choose sentences instead of asking a model.")
    ] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Captions in a batch.")] = USUAL.batch_size
    prompt: Annotated[str, typer.Option(help="What matters.")] = ""
    sentences: Annotated[int, typer.Option(min=1, help="Most sentences that are chosen.")] = USUAL.sentences


def captions_of(session: Session, stream: str, within: CaptionRange) -> Iterator[Caption]:
    """All captions of a range, page by page."""
    after = None
    while True:
        page = session.engine.captions(
            stream=stream, collection=session.collection, within=within, after=after, limit=PAGE
        )
        yield from page.captions
        after = page.next
        if after is None:
            return


def import_files(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Subtitles: SRT, VTT, ASS, or captions as JSON.")
    ],
    common: Common,
    *,
    stream: Annotated[
        str | None, typer.Option(help="Stream to add to. Default: one for each file, by its name.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="The instant of second 0, as an ISO 8601 time; none for a recording.")
    ] = None,
    sentences: Annotated[
        bool, typer.Option("--sentences/--no-sentences", help="Put sentences together over cues.")
    ] = True,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Return when all is found by meaning too.")
    ] = True,
) -> None:
    """Take in files of captions; again changes nothing, and a newer file takes the place of an older one."""
    with opened(common, new=True) as session, progress() as bars:
        if origin is not None:
            _set_origin(session, origin, [stream] if stream else _stems(files))
        report = session.engine.import_captions(
            files,
            stream=stream,
            collection=session.collection,
            sentences=sentences,
            wait=wait,
            progress=bars,
        )
    if not common.json:
        _note_notices(report.notices)
    show(report, _report_table(report), as_json=common.json)
    if report.failures:
        raise typer.Exit(PARTIAL if report.streams else FAILED)


def list_streams(common: Common) -> None:
    """List streams with the number of their captions, and from when to when they go."""
    with opened(common) as session:
        streams = session.engine.streams(collection=session.collection)
    show_found(streams, _streams_table(streams), "there are no streams", as_json=common.json)


def captions(
    stream: Stream,
    common: Common,
    within: Within,
    *,
    contains: Annotated[
        bool, typer.Option("--contains", help="Only captions that lie wholly inside.")
    ] = False,
    ndjson: Annotated[
        bool, typer.Option("--ndjson", help="One JSON object a line, which `video import` takes in again.")
    ] = False,
) -> None:
    """Show the captions of a stream, or of a stretch of it, in the order of time."""
    with opened(common) as session:
        clock = clock_of(session.engine.find_stream(stream, collection=session.collection).source)
        found = captions_of(session, stream, within.range(contains=contains))
        if ndjson:
            count = _export(found)
            if not count:
                raise typer.Exit(NOTHING)
        else:
            listed = list(found)
            show_found(listed, captions_table(listed, clock), "there are no captions", as_json=common.json)


def delete(
    stream: Stream,
    common: Common,
    *,
    purge: Annotated[bool, typer.Option("--purge", help="Return only when no file holds the texts.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a stream with everything in it."""
    with opened(common) as session:
        found = session.engine.find_stream(stream, collection=session.collection)
        asked = f"Delete {found.source.name!r} with its {found.captions:,} captions?"
        if not yes and not typer.confirm(asked, err=True):
            note("nothing was deleted")
            raise typer.Exit(FAILED)
        receipt = session.engine.delete_source(found.source.id, purge=purge)
    gone = f"deleted {receipt.documents} documents, {receipt.chunks} chunks, {receipt.vectors} vectors"
    show(receipt, gone + ("; no file holds them any more" if receipt.purged else ""), as_json=common.json)


def captions_table(found: Sequence[Caption], clock: StreamClock) -> RenderableType:
    """Captions with their times, and with their speakers where any is known."""
    spoken = any(each.document.author for each in found)
    table = plain_table("from", "to", *(["speaker"] if spoken else []), "text")
    for each in found:
        times = [cell("-" if second is None else shown(second, clock)) for second in (each.start, each.end)]
        speaker = [cell(each.document.author or "")] if spoken else []
        table.add_row(*times, *speaker, cell(each.text, limit=TEXT))
    return table


def ask(
    prompt: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    common: Common,
    within: Within,
    wanted: Wanted,
) -> None:
    """Find the moments of streams that answer a question, with their times."""
    with opened(common) as session:
        question = wanted.question(prompt, session, within)
        if wanted.window:
            _show_window(session.engine.video_window(question, wanted.budget), common)
        else:
            _show_moments(session.engine.find_moments(question), common)


def summary(stream: Stream, common: Common, within: Within, how: How) -> None:
    """Say what happens in a stream, or in a stretch of it."""
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
        made = session.engine.summarise(request, progress=bars)
        clock = clock_of(session.engine.find_stream(stream, collection=session.collection).source)
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
        note(f"and {len(notices) - NOTICES} more such notices; --json has all")


def _stems(files: Iterable[Path]) -> list[str]:
    """The streams that files become. Raises InvalidInput for folders, and for what is not there."""
    for each in files:
        if not each.is_file():
            raise InvalidInput("origin", f"needs --stream, or files: {str(each)!r} is none")
    return [each.stem for each in files]


def _set_origin(session: Session, origin: str, names: Iterable[str]) -> None:
    for name in names:
        session.engine.put_stream(NewStream(name, session.collection, origin=origin))


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
    counts = f"{report.added} added, {report.replaced} replaced, {report.unchanged} unchanged"
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
    by = "chosen from" if made.by == EXTRACTIVE else f"by {made.by}, of"
    note("there are no captions" if made.outcome == "empty" else f"{by} {captions:,} captions")


def _show_moments(found: Moments, common: Common) -> None:
    if not common.json:
        _show_plan(found.plan, found.notices)
    if common.json or found.moments:
        show(found, _moments_picture(found), as_json=common.json)
    if not found.moments:
        _end_with_nothing(common)


def _show_window(found: StreamWindow, common: Common) -> None:
    if common.json:
        dump(found)
    elif found.window.text:
        write(found.window.text)
    if not common.json:
        _show_plan(found.plan, found.window.notices)
        note(f"{found.window.tokens} of {found.window.allowed} tokens")
    if not found.captions:
        _end_with_nothing(common)


def _end_with_nothing(common: Common) -> None:
    if not common.json:
        note("nothing relevant was found")
    raise typer.Exit(NOTHING)


def _show_plan(plan: Mapping[str, str], notices: tuple[str, ...]) -> None:
    for part in (TIME_RANGE, LEFT_OUT):
        if part in plan:
            note(f"{part}: {plan[part]}")
    for notice in notices:
        note(notice)


def _moments_picture(found: Moments) -> RenderableType:
    """Each moment with its place in a line, and what is said there below."""
    lines: list[RenderableType] = []
    for number, each in enumerate(found.moments, 1):
        clock = clock_of(each.stream)
        start, end = (shown(second, clock) for second in (each.start, each.end))
        place = cell(f"{number} {each.stream.name}", style="bold"), cell(f"{start} to {end}")
        head = Text("  ").join([*place, cell(f"{each.score:.3f}", style="dim")])
        text = " ".join(caption.text for caption in each.captions)
        lines += [head, Padding(cell(text, limit=MOMENT_TEXT), (0, 0, 0, 2))]
    return Group(*lines)
