"""Options that commands about streams share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.failures import NOTHING
from conspectus.cli.output import note, show
from conspectus.cli.session import Session
from conspectus.model.video import Caption, CaptionRange

PAGE = 1_000
TIME = "seconds, a timecode such as 00:12:30, or an ISO 8601 time"
Stream = Annotated[str, typer.Argument(metavar="STREAM", help="Name or id of a stream.")]


@dataclass(frozen=True, slots=True)
class Within:
    """Which stretch of a stream."""

    start: Annotated[str | None, typer.Option("--from", help=f"From when on: {TIME}.")] = None
    end: Annotated[str | None, typer.Option("--to", help="Until when, as --from.")] = None

    def range(self, *, contains: bool = False) -> CaptionRange:
        """As the engine takes it."""
        return CaptionRange(self.start, self.end, contains)


def show_found(found: Sequence[object], table: RenderableType, nothing: str, *, as_json: bool) -> None:
    """Print what was found; where nothing was, say so and end with the code for it."""
    if found or as_json:
        show(found, table, as_json=as_json)
    if not found:
        if not as_json:
            note(nothing)
        raise typer.Exit(NOTHING)


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
