"""alerts: saved queries that are matched with new captions."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import show_found
from conspectus.cli.options import WHERE_HELP, Common
from conspectus.cli.output import cell, dump_line, note, plain_table, show, write
from conspectus.cli.session import Session, opened
from conspectus.engine import Engine
from conspectus.model.filter_json import parse_filters
from conspectus.model.streams import Alert, AlertEvent, NewAlert, Stream
from conspectus.streams.caption_format import shown
from conspectus.text.clocks import StreamClock, clock_of

TEXT = 200
USUAL = NewAlert("")


@dataclass(frozen=True, slots=True)
class Watched:
    """Which captions are looked at, and what is done when one matches."""

    stream: Annotated[
        list[str], typer.Option(help="Only this stream (name or id); may be repeated. Default: all.")
    ] = field(default_factory=list)
    where: Annotated[list[str], typer.Option(help=WHERE_HELP)] = field(default_factory=list)
    floor: Annotated[float, typer.Option(help="Least similarity of a caption that matches, 0 to 1.")] = 0.5
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Only captions that have all the words match.")
    ] = False
    gap: Annotated[float, typer.Option(min=0.0, help="Seconds between two matches that are one event.")] = (
        USUAL.gap_seconds
    )
    webhook: Annotated[str | None, typer.Option(help="Address that is told by POST.")] = None


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.")],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What captions are looked at for.")],
    common: Common,
    watched: Watched,
) -> None:
    """Keep a standing question: each new caption is checked, and told of when it matches."""
    with opened(common, new=True) as session:
        alert = NewAlert(
            name,
            query,
            session.collection,
            tuple(watched.stream),
            parse_filters(watched.where),
            None if watched.words_only else watched.floor,
            watched.gap,
            watched.webhook,
        )
        made = session.engine.put_alert(alert)
    show(made, f"watching: {made.id}", as_json=common.json)


def list_alerts(common: Common) -> None:
    """List standing questions."""
    with opened(common) as session:
        found = session.engine.alerts(collection=common.collection)
    show_found(found, _alerts_table(found), "there are no alerts of yours", as_json=common.json)


def delete(
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="Its id.")],
    common: Common,
) -> None:
    """Delete a standing question with what it told."""
    with opened(common) as session:
        session.engine.delete_alert(alert)
    show({"deleted": alert}, f"deleted {alert}", as_json=common.json)


def listen(
    common: Common,
    *,
    alert: Annotated[str | None, typer.Option(help="Only this one, by its id.")] = None,
    after: Annotated[int | None, typer.Option(help="Begin after the event of this number.")] = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
) -> None:
    """Print each time that a standing question goes off, until it is interrupted."""
    with opened(common) as session, closing(session.engine.listen(alert=alert, after=after)) as events:
        if isinstance(session.engine.asynchronous, Engine):
            session.engine.start_alerting()
        streams: dict[str, Stream] = {}
        for number, event in enumerate(events, 1):
            if common.json:
                dump_line(event)
            else:
                write(_told(event, _stream_of(event, session, streams)))
            if number == count:
                return
    note("nothing more will come")


def _stream_of(event: AlertEvent, session: Session, known: dict[str, Stream]) -> Stream | None:
    """The stream that an event is of, looked up once; None where it is gone meanwhile."""
    if event.stream not in known:
        for home in {each.collection for each in session.engine.alerts() if each.id == event.alert}:
            found = session.engine.streams(collection=home)
            known.update((each.source.id, each) for each in found)
    return known.get(event.stream)


def _told(event: AlertEvent, stream: Stream | None) -> str:
    clock = StreamClock() if stream is None else clock_of(stream.source)
    when = "" if event.start is None else f" at {shown(event.start, clock)}"
    where = "" if stream is None else f" in {stream.source.name}"
    return f"{event.number} {event.name}{where}{when}: {' '.join(event.text.split())} ({event.reason})"


def _alerts_table(found: Iterable[Alert]) -> RenderableType:
    table = plain_table("id", "name", "query", "streams", "floor", "webhook")
    for each in found:
        floor = "words" if each.floor is None else f"{each.floor:.2f}"
        streams = str(len(each.streams)) if each.streams else "all"
        query = cell(each.query, limit=TEXT)
        table.add_row(cell(each.id), cell(each.name), query, streams, floor, cell(each.webhook or ""))
    return table
