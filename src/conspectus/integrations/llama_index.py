"""Conspectus for programs made with LlamaIndex: retriever, vector store, message store, long-term memory.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine, Ask(max_tokens=1_000))
        nodes = retriever.retrieve("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.chat_messages import Item, Turns, conversations, nothing_yet
from conspectus.integrations.event_loop import Closing, Given, Work, calls_to
from conspectus.integrations.llama_index_vectors import ConspectusVectorStore, OnEngine
from conspectus.integrations.texts import Ask, RetrievedPassage
from conspectus.model.memory import MEMORY, Memory, Scope

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
except ImportError as missing:
    raise MissingExtra("llama-index", "llama-index-core") from missing

__all__ = [
    "Ask",
    "ConspectusAsyncChatStore",
    "ConspectusMemoryBlock",
    "ConspectusRetriever",
    "ConspectusVectorStore",
]
FORM = "llama_index"
ACTIVE = MessageStatus.ACTIVE
STATUS = "status"
"""Metadata of a turn that is not active."""


class OfPeople(OnEngine):
    """Stores memories of a user and an agent, by conversation."""

    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY

    def _turns(self, key: str | None) -> Turns:
        return Turns(Scope(self.user, self.agent, key), FORM, self.collection)


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
        found = await self._memories(key, status)
        return self._messages(key, found[start : None if limit is None else start + limit])

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
        items, roles = list(map(item_of, messages)), [each.role.value for each in messages]
        more = {} if status == ACTIVE else {STATUS: status.value}
        await self._calls.run(partial(self._turns(key).add, items=items, roles=roles, more=more))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = ACTIVE
    ) -> None:
        """Replace all messages of a conversation, whatever their status."""
        before = await self._memories(key, None)
        await self.add_messages(key, messages, status)
        await self._taken(key, before)

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the active message at a position, and return it; None if there is none."""
        found = await self._memories(key, ACTIVE)
        chosen = [found[idx]] if -len(found) <= idx < len(found) else []
        return next(iter(await self._taken(key, chosen)), None)

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Delete the messages with a status (None: any)."""
        await self._taken(key, await self._memories(key, status))

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Delete the `n` oldest active messages, and return them."""
        return await self._taken(key, (await self._memories(key, ACTIVE))[: max(n, 0)])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the `n` oldest active messages, and return them."""
        oldest = (await self._memories(key, ACTIVE))[: max(n, 0)]
        scope = self._turns(key).scope

        async def work(engine: AnyEngine) -> None:
            for each in oldest:
                changed = {**each.metadata, STATUS: MessageStatus.ARCHIVED.value}
                await engine.memory.update(each.id, scope=scope, collection=self.collection, metadata=changed)

        await self._calls.run(work)
        return self._messages(key, oldest)

    async def get_keys(self) -> list[str]:
        """Return the conversations, ordered by first message."""
        scope = Scope(self.user, self.agent)
        return await self._calls.run(lambda engine: conversations(engine, scope, self.collection))

    async def _memories(self, key: str, status: MessageStatus | None) -> list[Memory]:
        found = await self._calls.run(self._turns(key).memories)
        return [
            each
            for each in found
            if status is None or each.metadata.get(STATUS, ACTIVE.value) == status.value
        ]

    async def _taken(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        await self._calls.run(partial(self._turns(key).forget, memories=memories))
        return self._messages(key, memories)

    def _messages(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        return [message_of(self._turns(key).item(each)) for each in memories]


class ConspectusRetriever(Closing, BaseRetriever):
    """Passages for a query, as nodes with score, parts, source and citation as metadata.

    `ask` has the options of every query: the collection (`*` for all), a filter, a limit, and the maximum
    tokens of all texts together, separated by blank lines. Only the texts of nodes are shown to models and
    embedded, not their metadata.
    """

    def __init__(self, engine: Given = None, ask: Ask | None = None, **base: Any) -> None:
        super().__init__(**base)
        self._calls = calls_to(engine)
        self._ask = ask or Ask()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in self._calls.wait(self._passages(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in await self._calls.run(self._passages(query_bundle))]

    def _passages(self, query_bundle: QueryBundle) -> Work[list[RetrievedPassage]]:
        return lambda engine: self._ask.passages(engine, query_bundle.query_str)


class ConspectusMemoryBlock(OfPeople, BaseMemoryBlock[str]):
    """Long-term memory for LlamaIndex's Memory: memories relevant to the last message, within a token limit.

    Messages that Memory flushes from its history are stored in the conversation of its session.
    """

    name: str = "LongTermMemory"
    max_tokens: int = 1_000

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        text = messages[-1].content if messages else None
        if not text:
            return ""
        scope = Scope(self.user, self.agent)

        async def work(engine: AnyEngine) -> str:
            with nothing_yet():
                window = await engine.memory.window(
                    text, self.max_tokens, scope=scope, collection=self.collection, recent=0
                )
                return window.text
            return ""

        return await self._calls.run(work)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            sessions.setdefault(message.additional_kwargs.get("session_id"), []).append(message)
        for session, said in sessions.items():
            items, roles = [item_of(each) for each in said], [each.role.value for each in said]
            await self._calls.run(partial(self._turns(session).add, items=items, roles=roles))


def _node(passage: RetrievedPassage) -> NodeWithScore:
    metadata = passage.metadata
    hidden = sorted(metadata)
    node = TextNode(
        text=passage.text,
        id_=passage.id,
        metadata=metadata,
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )
    return NodeWithScore(node=node, score=float(passage.score))


def item_of(message: ChatMessage) -> Item:
    """Return a message as JSON. Raises InvalidInput."""
    try:
        item: Item = json.loads(message.model_dump_json())
    except ValueError as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault
    return item


def message_of(item: Item) -> ChatMessage:
    """Return the message of an item."""
    if "blocks" in item:
        return ChatMessage.model_validate(item)
    known = {role.value for role in MessageRole}
    role = item["role"] if item["role"] in known else MessageRole.USER
    return ChatMessage(role=role, content=item["content"])
