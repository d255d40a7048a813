"""Windows of streams."""

from conspectus.engine.stream_reader import as_caption
from conspectus.model.streams import StreamWindow
from conspectus.text.times import clock_of
from conspectus.web.schemas.base import ResponseModel
from conspectus.web.schemas.records import DocumentAnswer, SourceAnswer
from conspectus.web.schemas.search import WindowAnswer


class ShownCaptionAnswer(DocumentAnswer):
    """A caption that a window shows: in seconds on its stream's clock, and as a timecode or an instant."""

    start: float | None
    end: float | None
    start_text: str | None
    end_text: str | None


class VideoWindowAnswer(ResponseModel):
    """Context for a question about streams: captions in the order of the window, and whose they are."""

    captions: list[ShownCaptionAnswer]
    streams: list[SourceAnswer]
    plan: dict[str, str]
    window: WindowAnswer

    @classmethod
    def of(cls, found: StreamWindow) -> "VideoWindowAnswer":
        """The window, with the times of its captions as people read them."""
        clocks = {each.id: clock_of(each) for each in found.streams}
        captions = []
        for each in found.captions:
            timed = as_caption(each, "", clocks[each.source])
            times = {name: getattr(timed, name) for name in ("start", "end", "start_text", "end_text")}
            captions.append(ShownCaptionAnswer(**DocumentAnswer.model_validate(each).model_dump(), **times))
        return cls(
            captions=captions,
            streams=[SourceAnswer.model_validate(each) for each in found.streams],
            plan=dict(found.plan),
            window=WindowAnswer.model_validate(found.window),
        )
