"""Summaries of ranges of streams."""

from typing import Annotated, Literal, TypedDict

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.captions import WHOLE, CaptionRange
from conspectus.model.checks import Checked
from conspectus.model.parameters import (
    CollectionName,
    EndText,
    PersonName,
    StartText,
    StoredText,
    StreamName,
)
from conspectus.model.records import Metadata
from conspectus.model.trust import Trust

SummaryMode = Literal["batches", "refine"]
SummaryState = Literal["done", "failed"]


@dataclass(frozen=True, slots=True)
class SummaryRequest(Checked):
    """A request to summarize the captions of a range of one stream, `batch_size` at a time.

    `batches` summarizes each batch, and then all of these together; `refine` goes through the captions in
    order and improves one summary with each batch. `instructions` are added to the prompt. With a JSON
    `schema` the summary is an object that satisfies it. Without a chat model, or with `extractive`, at most
    `sentences` captions are selected instead.
    """

    stream: StreamName
    collection: CollectionName = "default"
    range: Annotated[CaptionRange, "Captions that are summarized."] = WHOLE
    mode: Annotated[SummaryMode, "Summarize batches and join them, or refine one summary."] = "batches"
    batch_size: Annotated[int, Range(1, 1_024), "Captions that are summarized together."] = 6
    instructions: Annotated[str, Length(0, 100_000), "What matters.", Example("Name the decisions.")] = ""
    schema: Annotated[Metadata | None, "JSON schema of the summary."] = None
    extractive: Annotated[bool, "Choose captions instead of asking a chat model."] = False
    sentences: Annotated[int, Range(1, 1_000), "Most captions that are chosen."] = 10


class SummaryRequestOptions(TypedDict, total=False):
    """The fields of a SummaryRequest besides `stream`, as keyword arguments."""

    collection: str
    range: CaptionRange
    mode: SummaryMode
    batch_size: int
    instructions: str
    schema: Metadata | None
    extractive: bool
    sentences: int


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The summary of one batch: its time range (seconds), number of captions, state and text.

    A failed batch has the code and the message of its error instead of a text.
    """

    number: int
    start: float | None
    end: float | None
    captions: int
    state: SummaryState
    text: StoredText
    code: str | None = None
    error: str | None = None
    start_text: StartText | None = None
    end_text: EndText | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a range of a stream: `by` is a model's name, or `extractive`.

    `outcome` is `empty` if there are no captions, and `partial` if `failures` are left out. `data` is the
    object if a schema was given. `calls` counts the calls of the model for this answer. `trust` is the lowest
    level of its captions.
    """

    outcome: Literal["complete", "partial", "empty"]
    text: StoredText
    by: PersonName
    batches: tuple[BatchSummary, ...]
    data: Metadata | None = None
    calls: int = 0
    trust: Trust = "trusted"

    @property
    def failures(self) -> tuple[BatchSummary, ...]:
        """The batches that could not be summarized."""
        return tuple(batch for batch in self.batches if batch.state == "failed")
