"""Chat models of all vendors that pydantic-ai-slim supports, named `vendor:model`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any, Final

from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatFiltered,
    ChatTimedOut,
    ChatUnreachable,
    InvalidInput,
    ProviderError,
)
from conspectus.model.chat import (
    Delta,
    FinishReason,
    ModelOptions,
    ToolCall,
    Usage,
)
from conspectus.model.results import Message
from conspectus.providers.answers import limit_answers
from conspectus.providers.chat_messages import (
    ModelCall,
    as_sent,
    choice_of,
    parameters_of,
    sayable,
    tool_calls,
)
from conspectus.providers.chat_vendors import Choice, chat_error, library
from conspectus.providers.request_log import Calls, Note, drop
from conspectus.providers.thinking import ThinkingFilter

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
