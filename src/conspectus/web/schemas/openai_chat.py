"""Chats and embeddings in the form that clients of OpenAI speak, as far as it is understood here."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.ingest.embedding_queue import GivenVectors
from conspectus.model import parameters
from conspectus.model.chat import (
    MAX_TURNS,
    Allocation,
    ChatRequest,
    ChatSource,
    Citations,
    JsonForm,
    ModelOptions,
    Sources,
    Tool,
    ToolCall,
    Turn,
)
from conspectus.model.filter import EVERYTHING
from conspectus.model.filter_json import filter_from_json
from conspectus.model.query import EVERYWHERE
from conspectus.operations.declared import INT64, declared
from conspectus.ports import Embedder
from conspectus.settings import Settings
from conspectus.web.schemas.base import (
    Count,
    Identifier,
    JsonObject,
    Name,
    RequestModel,
    ResponseModel,
    Where,
)

UNSUPPORTED_FIELDS: Final[Mapping[str, Sequence[object]]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "prediction": (),
    "top_logprobs": (0,),
    "web_search_options": (),
}
"""Unsupported fields that would change the answer, with the values that do not. Others are ignored."""
MAX_ANSWER_TOKENS: Final = 4_096
"""The default limit of an answer, but at most a quarter of the window."""
MAX_TOOLS: Final = 128
DEFAULT_ALLOCATION: Final = Allocation()
INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})

LongText = Annotated[str, Field(max_length=parameters.MAX_QUERY)]
StopText = Annotated[str, Field(min_length=1, max_length=100)]
AnswerTokens = Annotated[int, Field(ge=1, lt=INT64)]


class OpenAIModel(BaseModel):
    """A part of what clients of OpenAI send: unknown fields are ignored, other types are not converted."""

    model_config = ConfigDict(strict=True)


class PartBody(OpenAIModel):
    """A part of a message's content."""

    type: str
    text: LongText | None = None


class CalledBody(OpenAIModel):
    """The name of a tool, and its arguments as JSON."""

    name: Name
    arguments: LongText


class ToolCallBody(OpenAIModel):
    """A call of a tool."""

    id: Identifier
    type: Literal["function"] = "function"
    function: CalledBody

    def call(self) -> ToolCall:
        """Return it as the engine takes it."""
        return ToolCall(self.id, self.function.name, self.function.arguments)


class FunctionBody(OpenAIModel):
    """A tool that the client has."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: LongText | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None

    def tool(self) -> Tool:
        """Return it as the engine takes it."""
        return Tool(self.name, self.description, self.parameters or {}, self.strict)


class ToolBody(OpenAIModel):
    """A tool; there are functions only."""

    type: Literal["function"]
    function: FunctionBody


class FunctionNameBody(OpenAIModel):
    """The name of a tool."""

    name: Name


class OnlyToolBody(OpenAIModel):
    """The tool that the model must call."""

    type: Literal["function"]
    function: FunctionNameBody


class JsonSchemaBody(OpenAIModel):
    """A JSON schema with a name."""

    name: Name
    description: LongText | None = None
    form: JsonObject = Field(default={}, alias="schema")
    strict: bool | None = None


class ResponseFormatBody(OpenAIModel):
    """The form of the answer: text, any JSON object, or JSON of a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaBody | None = None

    def form(self) -> JsonForm | None:
        """Return the form as the engine takes it. Raises InvalidInput."""
        if self.type != "json_schema":
            return None if self.type == "text" else JsonForm()
        schema = self.json_schema
        if schema is None:
            raise InvalidInput("response_format.json_schema", "is missing")
        return JsonForm(schema.form, schema.name, schema.description, schema.strict)


