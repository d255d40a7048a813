"""Stores of video contexts: in an engine (open or temporary), or in a Milvus collection."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypedDict, TypeVar, Unpack

from conspectus import bootstrap
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput
from conspectus.facades.video.caption_store import STREAM, CaptionStore, Item, has_values, plain, vector_of
from conspectus.facades.video.mapping import ClosableStore, Document, in_order
from conspectus.integrations.event_loop import OwnEngine, temporary_folder
from conspectus.model.query import Query, QueryContext
from conspectus.model.streams import CaptionRange, Summary, SummaryRequestOptions
from conspectus.settings import Settings

T = TypeVar("T")
COLLECTION = "video"
SIMILARITY = QueryContext(profile="multiplicative without recency, same_channel, same_thread, min_similarity")
"""Scoring by cosine similarity only: neighboring captions do not raise a score."""


class _Runner(Protocol):
    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T: ...

    async def close(self) -> None: ...


class _CallerEngine:
    """An engine that the caller opened and closes."""

    def __init__(self, engine: AnyEngine) -> None:
        self._engine = engine

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await work(self._engine)

    async def close(self) -> None:
        """Do nothing: the caller closes the engine."""


class EngineContextStore(ClosableStore):
    """A collection of an engine, local or remote, with one stream for each `stream_id`.

    The caller supplies vectors of one size. With `engine_embeds`, the engine computes them. Captions that are
    in the collection already, such as imported subtitles, are included.
    """

    def __init__(
        self,
        engine: AnyEngine,
        *,
        collection: str = COLLECTION,
        embedding_dim: int | None = None,
        engine_embeds: bool = False,
    ) -> None:
        self._runner: _Runner = _CallerEngine(engine)
        self._shelf = CaptionStore(collection, dimensions=embedding_dim, engine_embeds=engine_embeds)

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents. Those of a stream are written together, at most 500 in a transaction."""
        items = [Item(*each) for each in zip(texts, metadatas, embeddings, strict=True)]
        return await self._runner.run(lambda engine: self._shelf.add(engine, items))

    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document by id, or None."""
        return await self._runner.run(lambda engine: self._shelf.get(engine, doc_id))

    async def search(
        self,
        query_embedding: list[float],
        top_k: int = 5,
        filter_metadata: dict[str, Any] | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the documents most similar to a vector by cosine; none for a zero vector."""
        vector = tuple(map(float, query_embedding))
        if not any(vector):
            return []
        query = Query("", vector=vector, retrievers=("vector",), query_context=SIMILARITY)
        return await self._find(query, top_k, filter_metadata)

    async def ask(
        self, query: str, top_k: int = 5, filter_metadata: dict[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Return the engine's results for a query: keyword search and, if it embeds, vector search."""
        return await self._find(Query(query), top_k, filter_metadata)

    async def get_all_documents(self, filter_metadata: dict[str, Any] | None = None) -> list[Document]:
        """Return all documents with these metadata, by `chunk_idx`, then in the order of insertion."""
        return await self._runner.run(lambda engine: self._shelf.all(engine, filter_metadata))

    async def between(self, within: CaptionRange, stream_id: str | None = None) -> list[Document]:
        """Return the documents of a time range in the same order.

        Raises InvalidInput for an invalid range.
        """
        return await self._runner.run(lambda engine: self._shelf.between(engine, within, stream_id))

    async def set_embedding(self, doc_id: str, embedding: list[float]) -> bool:
        """Set the vector of a document; False if the document does not exist or the vector is zero."""
        return await self._runner.run(lambda engine: self._shelf.embed(engine, doc_id, embedding))

    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        return await self._runner.run(lambda engine: self._shelf.delete(engine, doc_id))

    async def clear(self) -> int:
        """Delete all documents and then empty streams; return the number of documents."""
        return await self._runner.run(lambda engine: self._shelf.clear(engine))

    async def clear_stream(self, stream_id: str) -> int:
        """Delete a stream with its documents and return their number."""
        return await self._runner.run(lambda engine: self._shelf.clear(engine, stream_id))

    async def summarise(self, stream: str, **options: Unpack[SummaryRequestOptions]) -> Summary:
        """Summarize a range of a stream with the engine."""
        given: SummaryRequestOptions = {**options, "collection": self._shelf.collection}
        return await self._runner.run(lambda engine: engine.summaries.summarize(stream, **given))

    async def close(self) -> None:
        """Close the engine, if this store opened it."""
        await self._runner.close()

    async def _find(
        self, query: Query, top_k: int, chosen: dict[str, Any] | None
    ) -> list[tuple[Document, float]]:
        return await self._runner.run(lambda engine: self._shelf.search(engine, query, top_k, chosen))


class InMemoryContextStore(EngineContextStore):
    """A temporary store: an engine in a temporary folder, deleted when closed or when the program ends."""

    def __init__(self) -> None:
        folder = temporary_folder()
        settings = replace(Settings.from_environment(), embedder="none", index="segments", reranker="none")
        opening = partial(bootstrap.open, folder, settings=settings)
        self._runner = OwnEngine(opening, folder=folder)
        self._shelf = CaptionStore(COLLECTION)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._count

    def __bool__(self) -> bool:
        """Return True, also if the store is empty."""
        return True

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents and return their ids in order."""
        added = await super().add_documents(texts, metadatas, embeddings)
        self._count += len(added)
        return added

    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        deleted = await super().delete_document(doc_id)
        self._count -= deleted
        return deleted

    async def clear(self) -> int:
        """Delete all documents and return their number."""
        count = await super().clear()
        self._count -= count
        return count

    async def clear_stream(self, stream_id: str) -> int:
        """Delete a stream with its documents and return their number."""
        count = await super().clear_stream(stream_id)
        self._count -= count
        return count


WIDENING: Final = 4
"""Factor by which the limit grows while a filter leaves too few results."""


class MilvusOptions(TypedDict, total=False):
    """Options of a store in Milvus. With a `uri` (such as of Zilliz), host and port are ignored."""

    uri: str
    token: str


class MilvusContextStore(ClosableStore):
    """Captions in one collection of a Milvus server.

    Programs that name the same server and collection share it. An existing collection with the columns id,
    text, embedding, stream_id, chunk_idx, start_time and end_time is used as it is. A collection created here
    has a dynamic field for other metadata. The first use connects.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 19530,
        collection_name: str = "vss_poc_context",
        embedding_dim: int = 768,
        **beside: Unpack[MilvusOptions],
    ) -> None:
        chosen = Settings.from_environment()
        uri = beside.get("uri") or f"http://{host}:{port}"
        token = beside.get("token", chosen.milvus_token)
        settings = replace(chosen, milvus_uri=uri, milvus_token=token)
        self._rows = bootstrap.milvus_captions(collection_name, embedding_dim, settings)

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents and return their ids in order. Raises InvalidInput."""
        values = [_checked(each) for each in metadatas]
        vectors = [None if each is None else vector_of(each) for each in embeddings]
        return await self._rows.add(texts, values, vectors)

    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document by id, or None."""
        found = await self._rows.get(doc_id)
        return None if found is None else _document(found)

    async def search(
        self,
        query_embedding: list[float],
        top_k: int = 5,
        filter_metadata: dict[str, Any] | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the documents most similar to a vector by cosine; none for a zero vector."""
        vector = vector_of(query_embedding)
        if vector is None or top_k <= 0:
            return []
        stream, wanted = _split(filter_metadata)
        limit = top_k
        while True:
            found = await self._rows.search(vector, limit, stream)
            kept = [
                (_document(each), score)
                for each, score in found
                if each.embedding is not None and has_values(each.metadata, wanted)
            ]
            if len(kept) >= top_k or len(found) < limit:
                return kept[:top_k]
            limit *= WIDENING

    async def get_all_documents(self, filter_metadata: dict[str, Any] | None = None) -> list[Document]:
        """Return all documents with these metadata, by `chunk_idx`."""
        stream, wanted = _split(filter_metadata)
        found = await self._rows.all(stream)
        return in_order([_document(each) for each in found if has_values(each.metadata, wanted)])

    async def set_embedding(self, doc_id: str, embedding: list[float]) -> bool:
        """Set the vector of a document; False if the document does not exist or the vector is zero."""
        vector = vector_of(embedding)
        return vector is not None and await self._rows.embed(doc_id, vector)

    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        return await self._rows.delete(doc_id)

    async def clear(self) -> int:
        """Delete all documents and return their number."""
        return await self._rows.clear()

    async def clear_stream(self, stream_id: str) -> int:
        """Delete the documents of a stream and return their number."""
        return await self._rows.clear(stream_id)

    async def close(self) -> None:
        """Close the connection; later use connects again."""
        await self._rows.close()


def _split(filter_metadata: Mapping[str, Any] | None) -> tuple[str | None, Mapping[str, Any]]:
    """Return the stream that Milvus filters by, and all values, which are compared afterwards."""
    wanted = plain(filter_metadata or {})
    stream = wanted.get(STREAM)
    return (stream if isinstance(stream, str) else None), wanted


def _checked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON. Raises InvalidInput, also if the stream is not a string."""
    values = plain(metadata)
    if not isinstance(values.get(STREAM, ""), str | None):
        raise InvalidInput(f"metadata.{STREAM}", "must be a text")
    return values


def _document(stored: Any) -> Document:
    made = Document(stored.id, stored.text, None, dict(stored.metadata))
    return made if stored.created is None else replace(made, created_at=stored.created)
