"""Bodies of chats."""

from typing import Annotated, Literal

from pydantic import Field

from conspectus.deferred import dataclass
from conspectus.model import parameters
from conspectus.model.chat import Allocation, ChatRequest, Citations, ContextForm, Failure, Sources, Usage
from conspectus.model.filter import EVERYTHING
from conspectus.model.filter_json import filter_from_json
from conspectus.model.query import EVERYWHERE
from conspectus.model.results import Message
from conspectus.model.trust import MinTrust
from conspectus.web.schemas.base import (
    Finite,
    MinConfidence,
    MinSimilarity,
    Name,
    Question,
    RequestModel,
    Tokens,
    Where,
)
from conspectus.web.schemas.documents import QueryContextBody

MAX_TURNS = 10_000
MAX_CONTEXT = 5_000
DEFAULT_ALLOCATION = Allocation()
ContextTokens = Annotated[int, Field(ge=0, le=MAX_CONTEXT)]
ChatEvents = Literal["all", "text"]
Temperature = Annotated[Finite, Field(ge=0.0, le=2.0)]
_NOT_AS_GIVEN = frozenset({"history", "filter", "budget", "query_context", "stream", "events"})
"""Fields that a request has in another form, or not at all."""


class TurnBody(RequestModel):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: Question


class AllocationBody(RequestModel):
    """Tokens for each part of the prompt, and for the answer."""

    system: Tokens = DEFAULT_ALLOCATION.system
    context: ContextTokens = DEFAULT_ALLOCATION.context
    question: Tokens = DEFAULT_ALLOCATION.question
    answer: Tokens = DEFAULT_ALLOCATION.answer
    history: Tokens = DEFAULT_ALLOCATION.history


class ChatBody(RequestModel):
    """A message with the earlier turns, oldest first, and what may be looked at for an answer."""

    message: str = Field(
        min_length=1,
        max_length=parameters.MAX_QUERY,
        description="Message to answer.",
        examples=["When does the backup run?"],
    )
    history: list[TurnBody] = Field(default_factory=list, max_length=MAX_TURNS)
    collection: Name = EVERYWHERE
    filter: Where | None = None
    use_context: bool | None = Field(None, description="Look for context; by default as the server is set.")
    instructions: Question | None = Field(None, description="What the model is told instead of the usual.")
    budget: AllocationBody = Field(default_factory=AllocationBody)
    min_similarity: MinSimilarity | None = 0.25
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrust | None = None
    query_context: QueryContextBody | None = None
    format: ContextForm | None = Field(
        None, description="How context is written; by default as the server is set."
    )
    temperature: Temperature | None = None
    store_in: Name | None = Field(None, description="A channel to store message and answer in.")
    session: Name | None = Field(
        None,
        description="An id of the conversation, whose messages begin with the same context.",
    )
    stream: bool = Field(True, description="Answer with events as they come, not with one object at the end.")
    events: ChatEvents | None = Field(
        None, description="`text`: events with text only, and `[DONE]`; by default as the server is set."
    )

    def request(self) -> ChatRequest:
        """As the engine takes it."""
        named = {name: getattr(self, name) for name in type(self).model_fields if name not in _NOT_AS_GIVEN}
        return ChatRequest(
            **named,
            history=tuple(Message(turn.role, turn.content) for turn in self.history),
            filter=EVERYTHING if self.filter is None else filter_from_json(self.filter),
            allocation=Allocation(**self.budget.model_dump()),
            query_context=None if self.query_context is None else self.query_context.to_query_context(),
        )


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole answer; `failure` says what went wrong after it, as that it could not be kept."""

    answer: str
    sources: Sources
    citations: Citations
    usage: Usage | None
    failure: Failure | None
