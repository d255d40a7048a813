"""Chat models of all vendors that pydantic-ai-slim supports, named `vendor:model`."""

import asyncio
import importlib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from importlib.util import find_spec
from typing import Any, Final, TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatError,
    ChatFiltered,
    ChatModelUnknown,
    ChatRateLimited,
    ChatTimedOut,
    ChatTooLong,
    ChatUnreachable,
    InvalidInput,
    MissingExtra,
    ProviderError,
)
from conspectus.model.chat import (
    CachedMessage,
    Delta,
    FinishReason,
    JsonForm,
    ModelOptions,
    ToolCall,
    Turn,
    Usage,
)
from conspectus.model.results import Message
from conspectus.providers.answers import limit_answers
from conspectus.providers.thinking import ThinkingFilter
from conspectus.providers.vendor_api import Calls, Note, drop, runtime_client, sendable
from conspectus.settings import vendor_variable

Kind: TypeAlias = tuple[str, type[ChatError], str]

KINDS: Final[tuple[Kind, ...]] = (
    ("ModelContextWindowExceededError", ChatTooLong, "prompt and answer exceed the model's context window"),
    ("ModelAuthenticationError", ChatAuthFailed, "authentication failed, or the key has no permission"),
    ("ModelQuotaExceededError", ChatAuthFailed, "the quota of the account is used up"),
    ("ModelNotFoundError", ChatModelUnknown, "unknown model or wrong address"),
    ("ModelRateLimitError", ChatRateLimited, "rate limit exceeded"),
    ("ModelOverloadedError", ChatRateLimited, "the service is overloaded"),
    ("ModelTimeoutError", ChatTimedOut, "the connection timed out"),
    ("ModelConnectionError", ChatUnreachable, "the connection failed"),
    ("ModelUnavailableError", ChatUnreachable, "the service is unavailable"),
    ("ModelServerError", ChatUnreachable, "it failed"),
    ("ModelRequestRejectedError", ChatError, "the request was refused"),
    ("UnexpectedModelBehavior", ChatBadAnswer, "unexpected response"),
)
"""Exceptions of the library, most specific first, with the error and message for each."""

_NO_CREDENTIALS: Final = frozenset({"NoCredentialsError", "PartialCredentialsError"})
_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})
_MAX_WAIT_SECONDS: Final = 86_400.0


def chat_error(provider: str, fault: Exception, library: Any) -> ChatError:
    """Return the error for an exception of the library, given its module of exceptions."""
    status = getattr(fault, "status_code", None)
    if type(fault).__name__ in _NO_CREDENTIALS:
        return ChatAuthFailed(provider, "no credentials are set")
    if getattr(fault, "provider_error_code", None) in _FILTERED:
        return ChatFiltered(provider, "the model refused to answer", status=status)
    if isinstance(fault.__cause__ or fault, ValueError):
        return ChatBadAnswer(provider, "the response cannot be read", status=status)
    for name, kind, reason in KINDS:
        if isinstance(fault, getattr(library, name)):
            reason = _with_status(reason, status)
            if kind is not ChatRateLimited:
                return kind(provider, reason, status=status)
            wait = getattr(fault, "retry_after", None)
            wait = None if wait is None else min(float(wait), _MAX_WAIT_SECONDS)
            return ChatRateLimited(provider, reason, status=status, retry_after=wait)
    return ChatUnreachable(provider, _with_status("the answer is incomplete", status), status=status)


