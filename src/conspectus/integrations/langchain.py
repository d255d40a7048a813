"""Conspectus for programs made with LangChain: a retriever, a vector store, a chat history, a store of bytes.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine=engine, max_tokens=1_000)
        documents = retriever.invoke("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self, TypedDict, Unpack, cast
from uuid import uuid4

from conspectus.bridge.engine_access import AnyEngineOrPath, EngineAccess, access_to
from conspectus.bridge.engine_user import EngineUser, blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.arguments import refuse_arguments
from conspectus.integrations.chat_messages import Conversation, Item
from conspectus.integrations.one_source import Selection
from conspectus.integrations.passages import Ask
from conspectus.integrations.texts import Text, TextMatch, Texts
from conspectus.integrations.values import Value, Values
from conspectus.model.filter import EVERYTHING, And, Eq, Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import QueryContext, QueryOptions, Retriever

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
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
    from langchain_core.vectorstores import VectorStore
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
LIMIT = 4
Vector = Sequence[float]


class SearchOptions(TypedDict, total=False):
    """The fields of a Query that a vector store search accepts, and the filter in LangChain's format."""

    filter: Mapping[str, Any] | Filter | None
    min_similarity: float | None
    retrievers: tuple[Retriever, ...]
    rerank: bool
    query_context: QueryContext | None
    thread_messages: int
    as_of: datetime | None
    graph: GraphExpansion | None