class ChatMessageBody(OpenAIModel):
    """A message; other fields that clients send are ignored, unless they would change the answer."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: LongText | list[PartBody] | None = None
    tool_calls: list[ToolCallBody] | None = Field(None, max_length=MAX_TOOLS)
    tool_call_id: Identifier | None = None
    function_call: Any = None

    def turn(self, position: int, earlier_calls: Mapping[str, ToolCall]) -> Turn:
        """Return the turn as the engine takes it. Raises InvalidInput."""
        if self.role != "tool":
            return Turn(self.role, self.words(position), tuple(call.call() for call in self.tool_calls or ()))
        answers = earlier_calls.get(self.tool_call_id or "")
        if answers is None:
            reason = f"{self.tool_call_id!r:.80} is not the id of a tool call in an earlier message"
            raise InvalidInput(f"messages.{position}.tool_call_id", reason)
        return Turn(self.role, self.words(position), answers=answers)

    def words(self, position: int) -> str:
        """Return the text of the message. Raises InvalidInput for what is not text."""
        if self.function_call:
            raise InvalidInput(f"messages.{position}.function_call", "is not supported; use tool_calls")
        if isinstance(self.content, str):
            return self.content
        parts = self.content or []
        for part in parts:
            if part.type != "text" or part.text is None:
                reason = f"only text is read here, not {part.type!r:.40}"
                raise InvalidInput(f"messages.{position}.content", reason)
        return "\n".join(part.text for part in parts if part.text)


class StreamOptionsBody(OpenAIModel):
    """Extra data of a streamed answer."""

    include_usage: bool | None = False


class ContextOptionsBody(RequestModel):
    """The collections and filter to search, in a field of our own."""

    collection: Annotated[str, declared(ChatRequest, "collection")] = EVERYWHERE
    filter: Where | None = None
    use_context: Annotated[bool | None, declared(ChatRequest, "use_context")] = None
    context: Annotated[int, declared(Allocation, "context")] = DEFAULT_ALLOCATION.context
    session: Annotated[str | None, declared(ChatRequest, "session")] = None


class CompletionBody(OpenAIModel):
    """A chat as clients of OpenAI ask for it. `model` may be anything: the server has one."""

    model_config = ConfigDict(extra="allow")

    messages: list[ChatMessageBody] = Field(
        min_length=1,
        max_length=MAX_TURNS,
        examples=[[{"role": "user", "content": "When does the backup run?"}]],
    )
    model: str | None = None
    stream: bool | None = False
    stream_options: StreamOptionsBody | None = None
    temperature: Annotated[float | None, declared(ChatRequest, "temperature")] = None
    max_tokens: AnswerTokens | None = None
    max_completion_tokens: AnswerTokens | None = None
    stop: StopText | Annotated[list[StopText], Field(max_length=4)] | None = None
    tools: list[ToolBody] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Literal["auto", "none", "required"] | OnlyToolBody | None = None
    response_format: ResponseFormatBody | None = None
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
        """Return the request as the engine takes it. Raises InvalidInput for what cannot be done."""
        for name, value in (self.model_extra or {}).items():
            if name in UNSUPPORTED_FIELDS and value is not None and value not in UNSUPPORTED_FIELDS[name]:
                raise InvalidInput(name, "is not supported by this server; leave it out")
        conversation = self._turns()
        instructions = "\n\n".join(turn.content for turn in conversation if turn.role in INSTRUCTION_ROLES)
        turns = [turn for turn in conversation if turn.role not in INSTRUCTION_ROLES]
        last = max((position for position, turn in enumerate(turns) if turn.role == "user"), default=-1)
        if last < 0 or not turns[last].content.strip():
            raise InvalidInput(
                "messages", "the last message of the user is missing or empty; add one with the role user"
            )
        if turns[-1].calls:
            raise InvalidInput("messages", "the last one calls a tool; its result must follow")
        since = turns[last + 1 :]
        before = [turn for turn in turns[:last] if turn.content or turn.calls]
        options = self.conspectus
        return ChatRequest(
            message=turns[last].content,
            history=tuple(before[-max(1, settings.max_history_turns - len(since)) :]),
            since=tuple(since),
            options=self._options(),
            collection=options.collection,
            filter=EVERYTHING if options.filter is None else filter_from_json(options.filter),
            use_context=options.use_context,
            session=options.session,
            instructions=instructions or None,
            allocation=self.allocation(settings.chat_context_tokens, own_instructions=bool(instructions)),
            temperature=self.temperature,
        )

    def _turns(self) -> list[Turn]:
        earlier_calls: dict[str, ToolCall] = {}
        turns: list[Turn] = []
        for position, message in enumerate(self.messages):
            turns.append(message.turn(position, earlier_calls))
            earlier_calls |= {call.id: call for call in turns[-1].calls}
        return turns

    def _options(self) -> ModelOptions:
        tools = tuple(tool.function.tool() for tool in self.tools or ())
        form = None if self.response_format is None else self.response_format.form()
        choice = self.tool_choice or "auto"
        if not isinstance(choice, OnlyToolBody):
            return ModelOptions(tools, choice, form=form)
        only = choice.function.name
        if only not in {tool.name for tool in tools}:
            raise InvalidInput("tool_choice", f"{only!r:.80} is not one of the tools")
        return ModelOptions(tools, "required", only, form)

    def allocation(self, window: int, *, own_instructions: bool) -> Allocation:
        """Return the shares of the window: client instructions take all they need, the history the rest."""
        maximum = self.max_completion_tokens or self.max_tokens or min(MAX_ANSWER_TOKENS, window // 4)
        context = self.conspectus.context
        left = window - DEFAULT_ALLOCATION.system - context - DEFAULT_ALLOCATION.question - maximum
        system = window if own_instructions else DEFAULT_ALLOCATION.system
        return Allocation(system=system, context=context, answer=maximum, history=max(0, left))


class CalledAnswer(ResponseModel):
    """The name of the tool, and the arguments as JSON."""

    name: str
    arguments: str


class CallAnswer(ResponseModel):
    """A tool that the client is to call."""

    id: str
    type: Literal["function"]
    function: CalledAnswer


class CompletionMessageAnswer(ResponseModel):
    """A message of the model."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    tool_calls: list[CallAnswer] | None = None


