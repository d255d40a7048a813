"""LangChain's vector store over texts of a collection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from conspectus.errors import InvalidInput
from conspectus.integrations.event_loop import Given, Work, calls_to, refuse
from conspectus.integrations.texts import FoundText, Selection, Text, Texts
from conspectus.model.filter import And, Eq, Filter

LIMIT = 4
Vector = Sequence[float]


class ConspectusVectorStore(VectorStore):
    """Texts with metadata in a source of a collection, found by keywords and by vectors.

    The collection's own embedding model makes the vectors, unless `embedding` is given: then that model does,
    each text has one vector, and the collection is created for vectors of that size.
    A `filter` is a mapping of metadata to values, all of which must be equal, or a filter of Conspectus.
    Searches also take the other fields of a Query, such as `floor` or `arms`.
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
        """The embedding model that was given."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """Add texts, or replace those with the same ids, and return their ids."""
        refuse(unknown)
        given = list(texts)
        vectors = None if self._embedding is None else self._embedding.embed_documents(given)
        new = _texts(given, metadatas, ids, vectors)
        self._calls.wait(lambda engine: self._texts.add(engine, new))
        return [each.id for each in new]

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **unknown: Any,
    ) -> list[str]:
        """As add_texts."""
        refuse(unknown)
        given = list(texts)
        vectors = None if self._embedding is None else await self._embedding.aembed_documents(given)
        new = _texts(given, metadatas, ids, vectors)
        await self._calls.run(lambda engine: self._texts.add(engine, new))
        return [each.id for each in new]

    def delete(self, ids: list[str] | None = None, **unknown: Any) -> bool:
        """Delete texts by their ids (None: all of the source); ids that do not exist are ignored."""
        refuse(unknown)
        self._calls.wait(lambda engine: self._texts.delete(engine, Selection(ids)))
        return True

    async def adelete(self, ids: list[str] | None = None, **unknown: Any) -> bool:
        """As delete."""
        refuse(unknown)
        await self._calls.run(lambda engine: self._texts.delete(engine, Selection(ids)))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, without those that do not exist."""
        return list(map(_document, self._calls.wait(lambda engine: self._texts.get(engine, Selection(ids)))))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """As get_by_ids."""
        found = await self._calls.run(lambda engine: self._texts.get(engine, Selection(ids)))
        return list(map(_document, found))

    def similarity_search(self, query: str, k: int = LIMIT, **fields: Any) -> list[Document]:
        """The best documents, best first."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **fields)]

    async def asimilarity_search(self, query: str, k: int = LIMIT, **fields: Any) -> list[Document]:
        """As similarity_search."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **fields)]

    def similarity_search_with_score(
        self, query: str, k: int = LIMIT, **fields: Any
    ) -> list[tuple[Document, float]]:
        """The best documents with their scores, of which a higher one is better."""
        return [(_document(each.text), each.score) for each in self._found(query, k, fields)]

    async def asimilarity_search_with_score(
        self, query: str, k: int = LIMIT, **fields: Any
    ) -> list[tuple[Document, float]]:
        """As similarity_search_with_score."""
        return [(_document(each.text), each.score) for each in await self._afound(query, k, fields)]

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = LIMIT, **fields: Any
    ) -> list[Document]:
        """The documents whose vectors are most similar to a vector."""
        found = self._calls.wait(self._search("", k, embedding, {"arms": ("vectors",), **fields}))
        return [_document(each.text) for each in found]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = LIMIT, **fields: Any
    ) -> list[Document]:
        """As similarity_search_by_vector."""
        found = await self._calls.run(self._search("", k, embedding, {"arms": ("vectors",), **fields}))
        return [_document(each.text) for each in found]

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
        """A store with these texts; `where` are the other arguments of the constructor."""
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
        """As from_texts."""
        store = cls(embedding=embedding, **where)
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store

    def close(self) -> None:
        """Release the store that was opened at a path; an engine that was given stays open."""
        self._calls.close()

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = LIMIT, **fields: Any
    ) -> list[tuple[Document, float]]:
        return list(map(_with_relevance, self._found(query, k, fields)))

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = LIMIT, **fields: Any
    ) -> list[tuple[Document, float]]:
        return list(map(_with_relevance, await self._afound(query, k, fields)))

    def _found(self, query: str, k: int, fields: dict[str, Any]) -> list[FoundText]:
        vector = None if self._embedding is None else self._embedding.embed_query(query)
        return self._calls.wait(self._search(query, k, vector, fields))

    async def _afound(self, query: str, k: int, fields: dict[str, Any]) -> list[FoundText]:
        vector = None if self._embedding is None else await self._embedding.aembed_query(query)
        return await self._calls.run(self._search(query, k, vector, fields))

    def _search(
        self, query: str, k: int, vector: Vector | None, fields: dict[str, Any]
    ) -> Work[list[FoundText]]:
        given = dict(fields)
        selection = Selection(where=_filter(given.pop("filter", None)))
        if taken := given.keys() & {"collection", "limit", "where"}:
            raise InvalidInput(
                min(taken), "is not an argument of a search; use k, filter, and the constructor"
            )
        given["vector"] = None if vector is None else tuple(vector)
        return lambda engine: self._texts.search(engine, query, k, selection, **given)


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


def _filter(given: Filter | Mapping[str, Any] | None) -> Filter:
    if given is None or isinstance(given, Mapping):
        return And(tuple(Eq((name,), value) for name, value in (given or {}).items()))
    if not isinstance(given, Filter):
        raise InvalidInput("filter", "must be a mapping of metadata to values, or a filter of Conspectus")
    return given


def _document(text: Text) -> Document:
    return Document(text.text, id=text.id, metadata=dict(text.metadata))


def _with_relevance(found: FoundText) -> tuple[Document, float]:
    """With the cosine similarity as a relevance from 0 to 1."""
    return _document(found.text), min(1.0, max(0.0, found.similarity or 0.0))
