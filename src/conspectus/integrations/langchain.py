"""Conspectus for programs made with LangChain: a retriever, a vector store, a chat history, a store of bytes.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine=engine, max_tokens=1_000)
        documents = retriever.invoke("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.chat_messages import Conversation, Item
from conspectus.integrations.event_loop import Calls, Closing, Given, both, calls_to
from conspectus.integrations.langchain_vectors import ConspectusVectorStore
from conspectus.integrations.texts import Ask, Value, Values
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.query import QueryOptions

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        HumanMessage,
        SystemMessage,
        messages_from_dict,
    )
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.stores import ByteStore
    from pydantic import ConfigDict, Field, PrivateAttr
    from pydantic_core import PydanticSerializationError

except ImportError as missing:
    raise MissingExtra("langchain", "langchain-core") from missing

__all__ = [
    "ConspectusByteStore",
    "ConspectusChatMessageHistory",
    "ConspectusRetriever",
    "ConspectusVectorStore",
]
ROLES = {"human": "user", "ai": "assistant"}
"""Roles of messages whose type has another name in LangChain."""
CLASSES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}
"""Message classes by role, for messages that were not written by LangChain."""


class ConspectusByteStore(Closing, ByteStore):
    """Byte values by key in a source of a collection, as LangChain's caches and docstores need.

    Values are stored durably, in one transaction for up to 500. They are not found by searches, unless they
    are texts and `searchable` is set: then keyword search in the collection finds them.
    """

    def __init__(
        self,
        engine: Given = None,
        *,
        source: str = "store",
        collection: str = "langchain",
        searchable: bool = False,
    ) -> None:
        self._calls = calls_to(engine)
        self._values = Values(source=source, collection=collection, searchable=searchable)

    async def _get(self, engine: AnyEngine, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys in order; None for missing ones."""
        return await self._values.get(engine, keys)

    async def _set(self, engine: AnyEngine, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set values. Of duplicate keys, the last one is stored."""
        await self._values.add(engine, [Value(*pair) for pair in key_value_pairs])

    async def _delete(self, engine: AnyEngine, keys: Sequence[str]) -> None:
        """Delete keys. Missing keys are ignored."""
        await self._values.remove(engine, keys)

    mget, amget = both(_get)
    mset, amset = both(_set)
    mdelete, amdelete = both(_delete)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys with a prefix, reading page by page."""
        after: str | None = ""
        while after is not None:
            keys, after = self._calls.wait(self._values.page_of_keys(prefix or "", after))
            yield from keys

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous version of yield_keys."""
        after: str | None = ""
        while after is not None:
            keys, after = await self._calls.run(self._values.page_of_keys(prefix or "", after))
            for key in keys:
                yield key


class ConspectusRetriever(Closing, BaseRetriever):
    """Passages for a query, as documents with id, score, parts, source and citation as metadata.

    All texts together, separated by blank lines, have at most `max_tokens` tokens. `options` are other fields
    of a Query, such as `min_similarity`, `query_context` or `graph`. The collection `*` means all
    collections. `invoke` also takes every argument except `engine`, for one query.
    """

    model_config = ConfigDict(extra="forbid")

    engine: Any = None
    collection: str = "default"
    filter: Any = EVERYTHING
    limit: int | None = None
    max_tokens: int | None = None
    tokenizer: str = "o200k_base"
    options: dict[str, Any] = Field(default_factory=dict)
    _calls: Calls = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Create the access to the engine."""
        super().model_post_init(context)
        self._calls = calls_to(self.engine)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._calls.wait(lambda engine: self._found(engine, query, options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await self._calls.run(lambda engine: self._found(engine, query, options))

    async def _found(self, engine: AnyEngine, query: str, arguments: dict[str, Any]) -> list[Document]:
        chosen: Filter = self.filter
        options = cast(QueryOptions, self.options)
        usual = Ask(self.collection, chosen, self.limit, self.max_tokens, self.tokenizer, options)
        passages = await replace(usual, **arguments).passages(engine, query)
        return [Document(each.text, id=each.id, metadata=each.metadata) for each in passages]


class ConspectusChatMessageHistory(Conversation, BaseChatMessageHistory):
    """All messages of a conversation, stored as memories in the order of time.

    Messages can be found later, also from other conversations of the same user. Without an `agent`, messages
    of all agents in the conversation are read, and new ones belong to no agent.
    """

    form = "langchain"

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages. Setting them replaces them."""
        return [_message(item) for item in self._calls.wait(self._turns.newest)]

    @messages.setter
    def messages(self, messages: list[BaseMessage]) -> None:
        self.clear()
        self.add_messages(messages)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages."""
        return [_message(item) for item in await self._calls.run(self._turns.newest)]

    async def _add(self, engine: AnyEngine, messages: Sequence[BaseMessage]) -> None:
        """Append messages. Raises InvalidInput for one that is not JSON."""
        items, roles = [_item(each) for each in messages], [_role(each) for each in messages]
        await self._turns.add(engine, items, roles=roles)

    add_messages, aadd_messages = both(_add)
    clear, aclear = both(Conversation._clear)


def _role(message: BaseMessage) -> str:
    kind = ROLES.get(message.type, message.type)
    return message.role if isinstance(message, ChatMessage) else kind


def _item(message: BaseMessage) -> Item:
    try:
        return {"type": message.type, "data": json.loads(message.model_dump_json())}
    except (PydanticSerializationError, ValueError) as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault


def _message(item: Item) -> BaseMessage:
    if "data" in item:
        return messages_from_dict([item])[0]
    role, said = item["role"], item["content"]
    return CLASSES[role](content=said) if role in CLASSES else ChatMessage(content=said, role=role)