def _with_status(reason: str, status: int | None) -> str:
    return reason if status is None else f"HTTP {status}: {reason}"


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor: the extra and the package that it needs, and the environment variable of its key."""

    extra: str
    package: str
    key: str


VENDORS: Final = {
    "openai": Vendor("openai", "openai", "OPENAI_API_KEY"),
    "anthropic": Vendor("anthropic", "anthropic", "ANTHROPIC_API_KEY"),
    "google": Vendor("google", "google.genai", "GOOGLE_API_KEY"),
    "bedrock": Vendor("bedrock", "boto3", "AWS_BEARER_TOKEN_BEDROCK"),
    "ollama": Vendor("openai", "openai", "OLLAMA_API_KEY"),
}
EXPLICIT_CACHES: Final = frozenset({"anthropic", "bedrock"})
_PASSAGE_END: Final = re.compile("</passage>")
OLLAMA: Final = "http://localhost:11434/v1"
NO_KEY: Final = "none"
WHOLE: Final = {"openai_chat_streaming_requires_finish_reason": True}
"""Finish reasons. A response that ends without one is treated as incomplete."""
COMPATIBLE: Final = {**WHOLE, "openai_chat_supports_max_completion_tokens": False}
"""The older name of the limit of completion tokens, which other OpenAI-compatible servers know."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The model and its address. `url` is that of another OpenAI-compatible server."""

    vendor: str
    model: str
    url: str

    @classmethod
    def of(cls, setting: str, url: str = "") -> "Choice":
        """Parse a setting. Raises InvalidInput for an unknown form, MissingExtra for a missing library."""
        vendor, _, model = setting.partition(":")
        if not model or vendor not in VENDORS:
            vendors = ", ".join(VENDORS)
            raise InvalidInput("chat_model", f"{setting!r} is not none or vendor:model, of {vendors}")
        if url and not url.startswith(("http://", "https://")):
            raise InvalidInput("chat_base_url", "must begin with http:// or https://")
        choice = cls(vendor, model, url)
        choice.require()
        return choice

    def require(self) -> None:
        """Raise MissingExtra if the vendor's library is not installed. Nothing is imported."""
        if find_spec("pydantic_ai") is None:
            raise MissingExtra(self.needed.extra, "pydantic-ai-slim")
        top, _, inner = self.needed.package.partition(".")
        if find_spec(top) is None or (inner and find_spec(self.needed.package) is None):
            raise MissingExtra(self.needed.extra, f"pydantic-ai-slim[{self.needed.extra}]")

    @property
    def needed(self) -> Vendor:
        """Return the connection arguments of the model; for another server, those of the OpenAI protocol."""
        vendor = VENDORS[self.vendor]
        return Vendor("openai", "openai", vendor.key) if self.url else vendor

    @property
    def caches(self) -> bool:
        """Whether the vendor caches what a request marks; others cache by themselves, or not at all."""
        return self.vendor in EXPLICIT_CACHES and not self.url

    @property
    def transport_error(self) -> type[Exception]:
        """Return the base class of transport errors that pydantic-ai does not convert."""
        below = ("httpx2", "HTTPError")
        if self.vendor == "bedrock" and not self.url:
            below = ("botocore.exceptions", "BotoCoreError")
        error_class: type[Exception] = getattr(importlib.import_module(below[0]), below[1])
        return error_class

    def connect(self, timeout: float) -> tuple[Any, Any]:
        """Return the model and its connection. Raises the library's UserError without a key or region."""
        if self.url or self.vendor == "ollama":
            url = self.url or vendor_variable("OLLAMA_BASE_URL") or OLLAMA
            key = vendor_variable(self.needed.key) or NO_KEY
            provider = library("providers.openai_compatible").OpenAICompatibleProvider
            connection = provider(self.vendor, base_url=url, api_key=key)
            return self._speaking_openai(connection, COMPATIBLE), connection
        if self.vendor == "bedrock":
            client = runtime_client(timeout=timeout)
            connection = library("providers.bedrock").BedrockProvider(bedrock_client=client)
        else:
            connection = library("providers").infer_provider(self.vendor)
        if self.vendor == "openai":
            return self._speaking_openai(connection, WHOLE), connection
        name = f"{self.vendor}:{self.model}"
        return library("models").infer_model(name, provider_factory=lambda _: connection), connection

    def _speaking_openai(self, connection: Any, profile: Mapping[str, bool]) -> Any:
        model = library("models.openai").OpenAIChatModel
        return model(self.model, provider=connection, profile=dict(profile))


def library(module: str) -> Any:
    """Return a module of pydantic-ai, imported on first use."""
    return importlib.import_module(f"pydantic_ai.{module}")


