"""The ports of chat models, and of their answers while they are made."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.model.chat import Delta, ModelOptions, ToolCall, Usage
from conspectus.model.ids import UserId
from conspectus.model.results import Message


class ChatModel(Protocol):
    """A language model that answers messages piece by piece."""

    @property
    def name(self) -> str:
        """`vendor:model`, as in the settings."""

    @property
    def window(self) -> int:
        """The token limit of prompt and answer together."""

    @property
    def tokenizer(self) -> str:
        """The name of the counter whose counts hold for this model, or come nearest."""

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """Answer in pieces of at most `max_tokens` tokens in all, then the usage if the model reports it.

        Roles are system, user, assistant and, for a Turn that answers a call, tool. Calls of the tools of
        `options` come whole, after the text. Closing the generator ends the call at the provider. Raises a
        ChatError, before or after pieces, and InvalidInput for what no model can be asked.
        """

    async def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class AnswerFrames:
    """New frames of an answer as clients get them, the number of the first, and whether it is complete.

    `documents` are its known sources.
    """

    stream: str
    first: int
    frames: tuple[bytes, ...]
    finished: bool
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoteChatEvent:
    """An answer so far:

    frames, their total number, whether it is complete, and its sources. `silent` is the number of seconds
    since the last sign of the process that makes it.
    """

    frames: tuple[bytes, ...]
    count: int
    finished: bool
    documents: tuple[str, ...]
    silent: float


class ChatRegistry(Protocol):
    """Answers of chats while they are made, and for a while after, for all processes of a store."""

    async def begin(self, stream: str, person: UserId) -> None:
        """Let others know of an answer."""

    async def publish(self, utterance: AnswerFrames) -> None:
        """Keep what is new of an answer."""

    async def pulse(self, streams: Sequence[str]) -> Mapping[str, float]:
        """Let others know that these are still made; seconds since each was passed on elsewhere."""

    async def read_remote(self, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
        """The frames of an answer of this person from a number on; None if there is no such answer.

        This call tells the process that makes the answer that it is still read.
        """

    async def forget(self, streams: Sequence[str] = (), *, older: float | None = None) -> None:
        """Delete answers, and with `older` all that were not updated for so many seconds."""
