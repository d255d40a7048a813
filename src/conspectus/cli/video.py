"""video: streams of captions, what is in them, and what a question finds there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from conspectus.cli import video_alerts, video_asking, video_events, video_timeline
from conspectus.cli.failures import FAILED, NOTHING, PARTIAL
from conspectus.cli.options import Common, spread
from conspectus.cli.output import cell, note, progress, show, write
from conspectus.cli.reporting import plain_table
from conspectus.cli.session import Session, opened
from conspectus.cli.video_options import Stream, Within, captions_of, show_found
from conspectus.errors import InvalidInput
from conspectus.model.video import Caption, CaptionFiles, NewStream
from conspectus.model.video import Stream as StoredStream
from conspectus.streams.showing import line_of, shown
from conspectus.text.clocks import StreamClock, clock_of

TEXT = 200
NOTICES = 10


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


def add_video(app: typer.Typer) -> None:
    """Put the commands into the program."""
    group = typer.Typer(help="Streams of captions, and what is seen and said in them.", rich_markup_mode=None)
    commands: Mapping[str, Callable[..., None]] = {
        "import": import_files, "streams": list_streams, "captions": captions, "ask": video_asking.ask,
        "summary": video_asking.summary, "timeline": video_timeline.timeline, "delete": delete,
    }  # fmt: skip
    for name, command in commands.items():
        group.command(name)(spread(command))
    group.add_typer(video_events.group(), name="events")
    group.add_typer(video_alerts.group(), name="alerts")
    app.add_typer(group, name="video")


def captions_table(found: Sequence[Caption], clock: StreamClock) -> RenderableType:
    """Captions with their times, and with their speakers where any is known."""
    spoken = any(each.document.author for each in found)
    table = plain_table("from", "to", *(["speaker"] if spoken else []), "text")
    for each in found:
        times = [cell("-" if second is None else shown(second, clock)) for second in (each.start, each.end)]
        speaker = [cell(each.document.author or "")] if spoken else []
        table.add_row(*times, *speaker, cell(each.text, limit=TEXT))
    return table


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


def _report_table(report: CaptionFiles) -> RenderableType:
    table = plain_table("stream", "captions")
    for name, count in report.streams.items():
        table.add_row(cell(name), f"{count:,}")
    counts = f"{report.added} added, {report.replaced} replaced, {report.unchanged} unchanged"
    failed = plain_table("failed", "reason")
    for name, reason in report.failures:
        failed.add_row(cell(name), cell(reason))
    return Group(table, counts, failed) if report.failures else Group(table, counts)
