"""Stores of video contexts: in an engine (open or temporary), or in a Milvus collection."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from time import time_ns
from typing import Any, Final, Unpack
from uuid import uuid4

from conspectus.bridge.engine_access import access_to
from conspectus.bridge.engine_user import on_engine
from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.bridge.temporary_engine import temporary_engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.facades.video.caption_times import sequence_of, times_of
from conspectus.facades.video.context_store import ClosableStore, Document, in_order
from conspectus.facades.video.metadata import (
    STREAM_KEY,
    metadata_filter,
    stream_name,
    to_stored,
)
from conspectus.facades.video.stored_captions import StoredCaptions, vector_of
from conspectus.integrations.best_hits import best_of_each
from conspectus.model import records
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.filter import And, Eq, in_documents
from conspectus.model.pages import pages
from conspectus.model.query import Query, QueryContext
from conspectus.model.records import Collection
from conspectus.model.results import Retrieval
from conspectus.model.stream_summaries import Summary, SummaryRequestOptions
from conspectus.settings import Settings

DEFAULT_COLLECTION = "video"
CAPTIONS_PER_PAGE: Final = 1_000
SIMILARITY_ONLY = QueryContext(
    profile="multiplicative without recency, same_channel, same_thread, min_similarity"
)
"""Scoring by cosine similarity only: neighboring captions do not raise a score."""


class EngineContextStore(ClosableStore):
    """A collection of an engine, local or remote, with one stream for each `stream_id`.

    It is created by the first write. The caller supplies vectors of one size (default: that of the first
    one). With `engine_embeds`, the engine computes them. Captions that are in the collection already, such as
    imported subtitles, are included.
    """

    def __init__(
        self,
        engine: AnyEngine | OwnedEngine[Any],
        *,
        collection: str = DEFAULT_COLLECTION,
        embedding_dim: int | None = None,
        engine_embeds: bool = False,
    ) -> None:
        self._access = access_to(engine)
        self._collection = collection
        self._dimensions = embedding_dim
        self._engine_embeds = engine_embeds
        self._numbers = count()
        self._count = 0

    @on_engine
    async def add_documents(
        self,
        engine: AnyEngine,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents. Those of a stream are written together, at most 500 in a transaction."""
        captions = [self._caption(*arguments) for arguments in zip(texts, metadatas, embeddings, strict=True)]
        streams: dict[str, list[int]] = {}
        for position, metadata in enumerate(metadatas):
            streams.setdefault(stream_name(metadata.get(STREAM_KEY)), []).append(position)
        sizes = [len(caption.vector) for caption in captions if caption.vector is not None]
        collection = await self._ensure_collection(engine, sizes[0] if sizes else None)
        ids = [""] * len(captions)
        for stream, places in streams.items():
            stream_captions = [captions[position] for position in places]
            written = await engine.streams.add_captions(
                stream_captions, stream=stream, collection=collection.id
            )
            for position, document in zip(places, written, strict=True):
                ids[position] = document.id
        self._count += len(ids)
        return ids

    @on_engine
    async def get_document(self, engine: AnyEngine, doc_id: str) -> Document | None:
        """Return a document by id, or None."""
        captions = await self._open(engine)
        stored = await _find_stored(engine, captions, doc_id)
        if captions is None or stored is None:
            return None
        texts = await engine.documents.get_texts([stored.id])
        if stored.id in texts:
            return captions.document(stored, texts[stored.id])
        return None

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
        query = Query("", vector=vector, retrievers=("vector",), query_context=SIMILARITY_ONLY)
        return await self._find(query, top_k, filter_metadata)

    async def ask(
        self, query: str, top_k: int = 5, filter_metadata: dict[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """Return the engine's results for a query: keyword search and, if it embeds, vector search."""
        return await self._find(Query(query), top_k, filter_metadata)

    @on_engine
    async def get_all_documents(
        self, engine: AnyEngine, filter_metadata: dict[str, Any] | None = None
    ) -> list[Document]:
        """Return all documents with these metadata, by `chunk_idx`, then in the order of insertion."""
        captions = await self._open(engine)
        if captions is None:
            return []
        keyed_documents: list[tuple[str, Document]] = []
        where = metadata_filter(filter_metadata, captions.names)
        read = pages(
            engine.documents.list, collection=captions.collection.id, filter=where, limit=CAPTIONS_PER_PAGE
        )
        async for page in read:
            texts = await engine.documents.get_texts([document.id for document in page.documents])
            pairs = [(document, texts[document.id]) for document in page.documents if document.id in texts]
            keyed_documents += [(document.key, captions.document(document, text)) for document, text in pairs]
        return _by_key(keyed_documents)

    @on_engine
    async def between(
        self, engine: AnyEngine, within: CaptionRange, stream_id: str | None = None
    ) -> list[Document]:
        """Return the documents of a time range in the same order.

        Raises InvalidInput for an invalid range.
        """
        captions = await self._open(engine)
        if captions is None:
            return []
        keyed_documents: list[tuple[str, Document]] = []
        for stream in captions.stream_ids(stream_id):
            address = {"stream": stream, "collection": captions.collection.id}
            async for page in pages(
                engine.streams.list_captions, **address, range=within, limit=CAPTIONS_PER_PAGE
            ):
                keyed_documents += [
                    (caption.document.key, captions.document(caption.document, caption.text))
                    for caption in page.captions
                ]
        return _by_key(keyed_documents)

    @on_engine
    async def set_embedding(self, engine: AnyEngine, doc_id: str, embedding: list[float]) -> bool:
        """Set the vector of a document; False if the document does not exist or the vector is zero."""
        vector = vector_of(embedding)
        if vector is None or await _find_stored(engine, await self._open(engine), doc_id) is None:
            return False
        await self._ensure_collection(engine, len(vector))
        await engine.documents.update(doc_id, vector=vector)
        return True

    @on_engine
    async def delete_document(self, engine: AnyEngine, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        if (captions := await self._open(engine)) is None:
            return False
        condition = And((in_documents([doc_id]), Eq("kind", "caption")))
        receipt = await engine.documents.delete_by_filter(condition, collection=captions.collection.id)
        deleted = receipt.documents > 0
        self._count -= deleted
        return deleted

    async def clear(self) -> int:
        """Delete all documents and then empty streams; return the number of documents."""
        return await self._clear(None)

    async def clear_stream(self, stream_id: str) -> int:
        """Delete a stream with its documents and return their number."""
        return await self._clear(stream_id)

    @on_engine
    async def summarise(
        self, engine: AnyEngine, stream: str, **options: Unpack[SummaryRequestOptions]
    ) -> Summary:
        """Summarize a range of a stream with the engine."""
        all_options: SummaryRequestOptions = {**options, "collection": self._collection}
        return await engine.summaries.summarize(stream, **all_options)

    async def close(self) -> None:
        """Close the engine, if this store opened it."""
        await asyncio.to_thread(self._access.close)

    @on_engine
    async def _find(
        self, engine: AnyEngine, query: Query, top_k: int, metadata: Mapping[str, Any] | None
    ) -> list[tuple[Document, float]]:
        """Return the best documents for a query or a vector; none if there is nothing to compare."""
        captions = await self._open(engine)
        alone = query.retrievers == ("vector",)
        if captions is None or top_k <= 0 or (alone and captions.collection.space is None):
            return []
        engine_query = replace(
            query, collection=captions.collection.id, filter=metadata_filter(metadata, captions.names)
        )

        async def ask(limit: int) -> Retrieval:
            return await engine.search.retrieve(replace(engine_query, limit=limit))

        best = await best_of_each(ask, top_k)
        texts = await engine.documents.get_texts([hit.document.id for hit in best])
        return [
            (captions.document(hit.document, texts[hit.document.id]), hit.score)
            for hit in best
            if hit.document.id in texts
        ]

    @on_engine
    async def _clear(self, engine: AnyEngine, stream_id: str | None) -> int:
        captions = await self._open(engine)
        if captions is None:
            return 0
        collection = captions.collection.id
        condition = metadata_filter(None if stream_id is None else {STREAM_KEY: stream_id}, captions.names)
        receipt = await engine.documents.delete_by_filter(condition, collection=collection)
        for stream in captions.stream_ids(stream_id):
            if not await engine.documents.count(collection=collection, filter=Eq("source", stream)):
                with suppress(NotFound):
                    await engine.collections.delete_source(stream, collection=collection)
        self._count -= receipt.documents
        return receipt.documents

    def _caption(
        self, text: str, metadata: Mapping[str, Any], embedding: Sequence[float] | None
    ) -> NewCaption:
        start, end = times_of(metadata) or (None, None)
        return NewCaption(
            text=text,
            start=start,
            end=end,
            index=sequence_of(metadata),
            key=f"{time_ns():019}-{next(self._numbers):09}-{uuid4().hex[:8]}",
            metadata=to_stored(metadata),
            vector=None if embedding is None else vector_of(embedding),
        )

    async def _open(self, engine: AnyEngine) -> StoredCaptions | None:
        with suppress(NotFound):
            collection = await engine.collections.get(self._collection)
            sources = await engine.collections.list_sources(collection=collection.id)
            return StoredCaptions(
                collection, {source.id: source for source in sources if source.kind == "stream"}
            )
        return None

    async def _ensure_collection(self, engine: AnyEngine, size: int | None) -> Collection:
        """Return the collection for vectors of that size. Raises InvalidInput if it has another size."""
        if self._engine_embeds:
            return await engine.collections.get_or_create(self._collection)
        if size is not None and self._dimensions not in {None, size}:
            raise InvalidInput("embedding", f"has {size} numbers, not {self._dimensions}")
        size = size or self._dimensions
        if size is None:
            return await engine.collections.get_or_create(self._collection, words_only=True)
        collection = await self._require_size(engine, f"vectors:{size}")
        if collection.space is None:
            await engine.maintenance.reembed(f"vectors:{size}", collection=collection.id)
        elif collection.space.dimensions != size:
            has = f"has {size} numbers, those of {self._collection} have {collection.space.dimensions}"
            raise InvalidInput("embedding", has)
        return collection

    async def _require_size(self, engine: AnyEngine, embedder: str) -> Collection:
        with suppress(NotFound):
            return await engine.collections.get(self._collection)
        with suppress(Conflict):
            return await engine.collections.create(self._collection, embedder=embedder)
        return await engine.collections.get(self._collection)


async def _find_stored(
    engine: AnyEngine, captions: StoredCaptions | None, doc_id: str
) -> records.Document | None:
    if captions is not None and doc_id:
        with suppress(NotFound):
            document = await engine.documents.get(doc_id)
            if document.collection == captions.collection.id and document.kind == "caption":
                return document
    return None


def _by_key(keyed_documents: Sequence[tuple[str, Document]]) -> list[Document]:
    return in_order([document for _, document in sorted(keyed_documents, key=lambda keyed: keyed[0])])


class InMemoryContextStore(EngineContextStore):
    """A temporary store: an engine in a temporary folder, deleted when closed or when the program ends."""

    def __init__(self) -> None:
        settings = replace(Settings.from_environment(), embedder="none", index="segments", reranker="none")
        super().__init__(temporary_engine(settings))

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._count

    def __bool__(self) -> bool:
        """Return True, also if the store is empty."""
        return True