ROLES: Final = frozenset({"system", "user", "assistant"})
ANY_OBJECT: Final = {"type": "object", "properties": {}, "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a model."""

    messages: Sequence[Message]
    settings: dict[str, Any]
    options: ModelOptions


def sayable(message: Message) -> bool:
    """Return whether the role of a message is supported."""
    answers = isinstance(message, Turn) and message.answers is not None
    return message.role in ROLES or (message.role == "tool" and answers)


def as_sent(messages: Sequence[Message], *, cached: bool = False) -> list[Any]:
    """Return the messages as objects of the library, grouped into requests and responses.

    With `cached`, those that may be cached say up to where.
    """
    words = library("messages")
    sent: list[Any] = []
    for message in messages:
        if message.role == "assistant":
            sent.append(words.ModelResponse(parts=_contents(message)))
            continue
        part = _cached(message) if cached and isinstance(message, CachedMessage) else _request(message)
        if sent and isinstance(sent[-1], words.ModelRequest):
            sent[-1] = words.ModelRequest(parts=[*sent[-1].parts, part])
        else:
            sent.append(words.ModelRequest(parts=[part]))
    return sent


def _contents(message: Message) -> list[Any]:
    words = library("messages")
    calls = message.calls if isinstance(message, Turn) else ()
    has_text = bool(message.content.strip()) or not calls
    texts = [words.TextPart(content=sendable(message.content))] if has_text else []
    return texts + [words.ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in calls]


def _request(message: Message) -> Any:
    words, content = library("messages"), sendable(message.content)
    if isinstance(message, Turn) and message.answers is not None:
        call = message.answers
        return words.ToolReturnPart(tool_name=call.name, content=content, tool_call_id=call.id)
    return {"system": words.SystemPromptPart, "user": words.UserPromptPart}[message.role](content=content)


def _cached(message: CachedMessage) -> Any:
    """Return a message in blocks, one for each passage, with a marker after those that may be cached.

    The blocks are the same when other passages follow, so a provider finds again what it cached.
    """
    words, content = library("messages"), message.content
    last = max(message.cached)
    ends = {passage.end() for passage in _PASSAGE_END.finditer(content, 0, last)}
    begins = 0
    parts: list[Any] = []
    for end in sorted({*ends, *message.cached, len(content)}):
        parts.append(sendable(content[begins:end]))
        begins = end
        if end in message.cached:
            parts.append(words.CachePoint())
    return words.UserPromptPart(content=parts)


def parameters_of(options: ModelOptions) -> Any:
    """Return the tools, and the format of the response."""
    definition = library("tools").ToolDefinition
    tools = [
        definition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters) or {"type": "object", "properties": {}},
            strict=bool(tool.strict),
        )
        for tool in options.tools
    ]
    form = {} if options.form is None else _form(options.form)
    return library("models").ModelRequestParameters(function_tools=tools, **form)


def _form(form: JsonForm) -> dict[str, Any]:
    if form.schema is None:
        anything = library("output").OutputObjectDefinition(json_schema=ANY_OBJECT)
        return {"output_mode": "prompted", "output_object": anything}
    named = library("output").OutputObjectDefinition(
        json_schema=dict(form.schema), name=form.name, description=form.description, strict=bool(form.strict)
    )
    return {"output_mode": "native", "output_object": named}


def choice_of(options: ModelOptions) -> dict[str, Any]:
    """Return the setting which tools may or must be called."""
    if not options.tools:
        return {}
    return {"tool_choice": options.choice if options.only is None else [options.only]}


def tool_calls(stream: Any) -> Iterator[ToolCall]:
    """Return the tool calls in a complete response."""
    for part in stream.get().parts:
        if part.part_kind == "tool-call":
            arguments = part.args if isinstance(part.args, str) else part.args_as_json_str()
            yield ToolCall(part.tool_call_id, part.tool_name, arguments or "{}")


