"""A store of video contexts in a Milvus collection."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

from conspectus import bootstrap
from conspectus.errors import InvalidInput
from conspectus.facades.video.context_store import ClosableStore, Document, in_order
from conspectus.facades.video.metadata import (
    STREAM_KEY,
    has_values,
    to_json_value,
)
from conspectus.facades.video.stored_captions import vector_of
from conspectus.settings import Settings

LIMIT_FACTOR: Final = 4
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
        defaults = Settings.from_environment()
        uri = beside.get("uri") or f"http://{host}:{port}"
        token = beside.get("token", defaults.milvus_token)
        settings = replace(defaults, milvus_uri=uri, milvus_token=token)
        self._rows = bootstrap.milvus_captions(collection_name, embedding_dim, settings)

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents and return their ids in order. Raises InvalidInput."""
        values = [_check(metadata) for metadata in metadatas]
        vectors = [None if embedding is None else vector_of(embedding) for embedding in embeddings]
        return await self._rows.add(texts, values, vectors)

    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document by id, or None."""
        row = await self._rows.get(doc_id)
        return None if row is None else _document(row)

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
        stream, metadata = _split(filter_metadata)
        limit = top_k
        while True:
            rows = await self._rows.search(vector, limit, stream)
            matching = [
                (_document(row), score)
                for row, score in rows
                if row.embedding is not None and has_values(row.metadata, metadata)
            ]
            if len(matching) >= top_k or len(rows) < limit:
                return matching[:top_k]
            limit *= LIMIT_FACTOR

    async def get_all_documents(self, filter_metadata: dict[str, Any] | None = None) -> list[Document]:
        """Return all documents with these metadata, by `chunk_idx`."""
        stream, metadata = _split(filter_metadata)
        rows = await self._rows.all(stream)
        return in_order([_document(row) for row in rows if has_values(row.metadata, metadata)])

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
    metadata = to_json_value(filter_metadata or {})
    stream = metadata.get(STREAM_KEY)
    return (stream if isinstance(stream, str) else None), metadata


def _check(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON. Raises InvalidInput, also if the stream is not a string."""
    values = to_json_value(metadata)
    if not isinstance(values.get(STREAM_KEY, ""), str | None):
        raise InvalidInput(f"metadata.{STREAM_KEY}", "must be a text")
    return values


def _document(stored: Any) -> Document:
    document = Document(stored.id, stored.text, None, dict(stored.metadata))
    if stored.created is None:
        return document
    return replace(document, created_at=stored.created)
