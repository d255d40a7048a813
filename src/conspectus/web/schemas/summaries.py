"""Summaries of streams."""

from typing import Annotated, Literal

from pydantic import Field

from conspectus.model.streams import BatchSummary, CaptionRange, Summary, SummaryMode, SummaryRequest
from conspectus.streams.caption_format import shown
from conspectus.streams.summary_runner import MOST_BATCH, MOST_SENTENCES
from conspectus.text.times import StreamClock
from conspectus.web.schemas.base import Count, JsonObject, RequestModel, ResponseModel
from conspectus.web.schemas.streams import RangeBody, TimedAnswer

LONGEST_PROMPT = 100_000
Prompt = Annotated[str, Field(max_length=LONGEST_PROMPT, description="What matters.")]
BatchSize = Annotated[int, Field(ge=1, le=MOST_BATCH, description="Captions that are summarised together.")]
Sentences = Annotated[int, Field(ge=1, le=MOST_SENTENCES, description="Most captions that are chosen.")]
Extractive = Annotated[bool, Field(description="Choose captions, and ask no model.")]


class StandingSummaryBody(RequestModel):
    """What to summarise of a stream, and how."""

    range: RangeBody | None = None
    mode: SummaryMode = Field("batches", description="Or refine: one summary, improved with each batch.")
    batch_size: BatchSize = 6
    prompt: Prompt = ""
    form: JsonObject | None = Field(None, alias="schema", description="A JSON Schema that answers satisfy.")
    extractive: Extractive = False
    sentences: Sentences = 10

    def request(self, stream: str, collection: str) -> SummaryRequest:
        """The request as the engine takes it."""
        return SummaryRequest(
            stream,
            collection,
            CaptionRange() if self.range is None else self.range.range(),
            self.mode,
            self.batch_size,
            self.prompt,
            self.form,
            self.extractive,
            self.sentences,
        )


class SummaryBody(StandingSummaryBody):
    """The same, answered with the summary, or at once with the job that makes it."""

    wait: bool = Field(True, description="Answer when it is made; else with a job.")


class BatchSummaryAnswer(TimedAnswer):
    """What one batch came to; a failed one has the code and the words of its error."""

    number: int
    captions: Count
    state: Literal["done", "failed"]
    text: str
    code: str | None
    error: str | None

    @classmethod
    def of(cls, batch: BatchSummary, clock: StreamClock) -> "BatchSummaryAnswer":
        """The batch with its times as people read them."""
        ends = [None if each is None else shown(each, clock) for each in (batch.start, batch.end)]
        told = {name: getattr(batch, name) for name in cls.model_fields if not name.endswith("_text")}
        return cls(**told, start_text=ends[0], end_text=ends[1])


class SummaryAnswer(ResponseModel):
    """A summary: `partial` where batches failed, `empty` where there are no captions.

    `by` is a model, or `extractive`; `data` is the object where a schema was given.
    """

    outcome: Literal["complete", "partial", "empty"]
    text: str
    by: str
    batches: list[BatchSummaryAnswer]
    data: JsonObject | None
    calls: Count

    @classmethod
    def of(cls, summary: Summary, clock: StreamClock) -> "SummaryAnswer":
        """The summary with the times of its batches as people read them."""
        told = {name: getattr(summary, name) for name in cls.model_fields if name != "batches"}
        return cls(**{**told, "batches": [BatchSummaryAnswer.of(each, clock) for each in summary.batches]})
