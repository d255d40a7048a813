"""video timeline."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated

import typer

from conspectus.cli.failures import NOTHING
from conspectus.cli.options import Common
from conspectus.cli.output import note, show
from conspectus.cli.pictures import Lane, Picture, Span
from conspectus.cli.session import Session, opened
from conspectus.cli.video_options import Stream, Within, captions_of
from conspectus.model.video import Caption, CaptionRange
from conspectus.model.video import Stream as StoredStream
from conspectus.text.clocks import StreamClock, clock_of

MOST_ENTITIES = 8


@dataclass(frozen=True, slots=True)
class Shown:
    """Whose lines are drawn; without any, all types of events and the names that come most often."""

    entity: Annotated[
        list[str], typer.Option(help="When this is seen, said to be there, or named; may be repeated.")
    ] = field(default_factory=list)
    type: Annotated[list[str], typer.Option(help="Events of this type; may be repeated.")] = field(
        default_factory=list
    )


def timeline(stream: Stream, common: Common, within: Within, chosen: Shown) -> None:
    """Draw what happens when in a stream, and how densely it is captioned."""
    with opened(common) as session:
        found = session.engine.find_stream(stream, collection=session.collection)
        span = within.range()
        captions = [*captions_of(session, stream, span)]
        lanes = [*_events(session, stream, span, chosen), *_entities(session, stream, span, chosen)]
    picture = _picture(found, span, _spans(captions), lanes)
    drawn = picture.captions or any(lane.spans for lane in lanes)
    if drawn or common.json:
        show(_told(picture), picture, as_json=common.json)
    if not drawn:
        if not common.json:
            note("there is nothing with a time")
        raise typer.Exit(NOTHING)


def _events(session: Session, stream: str, within: CaptionRange, chosen: Shown) -> list[Lane]:
    """A line for each type of event."""
    if chosen.entity and not chosen.type:
        return []
    spans: dict[str, list[Span]] = {each: [] for each in chosen.type}
    for each in session.engine.events(stream=stream, collection=session.collection, within=within):
        if not chosen.type or each.type in spans:
            spans.setdefault(each.type, []).append((each.start, each.end))
    return [Lane(name, found) for name, found in sorted(spans.items())]


def _entities(session: Session, stream: str, within: CaptionRange, chosen: Shown) -> list[Lane]:
    """A line for each name that is asked for, or that comes most often."""
    names = chosen.entity
    if not names and not chosen.type:
        counts = session.engine.entities(stream=stream, collection=session.collection, within=within)
        often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        names = [name for name, _ in islice(often, MOST_ENTITIES)]
    return [
        Lane(
            name,
            [
                (each.start, each.end)
                for each in session.engine.entity_timeline(
                    name, stream=stream, collection=session.collection, within=within
                )
            ],
        )
        for name in names
    ]


def _picture(
    stream: StoredStream, within: CaptionRange, captions: Sequence[Span], lanes: Sequence[Lane]
) -> Picture:
    clock = clock_of(stream.source)
    everything = [*captions, *(span for lane in lanes for span in lane.spans)]
    earliest = min((start for start, _ in everything), default=0.0)
    first = _second(within.start, clock, earliest if stream.wall else 0.0)
    last = _second(within.end, clock, max((end for _, end in everything), default=first))
    name = stream.title or stream.source.name
    return Picture(name, clock, first, max(first, last), captions, lanes)


def _second(when: object, clock: StreamClock, otherwise: float) -> float:
    return clock.seconds(clock.instant(when)) if isinstance(when, str) else otherwise


def _spans(captions: Sequence[Caption]) -> list[Span]:
    return [
        (each.start, each.start if each.end is None else each.end)
        for each in captions
        if each.start is not None
    ]


def _told(picture: Picture) -> dict[str, object]:
    lanes = {lane.name: lane.spans for lane in picture.lanes}
    return {"first": picture.first, "last": picture.last, "captions": picture.captions, "lanes": lanes}
