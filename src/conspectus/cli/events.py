"""events: manage the events of streams."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType

from conspectus.cli.command import Command
from conspectus.cli.output import cell, rows_table
from conspectus.cli.session import Opening
from conspectus.cli.streams import MAX_TEXT_LENGTH
from conspectus.model.stream_events import EventSpan


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
    "add": Command(
        "streams:EventService.add", "Add an event to a stream.", "{result.outcome} {result.id}",
        element="events", arguments={"stream": "STREAM", "type": "TYPE"},
        only="start end description entities key",
        options={"start": "--from", "end": "--to", "entities": "--entity"}, opening=Opening(new=True),
    ),
    "list": Command(
        "streams:EventService.list", "List the events of a stream. Adjacent ones are merged.", _events_table,
        only="start end type", options={"start": "--from", "end": "--to"}, limit=100,
        nothing="no events",
    ),
}  # fmt: skip
