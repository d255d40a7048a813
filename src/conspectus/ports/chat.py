"""The ports of chat models, and of responses in progress."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from conspectus.model.chat import Delta, ModelOptions, ToolCall, Usage
from conspectus.model.ids import UserId
from conspectus.model.results import Message


class ChatModel(Protocol):
    """A language model that answers messages piece by piece."""

    @property
    def name(self) -> str:
        """`vendor:model`, as in the settings."""
        ...

    @property
    def window(self) -> int:
        """The context window of prompt and response together, in tokens."""
        ...

    @property
    def tokenizer(self) -> str:
        """The name of the tokenizer that is exact for this model, or comes closest."""
        ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        temperature: float | None = None,
        options: ModelOptions | None = None,
    ) -> AsyncGenerator[Delta | ToolCall | Usage, None]:
        """Stream a response of at most `max_tokens` tokens, then the usage if the model reports it.

        Roles are system, user, assistant and, for a Turn that answers a call, tool. Calls of the tools of
        `options` are complete, and come after the text. Closing the generator ends the call at the provider.
        Raises a ChatError, before or after pieces, and InvalidInput for an invalid request.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerFrames:
    """New frames of a response as sent to clients, the number of the first, and whether it is complete.

    `documents` are its known sources.
    """

    stream: str
    first: int
    frames: tuple[bytes, ...]
    finished: bool
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemoteChatEvent:
    """A response in progress: frames, their total number, whether it is complete, and its sources.

    `silent` is the number of seconds since the last sign of life of the process that produces it.
    """

    frames: tuple[bytes, ...]
    count: int
    finished: bool
    documents: tuple[str, ...]
    silent: float


class ChatRegistry(Protocol):
    """Responses of chats while they are produced, and for a while after, for all processes of a store."""

    async def begin(self, stream: str, person: UserId) -> None:
        """Register a response in progress."""
        ...

    async def publish(self, utterance: AnswerFrames) -> None:
        """Publish new frames of a response."""
        ...

    async def pulse(self, streams: Sequence[str]) -> Mapping[str, float]:
        """Record that responses are still in progress; return seconds since each was forwarded elsewhere."""
        ...

    async def read_remote(self, stream: str, person: UserId, first: int) -> RemoteChatEvent | None:
        """Return the frames of a response of this person from a number on; None if there is none.

        This call tells the producing process that the response is still read.
        """
        ...

    async def forget(self, streams: Sequence[str] = (), *, older: float | None = None) -> None:
        """Delete responses, with `older` all that were not updated for that many seconds."""
        ...
