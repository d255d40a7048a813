"""Streams of captions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from conspectus.model.records import Written
from conspectus.model.streams import (
    Caption,
    CaptionPage,
    CaptionRange,
    Moment,
    Moments,
    NewCaption,
    Stream,
    StreamWindow,
)
from conspectus.streams.caption_format import shown
from conspectus.text.times import StreamClock, clock_of
from conspectus.web.schemas.base import (
    INT64,
    Count,
    Finite,
    Int64,
    JsonObject,
    Label,
    RequestModel,
    ResponseModel,
    Text,
)
from conspectus.web.schemas.records import DocumentAnswer, SourceAnswer, WrittenAnswer
from conspectus.web.schemas.search import (
    MOST_DIMENSIONS,
    WindowAnswer,
)

MOST_CAPTIONS = 10_000
MOST_ENTITIES = 1_000
MOST_STREAMS = 1_000
LONGEST_TIME = 100
WHEN = "Seconds or a timecode on the stream's clock, or an ISO 8601 instant."
When = Annotated[
    Annotated[str, Field(max_length=LONGEST_TIME)]
    | Annotated[float, Field(strict=True, allow_inf_nan=False)],
    Field(description=WHEN, examples=["00:12:30"]),
]


class StreamAnswer(ResponseModel):
    """A stream: `first` and `last` bound its captions; `wall` says that its times are of the calendar."""

    source: SourceAnswer
    title: str
    origin: datetime
    zone: str
    live: bool
    wall: bool
    captions: Count
    first: datetime | None
    last: datetime | None
    first_text: str | None
    last_text: str | None

    @classmethod
    def of(cls, stream: Stream) -> "StreamAnswer":
        """The stream with its bounds as people read them."""
        clock = clock_of(stream.source)
        ends = [each and shown(clock.seconds(each), clock) for each in (stream.first, stream.last)]
        told = {name: getattr(stream, name) for name in cls.model_fields if not name.endswith("_text")}
        return cls(**{**told, "first_text": ends[0], "last_text": ends[1]})


class CaptionBody(RequestModel):
    """What is seen or said; with a key or an index that is stored already, another text is a conflict."""

    text: Text = Field(examples=["A red car turns left."])
    start: When | None = None
    end: When | None = None
    index: int | None = Field(None, ge=0, lt=INT64, description="Its number in the stream.")
    key: Label | None = None
    speaker: Label | None = None
    entities: list[Label] = Field(default=[], max_length=MOST_ENTITIES, examples=[["red car"]])
    metadata: JsonObject = Field(default={})
    vector: list[Finite] | None = Field(None, min_length=1, max_length=MOST_DIMENSIONS)

    def caption(self) -> NewCaption:
        """The caption as the engine takes it."""
        given = {name: getattr(self, name) for name in self.model_fields_set | {"text"}}
        given["entities"] = tuple(self.entities)
        given["vector"] = None if self.vector is None else tuple(self.vector)
        return NewCaption(**given)


class CaptionsBody(RequestModel):
    """Captions to store, in any order and any number of times."""

    captions: list[CaptionBody] = Field(max_length=MOST_CAPTIONS)
    replace: bool = Field(False, description="Let those of a stored key or index take its place.")
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class CaptionsWrittenAnswer(ResponseModel):
    """What became of captions; those that came as JSON lines are only counted."""

    added: Count
    replaced: Count
    unchanged: Count
    written: list[WrittenAnswer]

    @classmethod
    def of(cls, written: Sequence[Written]) -> "CaptionsWrittenAnswer":
        """Each, and how many there are of a kind."""
        added, replaced, unchanged = counted(written)
        told = [WrittenAnswer.model_validate(each) for each in written]
        return cls(added=added, replaced=replaced, unchanged=unchanged, written=told)


def counted(written: Sequence[Written]) -> tuple[int, int, int]:
    """How many were added, replaced and unchanged."""
    outcomes = [each.outcome for each in written]
    changed = outcomes.count("replaced") + outcomes.count("updated")
    return outcomes.count("added"), changed, outcomes.count("unchanged")


class TimedAnswer(ResponseModel):
    """From when to when: in seconds on the stream's clock, and as a timecode or an instant in its zone."""

    start: float | None
    end: float | None
    start_text: str | None
    end_text: str | None


