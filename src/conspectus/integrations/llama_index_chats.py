"""The chat stores of LlamaIndex over the turns of conversations in memory."""

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, PrivateAttr
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.loading import RECOGNIZED_CHAT_STORES

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.integrations.chat_messages import Item, Turns, conversations
from conspectus.integrations.event_loop import Calls, Closing, Work, calls_to
from conspectus.model.memory import MEMORY, Memory, Scope

FORM = "llama_index"
STATUS = "status"
"""Metadata of a turn that is not active."""


class OnEngine(Closing, BaseModel):
    """What LlamaIndex writes and reads as a model; its `engine` is the engine, or the path of a store."""

    model_config = ConfigDict(extra="forbid")

    engine: Any = None
    _calls: Calls = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find the way to the engine."""
        super().model_post_init(context)
        self._calls = calls_to(self.engine)


class ConspectusChatStore(OnEngine, BaseChatStore):
    """The messages of conversations in memory: every one, as it was given, in the order of time.

    A key is a conversation of the user and the agent. Without an `agent`, messages of all agents are read,
    and new ones are no agent's. A buffer over a store at a path can be written as a string and read again.
    """

    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "ConspectusChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a conversation."""
        self._calls.wait(self._set(key, messages))

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """As set_messages."""
        await self._calls.run(self._set(key, messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """The messages of a conversation; none of one that is unknown."""
        return [message_of(item) for item in self._calls.wait(self._turns(key).newest)]

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """As get_messages."""
        return [message_of(item) for item in await self._calls.run(self._turns(key).newest)]

    def add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """Append a message, or insert it at `idx`. Raises InvalidInput for one that is not JSON."""
        self._calls.wait(self._add(key, message, idx))

    async def async_add_message(self, key: str, message: ChatMessage, idx: int | None = None) -> None:
        """As add_message."""
        await self._calls.run(self._add(key, message, idx))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Forget a conversation, and return what was said; None of one that is unknown."""
        return [message_of(item) for item in self._calls.wait(self._turns(key).clear)] or None

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """As delete_messages."""
        return [message_of(item) for item in await self._calls.run(self._turns(key).clear)] or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Forget the message at a place, and return it; None where there is none."""
        return _maybe(self._calls.wait(lambda engine: self._turns(key).take(engine, idx)))

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """As delete_message."""
        return _maybe(await self._calls.run(lambda engine: self._turns(key).take(engine, idx)))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Forget the last message, and return it; None where there is none."""
        return _maybe(self._calls.wait(self._turns(key).pop))

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """As delete_last_message."""
        return _maybe(await self._calls.run(self._turns(key).pop))

    def get_keys(self) -> list[str]:
        """The conversations."""
        return self._calls.wait(self._keys)

    async def aget_keys(self) -> list[str]:
        """As get_keys."""
        return await self._calls.run(self._keys)

    def _turns(self, key: str) -> Turns:
        return Turns(Scope(self.user, self.agent, key), FORM, self.collection)

    def _add(self, key: str, message: ChatMessage, idx: int | None) -> Work[None]:
        turns, item, role = self._turns(key), item_of(message), message.role.value
        if idx is None:
            return lambda engine: turns.add(engine, [item], roles=[role])
        return lambda engine: turns.insert(engine, idx, item, role)

    def _set(self, key: str, messages: Sequence[ChatMessage]) -> Work[None]:
        turns, items = self._turns(key), list(map(item_of, messages))
        roles = [each.role.value for each in messages]

        async def work(engine: AnyEngine) -> None:
            before = await turns.memories(engine)
            await turns.add(engine, items, roles=roles)
            await turns.forget(engine, before)

        return work

    async def _keys(self, engine: AnyEngine) -> list[str]:
        return await conversations(engine, Scope(self.user, self.agent), self.collection)


# `ChatMemoryBuffer.from_string` finds the class of a store here, although the type names LlamaIndex's alone.
_recognized: Any = RECOGNIZED_CHAT_STORES
_recognized[ConspectusChatStore.class_name()] = ConspectusChatStore


class ConspectusAsyncChatStore(OnEngine, AsyncDBChatStore):
    """What LlamaIndex's Memory keeps its messages in: active ones, and those that it archived.

    A key is a conversation of the user and the agent, as in ConspectusChatStore.
    """

    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY

    @classmethod
    def class_name(cls) -> str:
        """The name by which LlamaIndex knows it."""
        return "ConspectusAsyncChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """The messages with a status (None: any), oldest first, `limit` of them from place `offset` on."""
        for name, value in (("limit", limit), ("offset", offset)):
            if value is not None and value < 0:
                raise InvalidInput(name, "is negative; must be at least 0")
        start = offset or 0
        found = await self._memories(key, status)
        return self._messages(key, found[start : None if limit is None else start + limit])

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages have a status (None: any)."""
        return len(await self._memories(key, status))

    async def add_message(
        self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append a message. Raises InvalidInput for one that is not JSON."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages, all or none. Raises InvalidInput for one that is not JSON."""
        turns, items = self._turns(key), list(map(item_of, messages))
        roles = [each.role.value for each in messages]
        more = {} if status == MessageStatus.ACTIVE else {STATUS: status.value}
        await self._calls.run(lambda engine: turns.add(engine, items, roles=roles, more=more))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace all messages of a conversation, whatever their status."""
        before = await self._memories(key, None)
        await self.add_messages(key, messages, status)
        await self._forget(key, before)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the active message at a place, and return it; None where there is none."""
        found = await self._memories(key, MessageStatus.ACTIVE)
        if not -len(found) <= idx < len(found):
            return None
        await self._forget(key, [found[idx]])
        return self._messages(key, [found[idx]])[0]

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages with a status (None: any)."""
        await self._forget(key, await self._memories(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages, and return them."""
        oldest = (await self._memories(key, MessageStatus.ACTIVE))[: max(n, 0)]
        await self._forget(key, oldest)
        return self._messages(key, oldest)

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the `n` oldest active messages, and return them."""
        oldest = (await self._memories(key, MessageStatus.ACTIVE))[: max(n, 0)]
        scope = self._turns(key).scope

        async def work(engine: AnyEngine) -> None:
            for each in oldest:
                changed = {**each.metadata, STATUS: MessageStatus.ARCHIVED.value}
                await engine.memory.update(each.id, scope=scope, collection=self.collection, metadata=changed)

        await self._calls.run(work)
        return self._messages(key, oldest)

    async def get_keys(self) -> list[str]:
        """The conversations, in the order in which they began."""
        scope = Scope(self.user, self.agent)
        return await self._calls.run(lambda engine: conversations(engine, scope, self.collection))

    def _turns(self, key: str) -> Turns:
        return Turns(Scope(self.user, self.agent, key), FORM, self.collection)

    async def _memories(self, key: str, status: MessageStatus | None) -> list[Memory]:
        found = await self._calls.run(self._turns(key).memories)
        usual = MessageStatus.ACTIVE.value
        return [each for each in found if status is None or each.metadata.get(STATUS, usual) == status.value]

    async def _forget(self, key: str, memories: Sequence[Memory]) -> None:
        await self._calls.run(lambda engine: self._turns(key).forget(engine, memories))

    def _messages(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        return [message_of(self._turns(key).item(each)) for each in memories]


def item_of(message: ChatMessage) -> Item:
    """A message as JSON. Raises InvalidInput."""
    try:
        item: Item = json.loads(message.model_dump_json())
    except ValueError as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault
    return item


def message_of(item: Item) -> ChatMessage:
    """The message of an item."""
    if "blocks" in item:
        return ChatMessage.model_validate(item)
    known = {role.value for role in MessageRole}
    role = item["role"] if item["role"] in known else MessageRole.USER
    return ChatMessage(role=role, content=item["content"])


def _maybe(item: Item | None) -> ChatMessage | None:
    return None if item is None else message_of(item)
