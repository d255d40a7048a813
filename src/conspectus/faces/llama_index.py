"""Conspectus for programs made with LlamaIndex: a retriever, a chat store and a block of long-term memory.

    with conspectus.sync.open("notes") as engine:
        retriever = ConspectusRetriever(engine, budget=1_000)
        nodes = retriever.retrieve("When is the meeting?")

The engine may be any of `conspectus.open`, `connect`, `sync.open` and `sync.connect`, or the path of a store.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.faces.adapter_calls import Calls, Given, Work, calls_to
from conspectus.faces.adapter_engine import AdapterEngine
from conspectus.faces.adapter_passages import Ask, Passage
from conspectus.faces.adapter_turns import Item, Turns, conversations, nothing_yet
from conspectus.model.memory import MEMORY, MemoryQuestion, Scope

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.storage.chat_store.base import BaseChatStore
except ImportError as missing:
    raise MissingExtra("llama-index", "llama-index-core") from missing

FORM = "llama_index"


class ConspectusRetriever(BaseRetriever):
    """Passages for a question, as nodes with their score, parts, source and citation as metadata.

    `ask` says what is asked for with every question: the collection (`*` stands for all of them), a filter,
    a limit, and a budget in tokens that all texts together, with a blank line between them, cost at most.
    Only the texts of nodes are shown to models and embedded, not their metadata.
    """

    def __init__(self, engine: Given = None, ask: Ask | None = None, **base: Any) -> None:
        super().__init__(**base)
        self._calls = calls_to(engine)
        self._ask = ask or Ask()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in self._calls.wait(self._passages(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in await self._calls.run(self._passages(query_bundle))]

    def _passages(self, query_bundle: QueryBundle) -> Work[list[Passage]]:
        return lambda engine: self._ask.passages(engine, query_bundle.query_str)

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()


class ConspectusChatStore(BaseChatStore):
    """The messages of conversations in memory: every one, as it was given, in the order of time.

    A key is a conversation of the user and the agent. Without an `agent`, messages of all agents are read,
    and new ones are no agent's.
    """

    engine: Any = None
    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY
    _calls: Calls = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find the way to the engine."""
        super().model_post_init(context)
        self._calls = calls_to(self.engine)

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
        return [_message(item) for item in self._calls.wait(self._turns(key).newest)]

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """As get_messages."""
        return [_message(item) for item in await self._calls.run(self._turns(key).newest)]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message. Raises InvalidInput for one that is not JSON."""
        self._calls.wait(self._add(key, [message]))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """As add_message."""
        await self._calls.run(self._add(key, [message]))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Forget a conversation, and return what was said; None of one that is unknown."""
        return [_message(item) for item in self._calls.wait(self._turns(key).clear)] or None

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """As delete_messages."""
        return [_message(item) for item in await self._calls.run(self._turns(key).clear)] or None

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

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()

    def _turns(self, key: str) -> Turns:
        return Turns(Scope(self.user, self.agent, key), FORM, self.collection)

    def _add(self, key: str, messages: Sequence[ChatMessage]) -> Work[None]:
        items, roles = [_item(each) for each in messages], [each.role.value for each in messages]
        return lambda engine: self._turns(key).add(engine, items, roles=roles)

    def _set(self, key: str, messages: Sequence[ChatMessage]) -> Work[None]:
        add = self._add(key, messages)

        async def work(engine: AdapterEngine) -> None:
            await self._turns(key).clear(engine)
            await add(engine)

        return work

    async def _keys(self, engine: AdapterEngine) -> list[str]:
        return await conversations(engine, Scope(self.user, self.agent), self.collection)


class ConspectusMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory for LlamaIndex's Memory: what of it answers the last message, in so many tokens.

    What that Memory pushes out of its own history is remembered here, in the conversation of its session.
    """

    name: str = "LongTermMemory"
    engine: Any = None
    user: str | None = None
    agent: str | None = None
    collection: str = MEMORY
    budget: int = 1_000
    _calls: Calls = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Find the way to the engine."""
        super().model_post_init(context)
        self._calls = calls_to(self.engine)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        text = messages[-1].content if messages else None
        if not text:
            return ""
        question = MemoryQuestion(text, Scope(self.user, self.agent), self.collection, recent=0)

        async def work(engine: AdapterEngine) -> str:
            with nothing_yet():
                return (await engine.memory_window(question, self.budget)).text
            return ""

        return await self._calls.run(work)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for session, said in _by_session(messages):
            turns = Turns(Scope(self.user, self.agent, session), FORM, self.collection)
            items, roles = [_item(each) for each in said], [each.role.value for each in said]
            await self._calls.run(partial(turns.add, items=items, roles=roles))

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()


def _node(passage: Passage) -> NodeWithScore:
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


def _by_session(messages: Sequence[ChatMessage]) -> list[tuple[str | None, list[ChatMessage]]]:
    """The messages of each session, which Memory writes beside them."""
    found: dict[str | None, list[ChatMessage]] = {}
    for message in messages:
        found.setdefault(message.additional_kwargs.get("session_id"), []).append(message)
    return list(found.items())


def _item(message: ChatMessage) -> Item:
    try:
        item: Item = json.loads(message.model_dump_json())
    except ValueError as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault
    return item


def _maybe(item: Item | None) -> ChatMessage | None:
    return None if item is None else _message(item)


def _message(item: Item) -> ChatMessage:
    if "blocks" in item:
        return ChatMessage.model_validate(item)
    known = {role.value for role in MessageRole}
    role = item["role"] if item["role"] in known else MessageRole.USER
    return ChatMessage(role=role, content=item["content"])
