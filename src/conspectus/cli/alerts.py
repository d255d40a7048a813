"""alerts: manage alerts for new captions, and watch their matches."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import field
from typing import Annotated, Final

import typer
from rich.console import RenderableType

from conspectus.cli.declared import argument, option
from conspectus.cli.derived import Command
from conspectus.cli.options import (
    Filter,
)
from conspectus.cli.output import cell, dump_line, note, rows_table, write
from conspectus.cli.session import NewSession, Session
from conspectus.cli.streams import MAX_TEXT_LENGTH
from conspectus.deferred import dataclass
from conspectus.model.alerts import Alert, AlertEvent, NewAlert
from conspectus.model.filter_json import parse_filters
from conspectus.model.streams import Stream as StoredStream
from conspectus.streams.caption_format import format_time
from conspectus.text.stream_clocks import StreamClock, clock_of

SUBSCRIBE: Final = "engine.alerts:AlertService.subscribe"


USUAL_ALERT = NewAlert("usual")


@dataclass(frozen=True, slots=True)
class Watched:
    """Options that select the captions of an alert, and its webhook."""

    stream: Annotated[list[str], option(NewAlert, "streams")] = field(default_factory=list)
    filter: Filter = field(default_factory=list)
    min_similarity: Annotated[float, option(NewAlert, "min_similarity")] = 0.5
    keywords_only: Annotated[
        bool, typer.Option("--keywords-only", help="Match only captions with all words of the query.")
    ] = False
    merge_seconds: Annotated[float, option(NewAlert, "gap_seconds")] = USUAL_ALERT.gap_seconds
    webhook: Annotated[str | None, option(NewAlert, "webhook")] = None


def add_alert(
    name: Annotated[str, argument(NewAlert, "name")],
    query: Annotated[str, argument(NewAlert, "query")],
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


def _alerts_table(alerts: Sequence[Alert]) -> RenderableType:
    rows = (
        (
            alert.id, alert.name, cell(alert.query, limit=MAX_TEXT_LENGTH),
            str(len(alert.streams)) if alert.streams else "all",
            "keywords" if alert.min_similarity is None else f"{alert.min_similarity:.2f}", alert.webhook,
        )
        for alert in alerts
    )  # fmt: skip
    return rows_table(("id", "name", "query", "streams", "min similarity", "webhook"), rows)


def watch_alerts(
    session: Session,
    *,
    alert: Annotated[str | None, option(SUBSCRIBE, "alert")] = None,
    after: Annotated[int | None, option(SUBSCRIBE, "after")] = None,
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


ALERTS_COMMANDS: Final = {
    "add": add_alert,
    "list": Command(
        "alerts:AlertService.list", "List your alerts.", _alerts_table, limit=100, nothing="no alerts",
        any_collection=True,
    ),
    "delete": Command(
        "alerts:AlertService.delete", "Delete an alert with its matches.", "deleted {alert}",
        document={"deleted": "alert"},
    ),
    "watch": watch_alerts,
}  # fmt: skip