def timed(start: float | None, end: float | None, clock: StreamClock) -> dict[str, Any]:
    """The fields of times, in both forms."""
    texts = [None if each is None else shown(each, clock) for each in (start, end)]
    return {"start": start, "end": end, "start_text": texts[0], "end_text": texts[1]}


class CaptionAnswer(TimedAnswer):
    """A stored caption."""

    document: DocumentAnswer
    text: str

    @classmethod
    def of(cls, caption: Caption, clock: StreamClock) -> "CaptionAnswer":
        """The caption with its times as people read them."""
        document = DocumentAnswer.model_validate(caption.document)
        return cls(document=document, text=caption.text, **timed(caption.start, caption.end, clock))


class CaptionPageAnswer(ResponseModel):
    """Captions in the order of time, those without times last; `next` is the cursor of the next page."""

    captions: list[CaptionAnswer]
    next: str | None

    @classmethod
    def of(cls, page: CaptionPage, clock: StreamClock) -> "CaptionPageAnswer":
        """The page with the times of its captions as people read them."""
        return cls(captions=[CaptionAnswer.of(each, clock) for each in page.captions], next=page.next)


class LiveCaptionAnswer(ResponseModel):
    """A caption as it was written; `sequence` is the id of its event."""

    sequence: int
    caption: CaptionAnswer


class CaptionFilesAnswer(ResponseModel):
    """What an import did: streams with the number of their captions; each failure with its reason."""

    streams: dict[str, Count]
    added: Count
    replaced: Count
    unchanged: Count
    failures: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    notices: list[str]
    skipped: Count


class RangeBody(RequestModel):
    """Captions that share an instant with [start, end), or lie inside it; null is open."""

    start: When | None = None
    end: When | None = None
    contains: bool = Field(False, description="Only those that lie wholly inside.")
    first: Int64 | None = Field(None, description="The first index, included.")
    last: Int64 | None = Field(None, ge=-1, description="The last index, included; -1 is the end.")

    def range(self) -> CaptionRange:
        """The range as the engine takes it."""
        return CaptionRange(**self.model_dump())


class MomentAnswer(TimedAnswer):
    """A stretch of a stream; `score` is the sum of `parts`."""

    stream: SourceAnswer
    captions: list[CaptionAnswer]
    score: float
    parts: dict[str, float]

    @classmethod
    def of(cls, moment: Moment) -> "MomentAnswer":
        """The moment with its times as people read them."""
        clock = clock_of(moment.stream)
        return cls(
            stream=SourceAnswer.model_validate(moment.stream),
            captions=[CaptionAnswer.of(each, clock) for each in moment.captions],
            score=moment.score,
            parts=dict(moment.parts),
            **timed(moment.start, moment.end, clock),
        )


class MomentsAnswer(ResponseModel):
    """What was found, best first; `plan` says how the question was read, its time range too."""

    outcome: Literal["found", "no_match"]
    moments: list[MomentAnswer]
    plan: dict[str, str]
    notices: list[str]
    timings: dict[str, float]

    @classmethod
    def of(cls, found: Moments) -> "MomentsAnswer":
        """What was found, with times as people read them."""
        told = {name: getattr(found, name) for name in cls.model_fields if name != "moments"}
        return cls(**{**told, "moments": [MomentAnswer.of(each) for each in found.moments]})


class ShownCaptionAnswer(DocumentAnswer, TimedAnswer):
    """A caption that a window shows."""


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
            when, clock = each.occurred, clocks[each.source]
            ends = [None, None] if when is None else [clock.seconds(when.start), clock.seconds(when.end)]
            told = DocumentAnswer.model_validate(each).model_dump()
            captions.append(ShownCaptionAnswer(**told, **timed(ends[0], ends[1], clock)))
        return cls(
            captions=captions,
            streams=[SourceAnswer.model_validate(each) for each in found.streams],
            plan=dict(found.plan),
            window=WindowAnswer.model_validate(found.window),
        )
