"""A message store of LlamaIndex."""

from collections.abc import Sequence
from functools import partial

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.integrations.chat_messages import conversations
from conspectus.integrations.llama_index.components import OfPeople
from conspectus.integrations.llama_index.messages import item_of, message_of
from conspectus.model.memory import Memory, Scope

ACTIVE = MessageStatus.ACTIVE
STATUS = "status"
"""Metadata of a turn that is not active."""


class ConspectusAsyncChatStore(OfPeople, AsyncDBChatStore):
    """The message store of LlamaIndex's Memory: active and archived messages, as memories by time.

    A key is a conversation of the user and the agent. Without an `agent`, messages of all agents are read,
    and new ones belong to no agent.
    """

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex."""
        return "ConspectusAsyncChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages with a status (None: any), oldest first, up to `limit` from `offset`."""
        for name, value in (("limit", limit), ("offset", offset)):
            if value is not None and value < 0:
                raise InvalidInput(name, "is negative; must be at least 0")
        start = offset or 0
        memories = await self._memories(key, status)
        return self._messages(key, memories[start : None if limit is None else start + limit])

    async def count_messages(self, key: str, status: MessageStatus | None = ACTIVE) -> int:
        """Count the messages with a status (None: any)."""
        return len(await self._memories(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = ACTIVE) -> None:
        """Append a message. Raises InvalidInput for one that is not JSON."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE
    ) -> None:
        """Append messages, all or none. Raises InvalidInput for one that is not JSON."""
        items, roles = list(map(item_of, messages)), [message.role.value for message in messages]
        more = {} if status == ACTIVE else {STATUS: status.value}
        await self._access.run(partial(self._turns(key).add, items=items, roles=roles, more=more))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE
    ) -> None:
        """Replace all messages of a conversation, whatever their status."""
        before = await self._memories(key, None)
        await self.add_messages(key, messages, status)
        await self._delete_memories(key, before)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the active message at a position, and return it; None if there is none."""
        memories = await self._memories(key, ACTIVE)
        selected = [memories[idx]] if -len(memories) <= idx < len(memories) else []
        return next(iter(await self._delete_memories(key, selected)), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages with a status (None: any)."""
        await self._delete_memories(key, await self._memories(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages, and return them."""
        return await self._delete_memories(key, (await self._memories(key, ACTIVE))[: max(n, 0)])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the `n` oldest active messages, and return them."""
        oldest = (await self._memories(key, ACTIVE))[: max(n, 0)]
        scope = self._turns(key).scope

        async def work(engine: AnyEngine) -> None:
            for memory in oldest:
                changed = {**memory.metadata, STATUS: MessageStatus.ARCHIVED.value}
                await engine.memory.update(
                    memory.id, scope=scope, collection=self.collection, metadata=changed
                )

        await self._access.run(work)
        return self._messages(key, oldest)

    async def get_keys(self) -> list[str]:
        """Return the conversations, ordered by first message."""
        scope = Scope(self.user, self.agent)
        return await self._access.run(lambda engine: conversations(engine, scope, self.collection))

    async def _memories(self, key: str, status: MessageStatus | None) -> list[Memory]:
        memories = await self._access.run(self._turns(key).memories)
        return [
            memory
            for memory in memories
            if status is None or memory.metadata.get(STATUS, ACTIVE.value) == status.value
        ]

    async def _delete_memories(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        await self._access.run(partial(self._turns(key).forget, memories=memories))
        return self._messages(key, memories)

    def _messages(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        return [message_of(self._turns(key).item(memory)) for memory in memories]
