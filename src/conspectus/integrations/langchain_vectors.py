"""Conspectus as a vector store for LangChain; users import `conspectus.integrations.langchain`."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, TypedDict, Unpack, cast
from uuid import uuid4

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.event_loop import Closing, Given, both, calls_to, refuse
from conspectus.integrations.texts import FoundText, Selection, Text, Texts
from conspectus.model.filter import And, Eq, Filter
from conspectus.model.graph import GraphExpansion
from conspectus.model.query import QueryContext, QueryOptions, Retriever

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
except ImportError as missing:
    raise MissingExtra("langchain", "langchain-core") from missing

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


class ConspectusVectorStore(Closing, VectorStore):
    """Texts with metadata in a source of a collection, found by keyword and vector search.

    The collection's embedding model makes the vectors. With `embedding`, that model does: each text has one
    vector, and the collection is created for vectors of that size. A `filter` is a mapping of metadata to
    values that must all be equal, or a filter of Conspectus. Searches also take other fields of a Query, such
    as `min_similarity` or `retrievers`.
    """

    def __init__(
        self,
        engine: Given = None,
        *,
        embedding: Embeddings | None = None,
        source: str = "texts",
        collection: str = "langchain-vectors",
    ) -> None:
        self._calls = calls_to(engine)
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
        refuse(unknown)
        given = list(texts)
        vectors = None
        if self._embedding is not None:
            vectors = await asyncio.to_thread(self._embedding.embed_documents, given)
        new = _texts(given, metadatas, ids, vectors)
        await self._texts.add(engine, new)
        return [each.id for each in new]

    async def _delete(self, engine: AnyEngine, /, ids: list[str] | None = None, **unknown: Any) -> bool:
        """Delete texts by id (None: all of the source). Unknown ids are ignored."""
        refuse(unknown)
        await self._texts.delete(engine, Selection(ids))
        return True

    async def _get(self, engine: AnyEngine, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids. Unknown ids are ignored."""
        return list(map(_document, await self._texts.get(engine, Selection(ids))))

    async def _similar(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Any
    ) -> list[Document]:
        """Return the best documents, best first."""
        return [_document(each.text) for each in await self._search(engine, query, k, **options)]

    async def _scored(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Unpack[SearchOptions]
    ) -> list[tuple[Document, float]]:
        """Return the best documents with their scores; higher is better."""
        found = await self._search(engine, query, k, **options)
        return [(_document(each.text), each.score) for each in found]

    async def _relevant(
        self, engine: AnyEngine, /, query: str, k: int = LIMIT, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the best documents with their cosine similarities as relevance from 0 to 1."""
        found = await self._search(engine, query, k, **options)
        return [(_document(each.text), min(1.0, max(0.0, each.similarity or 0.0))) for each in found]

    async def _near(
        self, engine: AnyEngine, /, embedding: list[float], k: int = LIMIT, **options: Any
    ) -> list[Document]:
        """Return the documents with the most similar vectors."""
        found = await self._found(engine, "", k, embedding, **{"retrievers": ("vector",), **options})
        return [_document(each.text) for each in found]

    add_texts, aadd_texts = both(_add)
    delete, adelete = both(_delete)
    get_by_ids, aget_by_ids = both(_get)
    similarity_search, asimilarity_search = both(_similar)
    similarity_search_with_score, asimilarity_search_with_score = both(_scored)
    similarity_search_by_vector, asimilarity_search_by_vector = both(_near)
    _similarity_search_with_relevance_scores, _asimilarity_search_with_relevance_scores = both(_relevant)

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
    ) -> list[FoundText]:
        vector = None
        if self._embedding is not None:
            vector = await asyncio.to_thread(self._embedding.embed_query, query)
        return await self._found(engine, query, k, vector, **options)

    async def _found(
        self,
        engine: AnyEngine,
        query: str,
        k: int,
        vector: Vector | None,
        **options: Unpack[SearchOptions],
    ) -> list[FoundText]:
        if taken := options.keys() & {"collection", "limit"}:
            raise InvalidInput(
                min(taken), "is not an argument of a search; use k, filter, and the constructor"
            )
        selection = Selection(filter=_filter(options.pop("filter", None)))
        given = cast(QueryOptions, {**options, "vector": None if vector is None else tuple(vector)})
        return await self._texts.search(engine, query, k, selection, given)


def _texts(
    texts: Sequence[str],
    metadatas: Sequence[dict[str, Any]] | None,
    ids: Sequence[str | None] | None,
    vectors: Sequence[Vector] | None,
) -> list[Text]:
    given = {"metadatas": metadatas, "ids": ids, "embedding": vectors}
    for name, each in given.items():
        if each is not None and len(each) != len(texts):
            raise InvalidInput(name, f"has {len(each)} entries for {len(texts)} texts")
    return [
        Text(
            (ids[place] if ids else None) or str(uuid4()),
            text,
            metadatas[place] if metadatas else {},
            tuple(vectors[place]) if vectors else None,
        )
        for place, text in enumerate(texts)
    ]


def _filter(filter: Filter | Mapping[str, Any] | None) -> Filter:
    if filter is None or isinstance(filter, Mapping):
        return And(tuple(Eq((name,), value) for name, value in (filter or {}).items()))
    if not isinstance(filter, Filter):
        raise InvalidInput("filter", "must be a mapping of metadata to values, or a filter of Conspectus")
    return filter


def _document(text: Text) -> Document:
    return Document(text.text, id=text.id, metadata=dict(text.metadata))