FINISH_REASONS: Final[Mapping[str | None, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool_calls",
}
"""The reasons of the library for the end of an answer, and ours."""
MAX_ANSWER_BYTES: Final = 1 << 26
"""Bytes after which a streamed answer is broken off."""
BROKEN_OFF: Final = frozenset({None, "error"})
"""The finish reason of the library for a response that was cut off."""
NO_TOKEN_LIMIT: Final = frozenset({"bedrock"})
"""Vendors whose library takes the number of retries when the client is created."""


class HostedChatModel:
    """A vendor's chat model, connected on first use.

    `setting` is `vendor:model`; with `url`, it is a model of an OpenAI-compatible server. `seconds` is the
    timeout for each piece of the response, including the first. If the connection is lost before the first
    piece, the request is repeated once; nothing else is retried.

    Raises `InvalidInput` for an unknown form of a setting, and `MissingExtra` if the vendor's library is not
    installed; it is imported at the first request.
    """

    def __init__(
        self,
        setting: str,
        *,
        url: str = "",
        window: int = 8_192,
        tokenizer: str = "o200k_base",
        seconds: float = 120.0,
        note: Note = drop,
    ) -> None:
        self._choice = Choice.of(setting, url)
        self.name = setting
        self.window = window
        self.tokenizer = tokenizer
        self._seconds = seconds
        self._calls = Calls(note, setting)
        self._model: Any = None
        self._connecting = asyncio.Lock()
        self._open = AsyncExitStack()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """Stream a response of at most `max_tokens` tokens, then the usage if the vendor reports it.

        Closing the generator closes the connection. Raises a ChatError, before or after pieces, and
        InvalidInput without messages, for unknown roles, or if `max_tokens` is not positive.
        """
        if not messages or not all(map(sayable, messages)):
            raise InvalidInput(
                "messages", "give at least one, each of the role system, user, assistant or tool"
            )
        if max_tokens < 1:
            raise InvalidInput("max_tokens", "must be at least 1")
        await self._connect()
        settings: dict[str, Any] = {"max_tokens": max_tokens}
        if temperature is not None:
            settings["temperature"] = temperature
        if self._choice.vendor not in NO_TOKEN_LIMIT or self._choice.url:
            settings["max_retries"] = 0
        request = ModelCall(messages, settings, options or ModelOptions())
        pieces = self._once(request)
        try:
            first = await anext(pieces)
        except ChatUnreachable as fault:
            if fault.status is not None:
                raise
            pieces = self._once(request)
            first = await anext(pieces)
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        self._model = None
        await self._open.aclose()

    async def _connect(self) -> None:
        """Import the library and create the model on first use."""
        async with self._connecting:
            if self._model is not None:
                return
            errors = await asyncio.to_thread(library, "exceptions")
            try:
                model, connection = await asyncio.to_thread(self._choice.connect, self._seconds)
            except errors.UserError as error:
                raise ChatAuthFailed(self._choice.vendor, str(error)) from error
            except ProviderError as error:
                raise ChatAuthFailed(self._choice.vendor, error.reason) from error
            limit_answers(connection, MAX_ANSWER_BYTES)
            await self._open.enter_async_context(connection)
            self._model = model

    async def _once(self, request: ModelCall) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """Send one logged request. Yields at least one piece, or raises a ChatError."""
        has_text = False
        with (
            self._calls.one("chat", [message.content for message in request.messages]) as call,
            self._as_ours(),
        ):
            opened = self._opened(request)
            async with opened as stream, aclosing(self._texts(aiter(stream))) as texts:
                async for text in texts:
                    has_text = True
                    yield Delta(text)
                for tool_call in tool_calls(stream):
                    has_text = True
                    yield tool_call
            self._refuse_unusable(stream.finish_reason, has_text)
            usage = stream.usage
            call.tokens = usage.input_tokens + usage.output_tokens or None
            finish = FINISH_REASONS.get(stream.finish_reason)
            if call.tokens or finish == "length":
                is_counted = call.tokens is not None
                yield Usage(usage.input_tokens, usage.output_tokens, exact=is_counted, finish=finish)

    @contextmanager
    def _as_ours(self) -> Iterator[None]:
        """Convert exceptions of the library in the block to ours."""
        vendor, errors = self._choice.vendor, library("exceptions")
        try:
            yield
        except TimeoutError as fault:
            raise ChatTimedOut(vendor, f"no data for {self._seconds:g} s") from fault
        except (errors.AgentRunError, errors.UserError, self._choice.transport_error, ValueError) as fault:
            raise chat_error(vendor, fault, errors) from fault

    @asynccontextmanager
    async def _opened(self, request: ModelCall) -> AsyncIterator[Any]:
        """Open the library's stream of a response."""
        opening = library("direct").model_request_stream(
            self._model,
            as_sent(request.messages, cached=self._choice.caches),
            model_settings={**request.settings, **choice_of(request.options)},
            model_request_parameters=parameters_of(request.options),
        )
        async with AsyncExitStack() as opened:
            async with asyncio.timeout(self._seconds):
                stream = await opened.enter_async_context(opening)
            yield stream

    async def _texts(self, events: Any) -> AsyncGenerator[str, None]:
        """Yield the texts of events without thinking. The timeout applies to each event."""
        thinking, ended = ThinkingFilter(), False
        while not ended:
            async with asyncio.timeout(self._seconds):
                event = await anext(events, None)
            ended = event is None
            text = thinking.rest() if ended else thinking.answer_in(_text(event))
            if text:
                yield text

    def _refuse_unusable(self, reason: str | None, has_text: bool) -> None:
        vendor = self._choice.vendor
        if reason == "content_filter":
            raise ChatFiltered(vendor, "the model refused to answer or to continue")
        if reason in BROKEN_OFF and has_text:
            raise ChatUnreachable(vendor, "the answer is incomplete")
        if not has_text:
            why = "had no tokens left" if reason == "length" else "returned an empty text"
            raise ChatBadAnswer(vendor, f"there is no answer: the model {why}")


def _text(event: Any) -> str:
    """Return the text of an event. Thinking and tool calls are not part of the response."""
    if event.event_kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""
