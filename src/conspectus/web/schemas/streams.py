"""Windows of streams."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from conspectus.engine.stream_reader import as_caption
from conspectus.model.records import Document, Source
from conspectus.model.results import ContextWindow
from conspectus.model.streams import StreamWindow
from conspectus.text.times import clock_of


@dataclass(frozen=True, slots=True)
class ShownCaption(Document):
    """A caption that a window shows: in seconds on its stream's clock, and as a timecode or an instant."""

    start: float | None = None
    end: float | None = None
    start_text: str | None = None
    end_text: str | None = None


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """Context for a question about streams: captions in the order of the window, and whose they are."""

    captions: tuple[ShownCaption, ...]
    streams: tuple[Source, ...]
    plan: Mapping[str, str]
    window: ContextWindow


def shown_window(found: StreamWindow) -> ShownWindow:
    """The window, with the times of its captions as people read them."""
    clocks = {each.id: clock_of(each) for each in found.streams}
    captions = []
    for each in found.captions:
        timed = as_caption(each, "", clocks[each.source])
        told = {field.name: getattr(each, field.name) for field in fields(each)}
        told |= {name: getattr(timed, name) for name in ("start", "end", "start_text", "end_text")}
        captions.append(ShownCaption(**told))
    return ShownWindow(tuple(captions), found.streams, found.plan, found.window)
