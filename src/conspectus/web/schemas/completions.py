"""Chats in the form that clients of OpenAI speak, as far as it is understood here."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from conspectus.errors import InvalidInput
from conspectus.model.chat import Allocation, ChatRequest
from conspectus.model.filter import EVERYTHING
from conspectus.model.filter_json import filter_from_json
from conspectus.model.query import EVERYWHERE
from conspectus.model.results import Message
from conspectus.settings import Settings
from conspectus.web.schemas.asking import MOST_TOKENS
from conspectus.web.schemas.base import LONGEST_QUESTION, Answer, Body, Count, Name, Where
from conspectus.web.schemas.chat import (
    MOST_TURNS,
    USUAL,
    ChatSourceAnswer,
    ContextTokens,
    SourcesAnswer,
    Temperature,
)

NOT_KNOWN: Final[Mapping[str, Sequence[object]]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "response_format": ({"type": "text"},),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "web_search_options": (),
}
"""What would change the answer and cannot be done, with values that ask for nothing. All else is ignored."""
LONGEST_ANSWER: Final = 4_096
"""What an answer may cost where the client does not say, and the window has room for four of them."""
INSTRUCTING: Final = frozenset({"system", "developer"})

Said = Annotated[str, Field(max_length=LONGEST_QUESTION)]
StopText = Annotated[str, Field(min_length=1, max_length=100)]
AnswerTokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]


class PartBody(BaseModel):
    """A part of a message's content."""

    type: str
    text: Said | None = None


class ChatMessageBody(BaseModel):
    """A message; what else clients say of one is ignored, unless it cannot be left out."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Said | list[PartBody] | None = None
    tool_calls: list[Any] | None = Field(None, max_length=MOST_TURNS)
    function_call: Any = None

    def words(self, place: int) -> str:
        """The text of it. Raises InvalidInput for what is not text."""
        if self.tool_calls or self.function_call:
            raise InvalidInput(f"messages.{place}", "calls a tool, which is not supported by this server")
        if isinstance(self.content, str):
            return self.content
        parts = self.content or []
        for part in parts:
            if part.type != "text" or part.text is None:
                reason = f"only text is read here, not {part.type!r:.40}"
                raise InvalidInput(f"messages.{place}.content", reason)
        return "\n".join(part.text for part in parts if part.text)


class StreamOptionsBody(BaseModel):
    """What is told beside a streamed answer."""

    include_usage: bool | None = False


class ContextOptionsBody(Body):
    """What may be looked at for an answer, in a field of our own."""

    collection: Name = EVERYWHERE
    where: Where | None = None
    inject: bool | None = None
    context: ContextTokens = USUAL.context


class CompletionBody(BaseModel):
    """A chat as clients of OpenAI ask for it. `model` may be anything: the server has one."""

    model_config = ConfigDict(extra="allow", strict=True)

    messages: list[ChatMessageBody] = Field(min_length=1, max_length=MOST_TURNS)
    model: str | None = None
    stream: bool | None = False
    stream_options: StreamOptionsBody | None = None
    temperature: Temperature | None = None
    max_tokens: AnswerTokens | None = None
    max_completion_tokens: AnswerTokens | None = None
    stop: StopText | Annotated[list[StopText], Field(max_length=4)] | None = None
    conspectus: ContextOptionsBody = ContextOptionsBody()

    @property
    def stops(self) -> Sequence[str]:
        """The texts that end the answer."""
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    @property
    def wants_usage(self) -> bool:
        """Whether a streamed answer is to end with its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def request(self, settings: Settings) -> ChatRequest:
        """As the engine takes it. Raises InvalidInput for what cannot be done."""
        for name, value in (self.model_extra or {}).items():
            if name in NOT_KNOWN and value is not None and value not in NOT_KNOWN[name]:
                raise InvalidInput(name, "is not supported by this server; leave it out")
        said = [Message(each.role, each.words(place)) for place, each in enumerate(self.messages)]
        if said[-1].role != "user" or not said[-1].content.strip():
            raise InvalidInput("messages", "the last one must be what the user says")
        instructions = "\n\n".join(each.content for each in said if each.role in INSTRUCTING)
        turns = [each for each in said[:-1] if each.role not in INSTRUCTING and each.content]
        looking = self.conspectus
        return ChatRequest(
            message=said[-1].content,
            history=tuple(turns[-settings.max_history_turns :]),
            collection=looking.collection,
            where=EVERYTHING if looking.where is None else filter_from_json(looking.where),
            inject=looking.inject,
            instructions=instructions or None,
            allocation=self.allocation(settings.chat_window, own_instructions=bool(instructions)),
            temperature=self.temperature,
        )

    def allocation(self, window: int, *, own_instructions: bool) -> Allocation:
        """The window's tokens: the client's instructions take what they need, the history what is left."""
        most = self.max_completion_tokens or self.max_tokens or min(LONGEST_ANSWER, window // 4)
        context = self.conspectus.context
        left = window - USUAL.system - context - USUAL.question - most
        system = window if own_instructions else USUAL.system
        return Allocation(system=system, context=context, answer=most, history=max(0, left))


class CompletionMessageAnswer(Answer):
    """What the model says."""

    role: Literal["assistant"] = "assistant"
    content: str


class ChoiceAnswer(Answer):
    """The one answer."""

    index: Literal[0] = 0
    message: CompletionMessageAnswer
    finish_reason: Literal["stop", "length"]


class CompletionUsageAnswer(Answer):
    """Tokens that were used."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


class GivenAnswer(SourcesAnswer):
    """What the model was given, and what its answer cites of it."""

    cited: list[ChatSourceAnswer]
    invented: list[str]


class CompletionAnswer(Answer):
    """A whole answer in OpenAI's form, with what it is made from in a field of our own."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChoiceAnswer]
    usage: CompletionUsageAnswer | None
    conspectus: GivenAnswer


class ModelAnswer(Answer):
    """The model that the server asks."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class ModelsAnswer(Answer):
    """The model that the server asks, if it has one."""

    object: Literal["list"] = "list"
    data: list[ModelAnswer]


class OpenAIError(Answer):
    """What went wrong, in OpenAI's form."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIProblem(Answer):
    """An error in OpenAI's form."""

    error: OpenAIError
