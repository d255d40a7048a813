"""Stream the answer of a chat model, with its citations and usage."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import field, replace

from conspectus.chat.allocation import cost, options_cost
from conspectus.chat.citations import find_citations
from conspectus.deferred import dataclass
from conspectus.errors import ChatBadAnswer, ChatError, ChatNotConfigured
from conspectus.model.chat import (
    ChatEvent,
    ChatSource,
    Delta,
    Failure,
    ModelOptions,
    ToolCall,
    Usage,
)
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.ports.chat import ChatModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The messages for a model, the limits of the response, and the sources that it may cite.

    A model that says more than `max_characters` is ended. `store` stores the complete response, and returns a
    Failure if it could not be stored.
    """

    messages: tuple[Message, ...]
    sources: Sequence[ChatSource]
    max_tokens: int
    temperature: float | None
    store: Callable[[str], Awaitable[Failure | None]]
    options: ModelOptions = field(default_factory=ModelOptions)
    max_characters: int = 1_000_000


TOO_LONG = Failure(ChatBadAnswer.code, "The chat model did not end its answer, which is longer than allowed.")


async def stream_answer(
    model: ChatModel | None, call: ModelRequest, count: CountTokens
) -> AsyncGenerator[ChatEvent, None]:
    """Stream the response, its citations and its usage; or a Failure with a message for the user.

    A complete response is stored before its citations are sent. Closing the generator cancels the model call
    at once. The model is not called if `max_tokens` is below 1.
    """
    pieces_of_text: list[str] = []
    usage: Usage | None = None
    characters = 0
    async with aclosing(_pieces(model, call)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Usage):
                usage = piece
                continue
            characters += _count_characters(piece)
            if characters > call.max_characters:
                logger.warning("chat_failed error=%(error)s", {"error": TOO_LONG.message})
                yield TOO_LONG
                return
            yield piece
            if isinstance(piece, Failure):
                return
            if isinstance(piece, Delta):
                pieces_of_text.append(piece.text)
    answer = "".join(pieces_of_text)
    lost = await call.store(answer)
    yield find_citations(answer, call.sources)
    if usage is None or not usage.exact:
        finish = None if usage is None else usage.finish
        estimated = await asyncio.to_thread(_estimate_usage, call, answer, count)
        usage = replace(estimated, finish=finish)
    yield usage
    if lost is not None:
        yield lost


def _count_characters(piece: Delta | ToolCall | Failure) -> int:
    match piece:
        case Delta():
            return len(piece.text)
        case ToolCall():
            return len(piece.name) + len(piece.arguments)
    return 0


def _estimate_usage(call: ModelRequest, answer: str, count: CountTokens) -> Usage:
    sent = cost(call.messages, count) + options_cost(call.options, count)
    return Usage(sent, count(answer) if answer else 0, exact=False)


async def _pieces(
    model: ChatModel | None, call: ModelRequest
) -> AsyncGenerator[Delta | ToolCall | Usage | Failure, None]:
    """Stream the events of the model, with a Failure at the end on an error; nothing without tokens."""
    if model is None:
        yield Failure(ChatNotConfigured.code, ChatNotConfigured.user_message)
        return
    try:
        if call.max_tokens < 1:
            return
        stream = model.stream(
            call.messages, max_tokens=call.max_tokens, temperature=call.temperature, options=call.options
        )
        async with aclosing(stream):
            async for piece in stream:
                yield piece
    except ChatError as fault:
        logger.warning("chat_failed error=%(error)s", {"error": fault})
        yield Failure(fault.code, fault.user_message)
