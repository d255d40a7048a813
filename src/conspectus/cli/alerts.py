"""alerts: manage alerts for new captions, and watch their matches."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated, Final

import typer
from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.declared import option
from conspectus.cli.output import cell, dump_line, note, rows_table, write
from conspectus.cli.session import Opening, Session
from conspectus.cli.streams import MAX_TEXT_LENGTH
from conspectus.deferred import dataclass
from conspectus.model.alerts import Alert, AlertEvent
from conspectus.model.streams import Stream as StoredStream
from conspectus.operations.operation import REQUIRED
from conspectus.streams.caption_format import format_time
from conspectus.text.stream_clocks import StreamClock, clock_of

SUBSCRIBE: Final = "engine.alerts:AlertService.subscribe"


@dataclass(frozen=True, slots=True)
class Matching:
    """How captions are matched."""

    keywords_only: Annotated[
        bool, typer.Option("--keywords-only", help="Match only captions with all words of the query.")
    ] = False


def _match_keywords(_: Session, arguments: Arguments) -> None:
    if arguments["extra"].keywords_only:
        arguments["min_similarity"] = None


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
    "add": Command(
        "alerts:AlertService.put", "Create an alert for new captions.", "created {result.id}",
        arguments={"name": "NAME", "query": "QUERY"}, defaults={"query": REQUIRED},
        options={"streams": "--stream", "gap_seconds": "--merge-seconds"}, extra=Matching,
        prepare=_match_keywords, opening=Opening(new=True),
    ),
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