class ChoiceAnswer(ResponseModel):
    """The one answer."""

    index: Literal[0] = 0
    message: CompletionMessageAnswer
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class CompletionUsageAnswer(ResponseModel):
    """Tokens that were used."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


@dataclass(frozen=True, slots=True)
class GivenAnswer(Sources):
    """The sources of the answer, and those that it cites."""

    cited: tuple[ChatSource, ...] = ()
    unknown: tuple[str, ...] = ()


def add_citations(sources: Sources, citations: Citations) -> GivenAnswer:
    """Return the sources of an answer with its citations."""
    source_fields = {member.name: getattr(sources, member.name) for member in fields(sources)}
    return GivenAnswer(**source_fields, cited=citations.cited, unknown=citations.unknown)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionAnswer:
    """A whole answer in OpenAI's form, with what it is made from in a field of our own."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: Sequence[ChoiceAnswer]
    usage: CompletionUsageAnswer | None
    conspectus: GivenAnswer


class ModelAnswer(ResponseModel):
    """The model that the server asks."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class ModelsAnswer(ResponseModel):
    """The model that the server asks, if it has one."""

    object: Literal["list"] = "list"
    data: list[ModelAnswer]


class OpenAIError(ResponseModel):
    """An error in OpenAI's format."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIProblem(ResponseModel):
    """An error in OpenAI's form."""

    error: OpenAIError


MAX_INPUTS: Final = 2_048
"""The limit of OpenAI, whose clients send as many; the size of a request bounds them together."""
MAX_INPUT_LENGTH: Final = 50_000

Input = Annotated[str, Field(min_length=1, max_length=MAX_INPUT_LENGTH)]
Vector = list[float] | str


class EmbeddingsBody(OpenAIModel):
    """Texts to embed. `model` may be anything: the server has one."""

    input: Input | Annotated[list[Input], Field(min_length=1, max_length=MAX_INPUTS)] = Field(
        examples=["The backup runs every night at two."]
    )
    model: str | None = Field(None, examples=["minilm"])
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)

    async def vectors(self, embedder: Embedder | None) -> list[Vector]:
        """Return the vectors as they are sent. Raises InvalidInput."""
        if embedder is None or isinstance(embedder, GivenVectors):
            raise InvalidInput(
                "model", "is not available: no embedding model is set; set CONSPECTUS_EMBEDDER"
            )
        size = embedder.space.dimensions
        if self.dimensions not in {None, size}:
            raise InvalidInput("dimensions", f"cannot be chosen; the model makes {size}")
        vectors = await embedder.embed_documents(self.texts)
        if self.encoding_format == "float":
            return [list(map(float, vector)) for vector in vectors]
        return [base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode() for vector in vectors]

    @property
    def texts(self) -> Sequence[str]:
        """The texts."""
        return [self.input] if isinstance(self.input, str) else self.input


class EmbeddingAnswer(ResponseModel):
    """A vector of unit length: numbers, or base64 of little-endian float32."""

    object: Literal["embedding"] = "embedding"
    index: Count
    embedding: Vector


class EmbeddingUsageAnswer(ResponseModel):
    """Tokens of all texts."""

    prompt_tokens: Count
    total_tokens: Count


class EmbeddingsAnswer(ResponseModel):
    """The vectors in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingAnswer]
    model: str
    usage: EmbeddingUsageAnswer
