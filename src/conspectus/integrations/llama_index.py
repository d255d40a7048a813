"""Conspectus for programs made with LlamaIndex: retriever, vector store, message store, long-term memory.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine, Ask(max_tokens=1_000))
        nodes = retriever.retrieve("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from conspectus.bridge.engine_access import AnyEngineOrPath, EngineAccess, Work, access_to
from conspectus.bridge.engine_user import EngineUser, blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.arguments import refuse_arguments
from conspectus.integrations.chat_messages import Item, Turns, conversations, nothing_yet
from conspectus.integrations.texts import (
    ALL,
    COMPARISONS,
    Ask,
    Comparison,
    FoundText,
    RetrievedPassage,
    Selection,
    Text,
    Texts,
)
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Or
from conspectus.model.memory import MEMORY, Memory, Scope
from conspectus.model.query import QueryOptions, Retriever

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import BaseModel, ConfigDict, PrivateAttr
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError as missing:
    raise MissingExtra("llama-index", "llama-index-core") from missing

__all__ = [
    "Ask",
    "ConspectusAsyncChatStore",
    "ConspectusMemoryBlock",
    "ConspectusRetriever",
    "ConspectusVectorStore",
]


class OnEngine(EngineUser, BaseModel):
    """A LlamaIndex component that is serialized as a model. `engine` is an engine, or the path of a store."""

    model_config = ConfigDict(extra="forbid")

    engine: Any = None
    _access: EngineAccess = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Create the access to the engine."""
        super().model_post_init(context)
        self._access = access_to(self.engine)


RETRIEVERS: Mapping[VectorStoreQueryMode, tuple[Retriever, ...]] = {
    VectorStoreQueryMode.DEFAULT: ("vector",),
    VectorStoreQueryMode.HYBRID: ("keyword", "vector"),
    VectorStoreQueryMode.SEMANTIC_HYBRID: ("keyword", "vector"),
    VectorStoreQueryMode.SPARSE: ("keyword",),
    VectorStoreQueryMode.TEXT_SEARCH: ("keyword",),
}
UNUSED = ("alpha", "embedding_field", "mmr_threshold", "output_fields", "sparse_top_k")
"""Fields of a query that are not supported."""
REFERENCE = "ref_doc_id"

FILTERS: Mapping[FilterOperator, Comparison] = {
    **{each: COMPARISONS[each.value] for each in FilterOperator if each.value in COMPARISONS},
    FilterOperator.ANY: COMPARISONS["in"],
    FilterOperator.NIN: COMPARISONS["not in"],
    FilterOperator.ALL: lambda path, value: And(tuple(Eq(path, each) for each in value)),
    FilterOperator.CONTAINS: COMPARISONS["=="],
    FilterOperator.IS_EMPTY: lambda path, _: Not(Exists(path)),
}


class ConspectusVectorStore(OnEngine, BasePydanticVectorStore):
    """Nodes with their texts and vectors in a source of a collection.

    The collection is created for vectors of the size of the first node's. The modes `default`, `hybrid`,
    `semantic_hybrid`, `sparse` and `text_search` are supported.
    """

    stores_text: bool = True
    source: str = "nodes"
    collection: str = "llama-index-vectors"

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex."""
        return "ConspectusVectorStore"

    @property
    def client(self) -> Any:
        """The engine, or the path of a store."""
        return self.engine

    async def _add(self, engine: AnyEngine, /, nodes: Sequence[BaseNode], **unknown: Any) -> list[str]:
        """Add nodes, or replace those with the same ids. Raises InvalidInput for one without a vector."""
        refuse_arguments(unknown)
        await self._texts.add(engine, list(map(_text, nodes)))
        return [each.node_id for each in nodes]

    async def _delete(self, engine: AnyEngine, /, ref_doc_id: str, **unknown: Any) -> None:
        """Delete the nodes of a document."""
        refuse_arguments(unknown)
        await self._texts.delete(engine, Selection(filter=Eq((REFERENCE,), ref_doc_id)))

    async def _delete_nodes(
        self,
        engine: AnyEngine,
        /,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **unknown: Any,
    ) -> None:
        """Delete the nodes with these ids that match the filters."""
        refuse_arguments(unknown)
        await self._texts.delete(engine, Selection(node_ids, _filter(filters)))

    async def _clear(self, engine: AnyEngine) -> None:
        """Delete all nodes."""
        await self._texts.delete(engine, ALL)

    async def _get_nodes(
        self, engine: AnyEngine, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return the nodes with these ids that match the filters."""
        return list(map(_text_node, await self._texts.get(engine, Selection(node_ids, _filter(filters)))))

    async def _query(
        self, engine: AnyEngine, /, query: VectorStoreQuery, **unknown: Any
    ) -> VectorStoreQueryResult:
        """Return the best nodes, best first, with cosine similarities, or with scores in other modes."""
        refuse_arguments(unknown)
        found = await self._search(engine, query)
        by_vector = query.mode == VectorStoreQueryMode.DEFAULT
        scores = [each.similarity or 0.0 if by_vector else each.score for each in found]
        nodes = [_text_node(each.text) for each in found]
        return VectorStoreQueryResult(nodes=nodes, similarities=scores, ids=[each.text.id for each in found])

    add, async_add = blocking_and_async(_add)
    delete, adelete = blocking_and_async(_delete)
    delete_nodes, adelete_nodes = blocking_and_async(_delete_nodes)
    clear, aclear = blocking_and_async(_clear)
    get_nodes, aget_nodes = blocking_and_async(_get_nodes)
    query, aquery = blocking_and_async(_query)

    @property
    def _texts(self) -> Texts:
        return Texts(self.source, self.collection)

    async def _search(self, engine: AnyEngine, query: VectorStoreQuery) -> list[FoundText]:
        refuse_arguments(name for name in UNUSED if getattr(query, name) is not None)
        used = RETRIEVERS.get(query.mode)
        if used is None:
            raise InvalidInput("mode", f"is {query.mode.value}; must be one of {', '.join(RETRIEVERS)}")
        parts = [_filter(query.filters)]
        if query.doc_ids is not None:
            parts.append(In((REFERENCE,), tuple(query.doc_ids)))
        selection = Selection(query.node_ids, And(tuple(parts)))
        limit = query.similarity_top_k if len(used) == 1 else query.hybrid_top_k or query.similarity_top_k
        options: QueryOptions = {"retrievers": used}
        if "vector" in used and query.query_embedding is not None:
            options["vector"] = tuple(query.query_embedding)
        return await self._texts.search(engine, query.query_str or "", limit, selection, options)


