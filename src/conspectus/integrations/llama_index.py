"""Conspectus for programs made with LlamaIndex: retriever, vector store, chat stores, long-term memory.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine, budget=1_000)
        nodes = retriever.retrieve("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import MissingExtra
from conspectus.integrations.chat_messages import Turns, nothing_yet
from conspectus.integrations.event_loop import Calls, Given, Work, calls_to
from conspectus.integrations.passages import Ask, RetrievedPassage
from conspectus.model.memory import MEMORY, MemoryQuery, Scope

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from conspectus.integrations.llama_index_chats import (
        FORM,
        ConspectusAsyncChatStore,
        ConspectusChatStore,
        item_of,
    )
    from conspectus.integrations.llama_index_vectors import ConspectusVectorStore
except ImportError as missing:
    raise MissingExtra("llama-index", "llama-index-core") from missing

__all__ = [
    "ConspectusAsyncChatStore",
    "ConspectusChatStore",
    "ConspectusMemoryBlock",
    "ConspectusRetriever",
    "ConspectusVectorStore",
]


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

    def _passages(self, query_bundle: QueryBundle) -> Work[list[RetrievedPassage]]:
        return lambda engine: self._ask.passages(engine, query_bundle.query_str)

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()


class ConspectusMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory for LlamaIndex's Memory: what of it answers the last message, in so many tokens.

    What that Memory pushes out of its own history is remembered here, in the conversation of its session.
    """

    model_config = ConfigDict(extra="forbid")

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
        question = MemoryQuery(text, Scope(self.user, self.agent), self.collection, recent=0)

        async def work(engine: AnyEngine) -> str:
            with nothing_yet():
                return (await engine.memory.window(question, self.budget)).text
            return ""

        return await self._calls.run(work)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        for session, said in _by_session(messages):
            turns = Turns(Scope(self.user, self.agent, session), FORM, self.collection)
            items, roles = [item_of(each) for each in said], [each.role.value for each in said]
            await self._calls.run(partial(turns.add, items=items, roles=roles))

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()


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


def _by_session(messages: Sequence[ChatMessage]) -> list[tuple[str | None, list[ChatMessage]]]:
    """The messages of each session, which Memory writes beside them."""
    found: dict[str | None, list[ChatMessage]] = {}
    for message in messages:
        found.setdefault(message.additional_kwargs.get("session_id"), []).append(message)
    return list(found.items())
