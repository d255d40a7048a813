"""From messages to the events of an answer."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from conspectus.chat.citations import cited
from conspectus.chat.token_allocation import cost
from conspectus.errors import ChatError, ChatNotConfigured
from conspectus.model.chat import ChatEvent, ChatSource, Delta, Failure, ModelOptions, ToolCall, Usage
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.ports.chat import ChatModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked, for an answer of at most `most` tokens, and what it may cite.

    `keep` is handed the whole answer, and says why it could not be kept.
    """

    messages: tuple[Message, ...]
    sources: Sequence[ChatSource]
    most: int
    temperature: float | None
    keep: Callable[[str], Awaitable[Failure | None]]
    options: ModelOptions = field(default_factory=ModelOptions)


async def answered(
    model: ChatModel | None, call: ModelRequest, count: CountTokens
) -> AsyncGenerator[ChatEvent, None]:
    """The answer's pieces, what it cites and its usage; or a Failure, in words that are for the user.

    A whole answer is kept before its citations are told.

    Closing the generator ends the call at once. Where no answer may cost anything the model is not asked.
    """
    said: list[str] = []
    usage: Usage | None = None
    async with aclosing(_pieces(model, call)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Usage):
                usage = piece
                continue
            yield piece
            if isinstance(piece, Failure):
                return
            if isinstance(piece, Delta):
                said.append(piece.text)
    answer = "".join(said)
    lost = await call.keep(answer)
    yield cited(answer, call.sources)
    yield usage or Usage(cost(call.messages, count), count(answer) if answer else 0, exact=False)
    if lost is not None:
        yield lost


async def _pieces(
    model: ChatModel | None, call: ModelRequest
) -> AsyncGenerator[Delta | ToolCall | Usage | Failure, None]:
    """What the model says, and why it stops where it fails; nothing where no answer may cost anything."""
    if model is None:
        yield Failure(ChatNotConfigured.code, ChatNotConfigured.told)
        return
    try:
        if call.most < 1:
            return
        stream = model.stream(
            call.messages, most=call.most, temperature=call.temperature, options=call.options
        )
        async with aclosing(stream):
            async for piece in stream:
                yield piece
    except ChatError as fault:
        logger.warning("a chat was not answered: %s", fault)
        yield Failure(fault.code, fault.told)
