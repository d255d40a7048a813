"""events: manage the events of streams."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Final

from rich.console import RenderableType

from conspectus.cli.declared import argument, option
from conspectus.cli.derived import Command
from conspectus.cli.output import cell, rows_table
from conspectus.cli.session import NewSession
from conspectus.cli.streams import MAX_TEXT_LENGTH, Stream
from conspectus.deferred import dataclass
from conspectus.model.stream_events import EventSpan, NewEvent


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Fields of an event."""

    end: Annotated[str | None, option(NewEvent, "end", "--to")] = None
    description: Annotated[str, option(NewEvent, "description")] = ""
    entity: Annotated[list[str], option(NewEvent, "entities")] = field(default_factory=list)
    key: Annotated[str | None, option(NewEvent, "key")] = None


def add_event(
    stream: Stream,
    type: Annotated[str, argument(NewEvent, "type")],
    session: NewSession,
    options: EventOptions,
    *,
    start: Annotated[str, option(NewEvent, "start", "--from")],
) -> None:
    """Add an event to a stream."""
    event = NewEvent(type, start, options.end, options.description, tuple(options.entity), options.key)
    [written] = session.engine.events.add(event, stream=stream, collection=session.collection)
    session.show(written, f"{written.outcome} {written.id}")


def _events_table(events: Sequence[EventSpan]) -> RenderableType:
    rows = (
        (
            event.type, event.start_text, event.end_text, str(len(event.documents)), event.entities,
            cell("; ".join(event.descriptions), limit=MAX_TEXT_LENGTH),
        )
        for event in events
    )  # fmt: skip
    return rows_table(("type", "from", "to", "reports", "entities", "description"), rows)


EVENTS_COMMANDS: Final = {
    "add": add_event,
    "list": Command(
        "streams:EventService.list", "List the events of a stream. Adjacent ones are merged.", _events_table,
        only="start end type", options={"start": "--from", "end": "--to"}, limit=100,
        nothing="no events",
    ),
}  # fmt: skip