class ConspectusVectorStore(EngineUser, VectorStore):
    """Texts with metadata in a source of a collection, found by keyword and vector search.

    The collection's embedding model makes the vectors. With `embedding`, that model does: each text has one
    vector, and the collection is created for vectors of that size. A `filter` is a mapping of metadata to
    values that must all be equal, or a filter of Conspectus. Searches also take other fields of a Query, such
    as `min_similarity` or `retrievers`.
    """

    def __init__(
        self,
        engine: AnyEngineOrPath = None,
        *,
        embedding: Embeddings | None = None,
        source: str = "texts",
        collection: str = "langchain-vectors",
    ) -> None:
        self._access = access_to(engine)
        self._embedding = embedding
        self._texts = Texts(source, collection)

    @property
    def embeddings(self) -> Embeddings | None:
        """The embedding model that was passed in."""
        return self._embedding

    async def _add(
        self,
        engine: AnyEngine,
        /,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids. Returns their ids."""
        refuse_arguments(unknown)
        all_texts = list(texts)
        vectors = None
        if self._embedding is not None:
            vectors = await asyncio.to_thread(self._embedding.embed_documents, all_texts)
        new = _texts(all_texts, metadatas, ids, vectors)
        await self._texts.add(engine, new)
        return [text.id for text in new]

    async def _delete(self, engine: AnyEngine, /, ids: list[str] | None = None, **unknown: Any) -> bool:
        """Delete texts by id (None: all of the source). Unknown ids are ignored."""
        refuse_arguments(unknown)
        await self._texts.delete(engine, Selection(ids))
        return True

    async def _get(self, engine: AnyEngine, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids. Unknown ids are ignored."""
        return list(map(_document, await self._texts.get(engine, Selection(ids))))

    async def _search_texts(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Any
    ) -> list[Document]:
        """Return the best documents, best first."""
        return [_document(match.text) for match in await self._search(engine, query, k, **options)]

    async def _search_with_scores(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """Return the best documents with their scores; higher is better."""
        matches = await self._search(engine, query, k, **options)
        return [(_document(match.text), match.score) for match in matches]

    async def _search_with_relevance(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the best documents with their cosine similarities as relevance from 0 to 1."""
        matches = await self._search(engine, query, k, **options)
        return [(_document(match.text), min(1.0, max(0.0, match.similarity or 0.0))) for match in matches]

    async def _search_by_vector(
        self, engine: AnyEngine, /, embedding: list[float], k: int = LIMIT, **options: Any
    ) -> list[Document]:
        """Return the documents with the most similar vectors."""
        matches = await self._search_vector(
            engine, "", k, embedding, **{"retrievers": ("vector",), **options}
        )
        return [_document(match.text) for match in matches]

    add_texts, aadd_texts = blocking_and_async(_add)
    delete, adelete = blocking_and_async(_delete)
    get_by_ids, aget_by_ids = blocking_and_async(_get)
    similarity_search, asimilarity_search = blocking_and_async(_search_texts)
    similarity_search_with_score, asimilarity_search_with_score = blocking_and_async(_search_with_scores)
    similarity_search_by_vector, asimilarity_search_by_vector = blocking_and_async(_search_by_vector)
    _similarity_search_with_relevance_scores, _asimilarity_search_with_relevance_scores = blocking_and_async(
        _search_with_relevance
    )

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **where: Any,
    ) -> Self:
        """Return a store with these texts. `where` are the other arguments of the constructor."""
        store = cls(embedding=embedding, **where)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **where: Any,
    ) -> Self:
        """Asynchronous version of from_texts."""
        store = cls(embedding=embedding, **where)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    async def _search(
        self, engine: AnyEngine, query: str, k: int, **options: Unpack[SearchOptions]
    ) -> list[TextMatch]:
        vector = None
        if self._embedding is not None:
            vector = await asyncio.to_thread(self._embedding.embed_query, query)
        return await self._search_vector(engine, query, k, vector, **options)

    async def _search_vector(
        self,
        engine: AnyEngine,
        query: str,
        k: int,
        vector: Vector | None,
        **options: Unpack[SearchOptions],
    ) -> list[TextMatch]:
        if fixed := options.keys() & {"collection", "limit"}:
            raise InvalidInput(
                min(fixed), "is not an argument of a search; use k, filter, and the constructor"
            )
        selection = Selection(filter=_as_filter(options.pop("filter", None)))
        query_options = cast(QueryOptions, {**options, "vector": None if vector is None else tuple(vector)})
        return await self._texts.search(engine, query, k, selection, query_options)


def _texts(
    texts: Sequence[str],
    metadatas: Sequence[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
    vectors: Sequence[Vector] | None,
) -> list[Text]:
    columns = {"metadatas": metadatas, "ids": ids, "embedding": vectors}
    for name, column in columns.items():
        if column is not None and len(column) != len(texts):
            raise InvalidInput(name, f"has {len(column)} entries for {len(texts)} texts")
    return [
        Text(
            (ids[position] if ids else None) or str(uuid4()),
            text,
            metadatas[position] if metadatas else {},
            tuple(vectors[position]) if vectors else None,
        )
        for position, text in enumerate(texts)
    ]


def _as_filter(filter: Filter | Mapping[str, Any] | None) -> Filter:
    if filter is None or isinstance(filter, Mapping):
        return And(tuple(Eq((name,), value) for name, value in (filter or {}).items()))
    if not isinstance(filter, Filter):
        raise InvalidInput("filter", "must be a mapping of metadata to values, or a filter of Conspectus")
    return filter


def _document(text: Text) -> Document:
    return Document(text.text, id=text.id, metadata=dict(text.metadata))


ROLES = {"human": "user", "ai": "assistant"}
"""Roles of messages whose type has another name in LangChain."""
CLASSES: Mapping[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}
"""Message classes by role, for messages that were not written by LangChain."""


class ConspectusByteStore(EngineUser, ByteStore):
    """Byte values by key in a source of a collection, as LangChain's caches and docstores need.

    Values are stored durably, in one transaction for up to 500. They are not found by searches, unless they
    are texts and `searchable` is set: then keyword search in the collection finds them.
    """

    def __init__(
        self,
        engine: AnyEngineOrPath = None,
        *,
        source: str = "store",
        collection: str = "langchain",
        searchable: bool = False,
    ) -> None:
        self._access = access_to(engine)
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

    mget, amget = blocking_and_async(_get)
    mset, amset = blocking_and_async(_set)
    mdelete, amdelete = blocking_and_async(_delete)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys with a prefix, reading page by page."""
        after: str | None = ""
        while after is not None:
            keys, after = self._access.wait(self._values.page_of_keys(prefix or "", after))
            yield from keys

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Asynchronous version of yield_keys."""
        after: str | None = ""
        while after is not None:
            keys, after = await self._access.run(self._values.page_of_keys(prefix or "", after))
            for key in keys:
                yield key


class ConspectusRetriever(EngineUser, BaseRetriever):
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
    _access: EngineAccess = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Create the access to the engine."""
        super().model_post_init(context)
        self._access = access_to(self.engine)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self._access.wait(lambda engine: self._retrieve(engine, query, options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await self._access.run(lambda engine: self._retrieve(engine, query, options))

    async def _retrieve(self, engine: AnyEngine, query: str, arguments: dict[str, Any]) -> list[Document]:
        options = cast(QueryOptions, self.options)
        usual = Ask(self.collection, self.filter, self.limit, self.max_tokens, self.tokenizer, options)
        passages = await replace(usual, **arguments).passages(engine, query)
        return [Document(passage.text, id=passage.id, metadata=passage.metadata) for passage in passages]


class ConspectusChatMessageHistory(Conversation, BaseChatMessageHistory):
    """All messages of a conversation, stored as memories in the order of time.

    Messages can be found later, also from other conversations of the same user. Without an `agent`, messages
    of all agents in the conversation are read, and new ones belong to no agent.
    """

    form = "langchain"

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages. Setting them replaces them."""
        return [_message(item) for item in self._access.wait(self._turns.newest)]

    @messages.setter
    def messages(self, messages: list[BaseMessage]) -> None:
        self.clear()
        self.add_messages(messages)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return all messages."""
        return [_message(item) for item in await self._access.run(self._turns.newest)]

    async def _add(self, engine: AnyEngine, messages: Sequence[BaseMessage]) -> None:
        """Append messages. Raises InvalidInput for one that is not JSON."""
        items, roles = [_as_item(message) for message in messages], [_role(message) for message in messages]
        await self._turns.add(engine, items, roles=roles)

    add_messages, aadd_messages = blocking_and_async(_add)
    clear, aclear = blocking_and_async(Conversation._clear)


def _role(message: BaseMessage) -> str:
    kind = ROLES.get(message.type, message.type)
    return message.role if isinstance(message, ChatMessage) else kind


def _as_item(message: BaseMessage) -> Item:
    try:
        return {"type": message.type, "data": json.loads(message.model_dump_json())}
    except (PydanticSerializationError, ValueError) as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault


def _message(item: Item) -> BaseMessage:
    if "data" in item:
        return messages_from_dict([item])[0]
    role, content = item["role"], item["content"]
    if role in CLASSES:
        return CLASSES[role](content=content)
    return ChatMessage(content=content, role=role)
