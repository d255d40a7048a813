"""The code of the document that describes a video context manager, with its imports changed.

Its store works under our manager, and our store under its manager.
"""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.video_contexts import SubjectEmbeddings

from conspectus.facades.video import (
    ContextManager,
    ContextStore,
    ContextWindow,
    Document,
    InMemoryContextStore,
)
from conspectus.settings import Settings


class TheirStore(ContextStore):
    """The in-memory store of the document."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}

    async def add_document(self, text: str, metadata: dict, embedding: list[float] | None = None) -> str:
        doc_id = str(uuid.uuid4())
        self._documents[doc_id] = Document(id=doc_id, text=text, embedding=embedding, metadata=metadata)
        return doc_id

    async def get_document(self, doc_id: str) -> Document | None:
        return self._documents.get(doc_id)

    async def search(
        self, query_embedding: list[float], top_k: int = 5, filter_metadata: dict | None = None
    ) -> list[tuple[Document, float]]:
        results = []
        query_np = np.array(query_embedding)
        for doc in await self.get_all_documents(filter_metadata):
            if doc.embedding is None:
                continue
            doc_np = np.array(doc.embedding)
            similarity = float(np.dot(query_np, doc_np) / (np.linalg.norm(query_np) * np.linalg.norm(doc_np)))
            results.append((doc, similarity))
        results.sort(key=lambda x: x[1], reverse=True)
        return results[:top_k]

    async def get_all_documents(self, filter_metadata: dict | None = None) -> list[Document]:
        docs = list(self._documents.values())
        if filter_metadata:
            docs = [doc for doc in docs if all(doc.metadata.get(k) == v for k, v in filter_metadata.items())]
        docs.sort(key=lambda d: d.metadata.get("chunk_idx", 0))
        return docs

    async def delete_document(self, doc_id: str) -> bool:
        return self._documents.pop(doc_id, None) is not None

    async def clear(self) -> int:
        count = len(self._documents)
        self._documents.clear()
        return count


class TheirManager:
    """The manager of the document, over any store."""

    def __init__(
        self, embeddings: Any, store: ContextStore | None = None, max_context_tokens: int = 100000
    ) -> None:
        self._embeddings = embeddings
        self._store = TheirStore() if store is None else store
        self._max_context_tokens = max_context_tokens

    async def add_document(self, text: str, metadata: dict, generate_embedding: bool = True) -> str:
        embedding = await self._embeddings.embed_document(text) if generate_embedding else None
        return await self._store.add_document(text=text, metadata=metadata, embedding=embedding)

    async def add_documents_batch(
        self, texts: list[str], metadatas: list[dict], generate_embeddings: bool = True
    ) -> list[str]:
        embeddings = await self._embeddings.embed_documents(texts) if generate_embeddings else None
        doc_ids = []
        for i, (text, metadata) in enumerate(zip(texts, metadatas, strict=True)):
            embedding = embeddings[i] if embeddings else None
            doc_ids.append(await self._store.add_document(text=text, metadata=metadata, embedding=embedding))
        return doc_ids

    async def retrieve(
        self, query: str, top_k: int = 5, filter_metadata: dict | None = None
    ) -> list[dict[str, Any]]:
        query_embedding = await self._embeddings.embed_query(query)
        results = await self._store.search(
            query_embedding=query_embedding, top_k=top_k, filter_metadata=filter_metadata
        )
        return [
            {"id": doc.id, "text": doc.text, "metadata": doc.metadata, "score": score}
            for doc, score in results
        ]

    async def get_context_window(
        self, query: str, max_tokens: int | None = None, include_all: bool = False
    ) -> ContextWindow:
        max_tokens = max_tokens or self._max_context_tokens
        if include_all:
            docs = await self._store.get_all_documents()
        else:
            results = await self.retrieve(query, top_k=100)
            docs = [Document(id=r["id"], text=r["text"], metadata=r["metadata"]) for r in results]
        selected_docs, total_tokens, truncated = [], 0, False
        for doc in docs:
            doc_tokens = len(doc.text) // 4
            if total_tokens + doc_tokens > max_tokens:
                truncated = True
                break
            selected_docs.append(doc)
            total_tokens += doc_tokens
        return ContextWindow(documents=selected_docs, total_tokens=total_tokens, truncated=truncated)

    async def get_all_captions(self, stream_id: str | None = None) -> list[str]:
        filter_metadata = {"stream_id": stream_id} if stream_id else None
        return [doc.text for doc in await self._store.get_all_documents(filter_metadata)]

    async def clear_context(self, stream_id: str | None = None) -> int:
        if not stream_id:
            return await self._store.clear()
        docs = await self._store.get_all_documents({"stream_id": stream_id})
        return sum([await self._store.delete_document(doc.id) for doc in docs])


PAIRS = [
    (ContextManager, TheirStore),
    (TheirManager, InMemoryContextStore),
    (ContextManager, InMemoryContextStore),
    (TheirManager, TheirStore),
]
CAPTIONS = ["A car arrives.", "A dog barks at the car.", "Rain falls."]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0].__name__} over {pair[1].__name__}")
async def manager(request: pytest.FixtureRequest) -> Any:
    kind, store_kind = request.param
    store = store_kind()
    yield kind(embeddings=SubjectEmbeddings(), store=store, max_context_tokens=100000)
    await store.close()


def metadata_of(chunk: int, stream: str) -> dict[str, Any]:
    return {
        "stream_id": stream,
        "chunk_idx": chunk,
        "start_time": f"00:0{chunk}",
        "end_time": f"00:0{chunk + 1}",
    }


class TestContextManager:
    async def test_add_document(self, manager: Any) -> None:
        doc_id = await manager.add_document(CAPTIONS[0], metadata_of(0, "gate"))
        assert len(doc_id) == 36
        stored = await manager._store.get_document(doc_id)
        assert (stored.text, stored.metadata["chunk_idx"]) == (CAPTIONS[0], 0)

    async def test_retrieve(self, manager: Any) -> None:
        await manager.add_documents_batch(CAPTIONS, [metadata_of(n, "gate") for n in range(3)])
        await manager.add_document("A car leaves.", metadata_of(0, "yard"))
        results = await manager.retrieve("which car", top_k=2, filter_metadata={"stream_id": "gate"})
        assert {result["text"] for result in results} == set(CAPTIONS[:2])
        assert results[0]["score"] >= results[1]["score"]
        assert results[0]["metadata"]["stream_id"] == "gate"

    async def test_context_window(self, manager: Any) -> None:
        await manager.add_documents_batch(CAPTIONS, [metadata_of(n, "gate") for n in range(3)])
        window = await manager.get_context_window("car", include_all=True)
        assert [doc.text for doc in window.documents] == CAPTIONS
        assert (window.total_tokens, window.truncated) == (sum(len(text) // 4 for text in CAPTIONS), False)
        small = await manager.get_context_window("car", max_tokens=4)
        assert (len(small.documents), small.truncated) == (1, True)

    async def test_clear_context(self, manager: Any) -> None:
        for stream in ("gate", "yard"):
            await manager.add_document(f"A car at the {stream}.", metadata_of(0, stream))
        assert await manager.clear_context("gate") == 1
        assert await manager.get_all_captions() == ["A car at the yard."]
        assert await manager.get_all_captions(stream_id="gate") == []
        assert await manager.clear_context() == 1


async def test_captions_of_a_time_range() -> None:
    async with ContextManager(embeddings=SubjectEmbeddings(), store=TheirStore()) as manager:
        await manager.add_documents_batch(CAPTIONS, [metadata_of(n, "gate") for n in range(3)])
        assert await manager.get_captions_by_time_range("00:00", "00:02") == CAPTIONS[:2]
        assert manager._estimate_tokens("a" * 14) == 3


def test_the_configuration_has_its_values() -> None:
    settings = replace(Settings(), index="milvus", milvus_uri="http://localhost:19530")
    assert settings.max_context_tokens == 100000
