"""The Milvus store of the document that describes a video context manager, with its imports changed.

It works under our manager, and ours under its manager.
"""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pymilvus import Collection, CollectionSchema, DataType, FieldSchema, connections, utility
from tests.examples.test_video_document import CAPTIONS, TheirManager, metadata_of
from tests.support.milvus_server import MilvusProcess
from tests.video_contexts import SubjectEmbeddings

from conspectus.facades.video import ContextManager, ContextStore, Document, MilvusContextStore

pytestmark = pytest.mark.filterwarnings("ignore:.*ORM-style PyMilvus API")


class TheirMilvusStore(ContextStore):
    """The Milvus store of the document."""

    def __init__(
        self,
        host: str = "localhost",
        port: int = 19530,
        collection_name: str = "vss_poc_context",
        embedding_dim: int = 768,
    ) -> None:
        self._collection_name = collection_name
        self._embedding_dim = embedding_dim
        connections.connect(host=host, port=port)
        self._ensure_collection()

    def _ensure_collection(self) -> None:
        if utility.has_collection(self._collection_name):
            self._collection = Collection(self._collection_name)
            return
        fields = [
            FieldSchema(name="id", dtype=DataType.VARCHAR, max_length=64, is_primary=True),
            FieldSchema(name="text", dtype=DataType.VARCHAR, max_length=65535),
            FieldSchema(name="embedding", dtype=DataType.FLOAT_VECTOR, dim=self._embedding_dim),
            FieldSchema(name="stream_id", dtype=DataType.VARCHAR, max_length=64),
            FieldSchema(name="chunk_idx", dtype=DataType.INT64),
            FieldSchema(name="start_time", dtype=DataType.VARCHAR, max_length=64),
            FieldSchema(name="end_time", dtype=DataType.VARCHAR, max_length=64),
        ]
        self._collection = Collection(name=self._collection_name, schema=CollectionSchema(fields=fields))
        self._collection.create_index(
            field_name="embedding",
            index_params={"metric_type": "COSINE", "index_type": "IVF_FLAT", "params": {"nlist": 128}},
        )

    async def add_document(self, text: str, metadata: dict, embedding: list[float] | None = None) -> str:
        doc_id = str(uuid.uuid4())
        self._collection.insert(
            [
                [doc_id],
                [text],
                [embedding or [0.0] * self._embedding_dim],
                [metadata.get("stream_id", "")],
                [metadata.get("chunk_idx", 0)],
                [metadata.get("start_time", "")],
                [metadata.get("end_time", "")],
            ]
        )
        self._collection.flush()
        return doc_id

    async def search(
        self, query_embedding: list[float], top_k: int = 5, filter_metadata: dict | None = None
    ) -> list[tuple[Document, float]]:
        self._collection.load()
        expr = None
        if filter_metadata and "stream_id" in filter_metadata:
            expr = f'stream_id == "{filter_metadata["stream_id"]}"'
        results = self._collection.search(
            data=[query_embedding],
            anns_field="embedding",
            param={"metric_type": "COSINE", "params": {"nprobe": 10}},
            limit=top_k,
            expr=expr,
            output_fields=["text", "stream_id", "chunk_idx", "start_time", "end_time"],
        )
        names = ("stream_id", "chunk_idx", "start_time", "end_time")
        return [
            (
                Document(
                    id=hit.id,
                    text=hit.entity.get("text"),
                    metadata={name: hit.entity.get(name) for name in names},
                ),
                hit.score,
            )
            for hit in results[0]
        ]

    async def get_all_documents(self, filter_metadata: dict | None = None) -> list[Document]:
        self._collection.load()
        expr = None
        if filter_metadata and "stream_id" in filter_metadata:
            expr = f'stream_id == "{filter_metadata["stream_id"]}"'
        results = self._collection.query(
            expr=expr or "id != ''",
            output_fields=["id", "text", "stream_id", "chunk_idx", "start_time", "end_time"],
        )
        names = ("stream_id", "chunk_idx", "start_time", "end_time")
        documents = [
            Document(id=row["id"], text=row["text"], metadata={name: row[name] for name in names})
            for row in results
        ]
        documents.sort(key=lambda d: d.metadata.get("chunk_idx", 0))
        return documents

    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document: the document leaves this method of its interface out."""
        return next((doc for doc in await self.get_all_documents() if doc.id == doc_id), None)

    async def delete_document(self, doc_id: str) -> bool:
        self._collection.delete(f'id == "{doc_id}"')
        return True

    async def clear(self) -> int:
        count = self._collection.num_entities
        self._collection.delete("id != ''")
        return count


PAIRS = [(ContextManager, TheirMilvusStore), (TheirManager, MilvusContextStore)]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0].__name__} over {pair[1].__name__}")
async def manager(request: pytest.FixtureRequest, milvus: MilvusProcess) -> AsyncIterator[Any]:
    embeddings = SubjectEmbeddings()
    kind, store_kind = request.param
    dimensions = len(await embeddings.embed_query("car"))
    store = store_kind("127.0.0.1", milvus.port, f"films_{uuid.uuid4().hex}", dimensions)
    yield kind(embeddings=embeddings, store=store)
    await store.close()


async def test_captions_are_added_found_and_deleted(manager: Any) -> None:
    ids = await manager.add_documents_batch(CAPTIONS, [metadata_of(n, "gate") for n in range(3)])
    await manager.add_document("A car leaves.", metadata_of(0, "yard"))
    results = await manager.retrieve("which car", top_k=2, filter_metadata={"stream_id": "gate"})
    assert {result["text"] for result in results} == set(CAPTIONS[:2])
    assert (await manager._store.get_document(ids[0])).text == CAPTIONS[0]
    assert await manager.get_all_captions("gate") == CAPTIONS
    assert await manager.clear_context("gate") == 3
    assert await manager.get_all_captions() == ["A car leaves."]


async def test_a_store_is_found_again_by_its_name(manager: Any) -> None:
    await manager.add_document(CAPTIONS[0], metadata_of(0, "gate"))
    window = await manager.get_context_window("car", include_all=True)
    assert [doc.text for doc in window.documents] == CAPTIONS[:1]
