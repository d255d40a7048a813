"""Asks chat models of any vendor that pydantic-ai-slim can reach, named `vendor:model`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any, Final

from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatTimedOut,
    ChatUnreachable,
    InvalidInput,
    ProviderError,
)
from conspectus.model.chat import Delta, ModelOptions, ToolCall, Usage
from conspectus.model.results import Message
from conspectus.providers.chat_faults import chat_error
from conspectus.providers.chat_messages import (
    Asked,
    as_sent,
    choice_of,
    parameters_of,
    sayable,
    tool_calls,
)
from conspectus.providers.chat_vendors import Choice, library
from conspectus.providers.request_logging import Calls, Note, drop

BROKEN_OFF: Final = frozenset({None, "error"})
"""How the library says that an answer had no end."""
UNABLE_TO_BE_TOLD: Final = frozenset({"bedrock"})
"""Vendors whose library is told about retries when it is made."""


class HostedChatModel:
    """A vendor's chat model, connected to when it is first asked.

    `setting` is `vendor:model`; with `url` a server that speaks OpenAI's protocol is asked instead of the
    vendor's own. `seconds` is the longest wait for each piece of an answer, the first included. Where the
    connection is lost before the first piece, the request is made once more; nothing else is asked twice.

    Raises `InvalidInput` for a setting of no known form, `MissingExtra` where the vendor's library is not
    installed; nothing of it is imported before the first question.
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
        self._name = setting
        self._window = window
        self._tokenizer = tokenizer
        self._seconds = seconds
        self._calls = Calls(note, setting)
        self._model: Any = None
        self._connecting = asyncio.Lock()
        self._open = AsyncExitStack()

    @property
    def name(self) -> str:
        """`vendor:model`, as in the settings."""
        return self._name

    @property
    def window(self) -> int:
        """The most tokens of prompt and answer together, as the settings say."""
        return self._window

    @property
    def tokenizer(self) -> str:
        """The name of the counter that the settings say."""
        return self._tokenizer

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        most: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """The answer in pieces of at most `most` tokens in all, then its usage where the vendor tells it.

        Closing the generator closes the connection. Raises a ChatError, before or after pieces, and
        InvalidInput without messages, for unknown roles, or for no room.
        """
        if not messages or not all(map(sayable, messages)):
            raise InvalidInput(
                "messages", "there must be some, each of a system, a user, an assistant or a tool"
            )
        if most < 1:
            raise InvalidInput("most", "must be at least 1")
        await self._connect()
        asked = Asked(messages, self._settings(most, temperature), options or ModelOptions())
        pieces = self._once(asked)
        try:
            first = await anext(pieces)
        except ChatUnreachable as fault:
            if fault.status is not None:
                raise
            pieces = self._once(asked)
            first = await anext(pieces)
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Release the connections; a question after that makes new ones."""
        self._model = None
        await self._open.aclose()

    def _settings(self, most: int, temperature: float | None) -> dict[str, Any]:
        settings: dict[str, Any] = {"max_tokens": most}
        if temperature is not None:
            settings["temperature"] = temperature
        if self._choice.vendor not in UNABLE_TO_BE_TOLD or self._choice.url:
            settings["max_retries"] = 0
        return settings

    async def _connect(self) -> None:
        """Import the library and make the model, the first time."""
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
            await self._open.enter_async_context(connection)
            self._model = model

    async def _once(self, asked: Asked) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """One request, noted; at least one piece, or a ChatError."""
        said = False
        with self._calls.one("chat", [each.content for each in asked.messages]) as call, self._as_ours():
            opened = self._opened(asked)
            async with opened as stream, aclosing(self._texts(aiter(stream))) as texts:
                async for text in texts:
                    said = True
                    yield Delta(text)
                for tool_call in tool_calls(stream):
                    said = True
                    yield tool_call
            self._refuse_unusable(stream.finish_reason, said)
            usage = stream.usage
            if usage.input_tokens or usage.output_tokens:
                call.tokens = usage.input_tokens + usage.output_tokens
                yield Usage(usage.input_tokens, usage.output_tokens)

    @contextmanager
    def _as_ours(self) -> Iterator[None]:
        """The library's errors leave the block as ours."""
        vendor, errors = self._choice.vendor, library("exceptions")
        try:
            yield
        except TimeoutError as fault:
            raise ChatTimedOut(vendor, f"nothing came for {self._seconds:g} s") from fault
        except (errors.AgentRunError, errors.UserError, self._choice.transport_error, ValueError) as fault:
            raise chat_error(vendor, fault, errors) from fault

    @asynccontextmanager
    async def _opened(self, asked: Asked) -> AsyncIterator[Any]:
        """The library's stream of an answer."""
        opening = library("direct").model_request_stream(
            self._model,
            as_sent(asked.messages),
            model_settings={**asked.settings, **choice_of(asked.options)},
            model_request_parameters=parameters_of(asked.options),
        )
        async with AsyncExitStack() as held:
            async with asyncio.timeout(self._seconds):
                stream = await held.enter_async_context(opening)
            yield stream

    async def _texts(self, events: Any) -> AsyncGenerator[str, None]:
        """The texts of the events that have one; each event has its time to come."""
        while True:
            async with asyncio.timeout(self._seconds):
                event = await anext(events, None)
            if event is None:
                return
            text = _text(event)
            if text:
                yield text

    def _refuse_unusable(self, reason: str | None, said: bool) -> None:
        vendor = self._choice.vendor
        if reason == "content_filter":
            raise ChatBadAnswer(vendor, "it will not answer this, or say no more of it")
        if reason in BROKEN_OFF and said:
            raise ChatUnreachable(vendor, "the answer broke off")
        if not said:
            why = "had no tokens left for one" if reason == "length" else "gave an empty one"
            raise ChatBadAnswer(vendor, f"there is no answer, the model {why}")


def _text(event: Any) -> str:
    """What an event adds to the answer; thoughts and calls of tools are no part of it."""
    if event.event_kind == "part_start" and event.part.part_kind == "text":
        return str(event.part.content)
    if event.event_kind == "part_delta" and event.delta.part_delta_kind == "text":
        return str(event.delta.content_delta)
    return ""
