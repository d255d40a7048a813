"""A chat model for tests that says what it is given, one token a piece.

model = ScriptedChatModel(["Paris", " [1]"])
model = ScriptedChatModel(lambda messages: [messages[-1].content])
model = ScriptedChatModel(["Pa", "ris"], fails=ChatUnreachable("scripted", "cut"), after=1)
model = ScriptedChatModel(["Pa", "ris"], hangs=True, after=1)
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeAlias

from conspectus.deferred import dataclass
from conspectus.errors import ChatError, InvalidInput
from conspectus.model.chat import Delta, ModelOptions, ToolCall, Turn, Usage
from conspectus.model.results import Message

ROLES = frozenset({"system", "user", "assistant"})
Piece: TypeAlias = str | ToolCall
Script: TypeAlias = Sequence[Piece] | Callable[[Sequence[Message]], Sequence[Piece]]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model was asked."""

    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None
    options: ModelOptions | None = None


class ScriptedChatModel:
    """Says the pieces of its script, or what the script makes of the messages, each time it is asked.

    After `after` pieces it raises `fails`, or `hangs` until `released` is set; each time, until they are
    changed. `asked` is what it was asked, `open` how many streams are under way, and `broken_off` how many
    were closed before their end. `tells` says whether it counts tokens: one for each word that it reads, one
    for each piece that it says.
    """

    def __init__(
        self,
        says: Script = ("Hello", " world"),
        *,
        fails: ChatError | None = None,
        hangs: bool = False,
        after: int = 0,
        tells: bool = True,
        window: int = 8_192,
    ) -> None:
        self.says = says
        self.fails = fails
        self.hangs = hangs
        self.after = after
        self.tells = tells
        self.asked: list[Asked] = []
        self.open = 0
        self.broken_off = 0
        self.closed = False
        self.hanging = asyncio.Event()
        self.released = asyncio.Event()
        self._window = window

    @property
    def name(self) -> str:
        """`scripted:model`."""
        return "scripted:model"

    @property
    def window(self) -> int:
        """As it was given."""
        return self._window

    @property
    def tokenizer(self) -> str:
        """That of the settings' default."""
        return "o200k_base"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """The pieces, at most `max_tokens` of them, then the usage."""
        if not messages or max_tokens < 1 or not all(map(_can_be_asked, messages)):
            raise InvalidInput("messages", "there must be some, of known roles, and room for an answer")
        self.asked.append(Asked(tuple(messages), max_tokens, temperature, options))
        pieces = (self.says(messages) if callable(self.says) else self.says)[:max_tokens]
        self.open += 1
        ended = False
        try:
            for position, piece in enumerate(pieces):
                await self._stumble(position)
                yield piece if isinstance(piece, ToolCall) else Delta(piece)
            await self._stumble(len(pieces))
            ended = True
            if self.tells:
                words = sum(len(message.content.split()) for message in messages)
                yield Usage(words, len(pieces))
        except ChatError:
            ended = True
            raise
        finally:
            self.open -= 1
            self.broken_off += not ended

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True

    async def _stumble(self, position: int) -> None:
        await asyncio.sleep(0)
        if position != self.after:
            return
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            self.hanging.set()
            await self.released.wait()


def _can_be_asked(message: Message) -> bool:
    """Whether a model takes it: a message of a tool has to name the call that it answers."""
    answers = isinstance(message, Turn) and message.answers is not None
    return message.role in ROLES or (message.role == "tool" and answers)
