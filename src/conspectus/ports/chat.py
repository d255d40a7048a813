"""The port of chat models."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from conspectus.model.chat import Delta, Usage
from conspectus.model.results import Message


class ChatModel(Protocol):
    """A language model that answers messages piece by piece."""

    @property
    def name(self) -> str:
        """`vendor:model`, as in the settings."""
        ...

    @property
    def window(self) -> int:
        """The most tokens of prompt and answer together."""
        ...

    @property
    def tokenizer(self) -> str:
        """The name of the counter whose counts hold for this model, or come nearest."""
        ...

    def stream(
        self, messages: Sequence[Message], *, most: int, temperature: float | None = None
    ) -> AsyncGenerator[Delta | Usage, None]:
        """The answer in pieces of at most `most` tokens in all, then its usage where the model tells it.

        Roles are system, user and assistant. Closing the generator ends the call at the provider. Raises a
        ChatError, before or after pieces, and InvalidInput for what no model can be asked.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
