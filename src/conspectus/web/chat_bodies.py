"""Bodies of chats: a message with its options, and the whole answer."""

from typing import Annotated, Literal

from pydantic import Field

from conspectus.deferred import dataclass
from conspectus.model import parameters
from conspectus.model.chat import Allocation, ChatRequest, Citations, ContextForm, Failure, Sources, Usage
from conspectus.model.filter import EVERYTHING
from conspectus.model.filter_json import filter_from_json
from conspectus.model.query import QueryContext
from conspectus.model.results import Message
from conspectus.model.trust import MinTrust
from conspectus.operations.declared import declared
from conspectus.web.operation_schemas import AsRequested
from conspectus.web.schemas.base import RequestModel, Where

DEFAULTS = ChatRequest("usual")
"""A request with the defaults of all fields but the message."""
ChatEvents = Literal["all", "text"]
_CONVERTED = frozenset({"history", "filter", "budget", "stream", "events"})
"""Fields of a body that a request of the engine has in another form, or not at all."""


class TurnBody(RequestModel):
    """An earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    content: str = Field(max_length=parameters.MAX_QUERY, description="Text of the turn.")


class ChatBody(RequestModel):
    """A message with the earlier turns, oldest first, and what may be looked at for an answer."""

    message: Annotated[str, declared(ChatRequest, "message")]
    history: Annotated[list[TurnBody], declared(ChatRequest, "history")] = Field(default_factory=list)
    collection: Annotated[str, declared(ChatRequest, "collection")] = DEFAULTS.collection
    filter: Where | None = None
    use_context: Annotated[bool | None, declared(ChatRequest, "use_context")] = None
    instructions: Annotated[str | None, declared(ChatRequest, "instructions")] = None
    budget: Annotated[Allocation, AsRequested, declared(ChatRequest, "allocation")] = DEFAULTS.allocation
    min_similarity: Annotated[float, declared(ChatRequest, "min_similarity")] | Literal["default"] | None = (
        DEFAULTS.min_similarity
    )
    min_confidence: Annotated[float, declared(ChatRequest, "min_confidence")] = DEFAULTS.min_confidence
    min_trust: Annotated[MinTrust | None, declared(ChatRequest, "min_trust")] = None
    query_context: Annotated[
        Annotated[QueryContext, AsRequested] | None, declared(ChatRequest, "query_context")
    ] = None
    format: Annotated[ContextForm | None, declared(ChatRequest, "format")] = None
    temperature: Annotated[float | None, declared(ChatRequest, "temperature")] = None
    store_in: Annotated[str | None, declared(ChatRequest, "store_in")] = None
    session: Annotated[str | None, declared(ChatRequest, "session")] = None
    stream: bool = Field(True, description="Answer with events as they come, not with one object at the end.")
    events: ChatEvents | None = Field(
        None, description="`text`: events with text only, and `[DONE]`; by default as the server is set."
    )

    def request(self) -> ChatRequest:
        """Return the request as the engine takes it."""
        named = {name: getattr(self, name) for name in type(self).model_fields if name not in _CONVERTED}
        return ChatRequest(
            **named,
            history=tuple(Message(turn.role, turn.content) for turn in self.history),
            filter=EVERYTHING if self.filter is None else filter_from_json(self.filter),
            allocation=self.budget,
        )


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole answer; `failure` says what went wrong after it, such as that it could not be stored."""

    answer: str
    sources: Sources
    citations: Citations
    usage: Usage | None
    failure: Failure | None