def _text(node: BaseNode) -> Text:
    if node.embedding is None:
        raise InvalidInput("embedding", f"is missing in node {node.node_id!r:.80}; every node needs one")
    metadata = node_to_metadata_dict(node, remove_text=True)
    return Text(node.node_id, node.get_content(MetadataMode.NONE), metadata, tuple(node.embedding))


def _text_node(text: Text) -> BaseNode:
    return metadata_dict_to_node(dict(text.metadata), text=text.text)


def _filter(filters: MetadataFilters | MetadataFilter | None) -> Filter:
    """Return the filters as a filter of Conspectus. Raises InvalidInput for an unsupported operator."""
    if filters is None:
        return EVERYTHING
    if isinstance(filters, MetadataFilters):
        parts = tuple(map(_filter, filters.filters))
        if filters.condition == FilterCondition.NOT:
            return Not(Or(parts))
        return Or(parts) if filters.condition == FilterCondition.OR and parts else And(parts)
    made = FILTERS.get(filters.operator)
    if made is None:
        raise InvalidInput(
            "filters", f"{filters.operator.value!r} is not supported; use the text of the query"
        )
    return made((filters.key,), filters.value)


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
        await self._access.run(partial(self._turns(key).add, items=items, roles=roles, more=more))

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

        await self._access.run(work)
        return self._messages(key, oldest)

    async def get_keys(self) -> list[str]:
        """Return the conversations, ordered by first message."""
        scope = Scope(self.user, self.agent)
        return await self._access.run(lambda engine: conversations(engine, scope, self.collection))

    async def _memories(self, key: str, status: MessageStatus | None) -> list[Memory]:
        found = await self._access.run(self._turns(key).memories)
        return [
            each
            for each in found
            if status is None or each.metadata.get(STATUS, ACTIVE.value) == status.value
        ]

    async def _taken(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        await self._access.run(partial(self._turns(key).forget, memories=memories))
        return self._messages(key, memories)

    def _messages(self, key: str, memories: Sequence[Memory]) -> list[ChatMessage]:
        return [message_of(self._turns(key).item(each)) for each in memories]


class ConspectusRetriever(EngineUser, BaseRetriever):
    """Passages for a query, as nodes with score, parts, source and citation as metadata.

    `ask` has the options of every query: the collection (`*` for all), a filter, a limit, and the maximum
    tokens of all texts together, separated by blank lines. Only the texts of nodes are shown to models and
    embedded, not their metadata.
    """

    def __init__(self, engine: AnyEngineOrPath = None, ask: Ask | None = None, **base: Any) -> None:
        super().__init__(**base)
        self._access = access_to(engine)
        self._ask = ask or Ask()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in self._access.wait(self._passages(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_node(each) for each in await self._access.run(self._passages(query_bundle))]

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

        return await self._access.run(work)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            sessions.setdefault(message.additional_kwargs.get("session_id"), []).append(message)
        for session, said in sessions.items():
            items, roles = [item_of(each) for each in said], [each.role.value for each in said]
            await self._access.run(partial(self._turns(session).add, items=items, roles=roles))


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
