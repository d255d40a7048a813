"""Complete a chat: the events of a response, and the sources that it cites."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import chain

import regex

from conspectus.chat.request import cost
from conspectus.errors import ChatError, ChatNotConfigured
from conspectus.model.chat import (
    ChatEvent,
    ChatSource,
    Citations,
    Delta,
    Failure,
    ModelOptions,
    ToolCall,
    Usage,
)
from conspectus.model.records import Json
from conspectus.model.results import Message
from conspectus.ports import CountTokens
from conspectus.ports.chat import ChatModel
from conspectus.text.late_patterns import regex_pattern
from conspectus.text.prompt_escaping import marks

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The messages for a model, the token limit of the response, and the sources that it may cite.

    `keep` stores the complete response, and returns a Failure if it could not be stored.
    """

    messages: tuple[Message, ...]
    sources: Sequence[ChatSource]
    max_tokens: int
    temperature: float | None
    store: Callable[[str], Awaitable[Failure | None]]
    options: ModelOptions = field(default_factory=ModelOptions)


async def stream_answer(
    model: ChatModel | None, call: ModelRequest, count: CountTokens
) -> AsyncGenerator[ChatEvent, None]:
    """Stream the response, its citations and its usage; or a Failure with a message for the user.

    A complete response is stored before its citations are sent. Closing the generator cancels the model call
    at once. The model is not called if `max_tokens` is below 1.
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
    lost = await call.store(answer)
    yield cited(answer, call.sources)
    yield usage or Usage(cost(call.messages, count), count(answer) if answer else 0, exact=False)
    if lost is not None:
        yield lost


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


_FENCED = regex_pattern(
    r"^[ \t]{0,3}(```+|~~~+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)", regex.DOTALL | regex.MULTILINE
)
_INLINE = regex_pattern(r"(?<!`)(`{1,3})(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)")


def cited(answer: str, sources: Sequence[ChatSource]) -> Citations:
    """Return the sources that an answer cites, in order, and the cited numbers without a source.

    A range cites every source in it; its ends are unknown if they have no source. Citations in code are
    ignored.
    """
    given = {source.number for source in sources}
    named: set[int] = set()
    invented: dict[int, None] = {}
    prose = _INLINE.sub(" ", _FENCED.sub(" ", answer))
    for first, last in chain.from_iterable(mark.spans for mark in marks(prose)):
        named |= {number for number in given if first <= number <= last}
        invented |= dict.fromkeys(end for end in (first, last) if end not in given)
    return Citations(tuple(each for each in sources if each.number in named), tuple(map(str, invented)))


def answer_metadata(answer: str, sources: Sequence[ChatSource]) -> dict[str, Json]:
    """Return the metadata of a stored answer, with the cited sources under `citations`."""
    return {"citations": [_reference(each) for each in cited(answer, sources).cited]}


def _reference(source: ChatSource) -> Json:
    return {
        "number": source.number,
        "document": source.document,
        "key": source.key,
        "start": source.start,
        "end": source.end,
    }
