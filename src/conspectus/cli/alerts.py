"""alerts: saved queries that are matched with new captions."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import show_found
from conspectus.cli.options import Common, Filter, Limit
from conspectus.cli.output import cell, dump_line, note, plain_table, show, write
from conspectus.cli.session import Session, opened
from conspectus.model.filter import parse_filters
from conspectus.model.streams import Alert, AlertEvent, NewAlert, Stream
from conspectus.streams.caption_format import shown
from conspectus.text.times import StreamClock, clock_of

TEXT = 200
USUAL = NewAlert("")


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
    ] = USUAL.gap_seconds
    webhook: Annotated[str | None, typer.Option(help="URL that receives matches by POST.")] = None


def add(
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


def delete(
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="Id of an alert.")], common: Common
) -> None:
    """Delete an alert with its matches."""
    with opened(common) as session:
        session.engine.alerts.delete(alert)
    show({"deleted": alert}, f"deleted {alert}", as_json=common.json)


def watch(
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
        streams: dict[str, Stream] = {}
        for number, event in enumerate(events, 1):
            if common.json:
                dump_line(event)
            else:
                write(_told(event, _stream_of(event, session, streams)))
            if number == limit:
                return
    note("the stream of matches ended")


def _stream_of(event: AlertEvent, session: Session, known: dict[str, Stream]) -> Stream | None:
    """The stream of a match, looked up once; None if it was deleted."""
    if event.stream not in known:
        for home in {each.collection for each in session.engine.alerts.list() if each.id == event.alert}:
            found = session.engine.streams.list(collection=home)
            known.update((each.source.id, each) for each in found)
    return known.get(event.stream)


def _told(event: AlertEvent, stream: Stream | None) -> str:
    clock = StreamClock() if stream is None else clock_of(stream.source)
    when = "" if event.start is None else f" at {shown(event.start, clock)}"
    where = "" if stream is None else f" in {stream.source.name}"
    return f"{event.number} {event.name}{where}{when}: {' '.join(event.text.split())} ({event.reason})"


def _alerts_table(found: Iterable[Alert]) -> RenderableType:
    table = plain_table("id", "name", "query", "streams", "min similarity", "webhook")
    for each in found:
        floor = "keywords" if each.floor is None else f"{each.floor:.2f}"
        streams = str(len(each.streams)) if each.streams else "all"
        query = cell(each.query, limit=TEXT)
        table.add_row(cell(each.id), cell(each.name), query, streams, floor, cell(each.webhook or ""))
    return table
