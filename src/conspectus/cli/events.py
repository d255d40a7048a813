"""events of streams."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import show_found
from conspectus.cli.options import Common, Limit
from conspectus.cli.output import cell, plain_table, show
from conspectus.cli.session import opened
from conspectus.cli.streams import TIME, Stream, Within
from conspectus.model.streams import EventSpan, NewEvent
from conspectus.streams.caption_format import shown
from conspectus.text.times import StreamClock, clock_of

TEXT = 200


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Fields of an event."""

    end: Annotated[str | None, typer.Option("--to", help="End, as --from.")] = None
    description: Annotated[str, typer.Option(help="Description.")] = ""
    entity: Annotated[list[str], typer.Option(help="Entity that took part; repeatable.")] = field(
        default_factory=list
    )
    key: Annotated[str | None, typer.Option(help="Key. An event with this key is replaced.")] = None


def add(
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
        clock = clock_of(session.engine.streams.get(stream, collection=session.collection).source)
        found = session.engine.events.list(
            stream=stream, collection=session.collection, within=within.range(), type=type
        )
    found = found[:limit]
    show_found(found, _table(found, clock), "no events", as_json=common.json)


def _table(found: Iterable[EventSpan], clock: StreamClock) -> RenderableType:
    table = plain_table("type", "from", "to", "reports", "entities", "description")
    for each in found:
        times = [cell(shown(second, clock)) for second in (each.start, each.end)]
        said = cell("; ".join(each.descriptions), limit=TEXT)
        table.add_row(cell(each.type), *times, str(len(each.documents)), cell(", ".join(each.entities)), said)
    return table
