"""Team chat: messages in channels, and context windows for a query in a channel.

The engine may run in this process or on a server.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from conspectus.deferred import dataclass
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.model.channels import (
    REPLY_TO,
    ChannelMessage,
    ImportReport,
    NewMessage,
    ReplyChain,
    WindowMessage,
)
from conspectus.model.query import DEFAULT_MIN_SIMILARITY
from conspectus.model.records import Receipt, Written

DEFAULT_MAX_TOKENS = 4_000
USUAL_MIN_SCORE = 0.7
"""The usual `min_score` of programs whose embedding model rates almost all pairs of texts above 0.7.

It stands for the engine's DEFAULT_MIN_SIMILARITY, as the models here rate most relevant messages below 0.7.
"""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message of a window. `id` and `reply_to` are ids of the platform.

    `text` is the part in the window, `score` its score, and `channel_id` the name of its channel.
    """

    id: str
    channel_id: str
    author: str | None
    timestamp: datetime | None
    thread: str | None
    reply_to: str | None
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """Messages relevant to a prompt, and the text of `total_tokens` tokens for a model.

    `channels` are the names of their channels, that of the prompt first. `assumed_thread` is the latest
    thread of the channel, if it was taken because the prompt names nothing. `notices` are those of the
    window.
    """

    messages: tuple[ContextMessage, ...]
    total_tokens: int
    channels: tuple[str, ...]
    text: str
    assumed_thread: str | None = None
    notices: tuple[str, ...] = ()


class Conversations:
    """The channels of one collection."""

    def __init__(self, engine: AnyEngine, *, collection: str = "default") -> None:
        self._engine = engine
        self._collection = collection

    async def send(self, channel: str, messages: NewMessage | Sequence[NewMessage]) -> list[Written]:
        """Store messages. Keyword search finds them when this returns, vector search after embedding."""
        return await self._engine.channels.add_messages(
            messages, channel=channel, collection=self._collection
        )

    async def edit(self, channel: str, message: str, text: str) -> Written:
        """Change the text of a message; it stays in its thread. Raises NotFound."""
        return await self._engine.documents.update(await self._id(channel, message), text=text)

    async def delete(self, channel: str, message: str) -> Receipt:
        """Delete a message; its replies stay. Raises NotFound."""
        return await self._engine.documents.delete_by_key(
            message, source=channel, collection=self._collection
        )

    async def import_archive(self, path: str | Path, *, wait: bool = False) -> ImportReport:
        """Import an export of Slack, Discord or IRC, or a file with one message a line."""
        return await self._engine.channels.import_archive(path, collection=self._collection, wait=wait)

    async def latest(self, channel: str, *, limit: int = 50) -> list[ChannelMessage]:
        """Return the latest messages, oldest first."""
        return await self._engine.channels.list_messages(
            channel=channel, collection=self._collection, limit=limit
        )

    async def get_context_chain(self, channel: str, message: str, *, limit: int = 20) -> ReplyChain:
        """Return the reply chain of a message: its ancestors and its replies. Raises NotFound."""
        return await self._engine.channels.get_reply_chain(await self._id(channel, message), limit=limit)

    async def get_context_window(
        self,
        channel_id: str,
        prompt: str,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        *,
        include_related_channels: bool = False,
        min_score: float | None = None,
        **options: Any,
    ) -> ContextWindow:
        """Return the messages relevant to a prompt in a channel, within `max_tokens`.

        `min_score` is from 0 to 1; 0.7 stands for a cosine similarity of 0.25, the engine's default, and the
        scale is linear on both sides. A message above it keeps its whole thread. `options` are those of
        `channels.window`, such as `thread`, `member` or `min_similarity`, the minimum cosine similarity
        itself.
        """
        if min_score is not None:
            if "min_similarity" in options:
                raise InvalidInput("min_similarity", "is given beside min_score; give one of the two")
            options["min_similarity"] = similarity_of(min_score)
        window = await self._engine.channels.window(
            prompt,
            max_tokens,
            channel=channel_id,
            collection=self._collection,
            related=include_related_channels,
            **options,
        )
        return ContextWindow(
            tuple(map(_message, window.messages)),
            window.tokens,
            window.channels,
            window.window.text,
            window.assumed_thread,
            window.window.notices,
        )

    async def _id(self, channel: str, message: str) -> str:
        document = await self._engine.documents.get_by_key(
            message, source=channel, collection=self._collection
        )
        return document.id


def similarity_of(score: float) -> float:
    """Return the cosine similarity for a `min_score`. Raises InvalidInput."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0.0 <= score <= 1.0:
        raise InvalidInput("min_score", f"is {score!r}; must be from 0 to 1")
    if score <= USUAL_MIN_SCORE:
        return DEFAULT_MIN_SIMILARITY * score / USUAL_MIN_SCORE
    return DEFAULT_MIN_SIMILARITY + (1.0 - DEFAULT_MIN_SIMILARITY) * (score - USUAL_MIN_SCORE) / (
        1.0 - USUAL_MIN_SCORE
    )


def _message(message: WindowMessage) -> ContextMessage:
    answered = message.metadata.get(REPLY_TO)
    return ContextMessage(
        id=message.key,
        channel_id=message.channel,
        author=message.author,
        timestamp=message.occurred.start if message.occurred else None,
        thread=message.thread,
        reply_to=None if answered is None else str(answered),
        text=message.text,
        score=message.score,
    )
