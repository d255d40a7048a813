"""A store of video contexts that is a collection of a Milvus server, shared by all programs that name it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

from conspectus import bootstrap
from conspectus.errors import InvalidInput
from conspectus.facades.video.caption_store import vector_of
from conspectus.facades.video.filters import STREAM, has_values, plain
from conspectus.facades.video.mapping import ClosableStore, Document, in_order
from conspectus.settings import Settings

WIDER: Final = 4
"""So many times more are asked for where a filter left too few."""


class Beside(TypedDict, total=False):
    """What else a store in Milvus can be told. With a `uri` (of Zilliz, say) host and port do not matter."""

    uri: str
    token: str


class MilvusContextStore(ClosableStore):
    """The captions of one collection of a Milvus server, and nothing beside it.

    Programs share what they store by naming the same server and collection. A collection that other programs
    made with the columns id, text, embedding, stream_id, chunk_idx, start_time and end_time is used as it is;
    one that is made here has a dynamic field for further metadata. Nothing is connected to before the first
    use.
    """

    def __init__(
        self,
        host: str = "localhost",
        port: int = 19530,
        collection_name: str = "vss_poc_context",
        embedding_dim: int = 768,
        **beside: Unpack[Beside],
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
        """Store many documents; their ids in the order given. Raises InvalidInput."""
        told = [_checked(each) for each in metadatas]
        vectors = [None if each is None else vector_of(each) for each in embeddings]
        return await self._rows.add(texts, told, vectors)

    async def get_document(self, doc_id: str) -> Document | None:
        """The document of that id, None where there is none."""
        found = await self._rows.get(doc_id)
        return None if found is None else _document(found)

    async def search(
        self,
        query_embedding: list[float],
        top_k: int = 5,
        filter_metadata: dict[str, Any] | None = None,
    ) -> list[tuple[Document, float]]:
        """The documents most similar to a vector by cosine; none to one of zeros."""
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
            limit *= WIDER

    async def get_all_documents(self, filter_metadata: dict[str, Any] | None = None) -> list[Document]:
        """All documents whose metadata have these values, by `chunk_idx`."""
        stream, wanted = _split(filter_metadata)
        found = await self._rows.all(stream)
        return in_order([_document(each) for each in found if has_values(each.metadata, wanted)])

    async def set_embedding(self, doc_id: str, embedding: list[float]) -> bool:
        """Give a stored document a vector; False where there is no such document, or the vector is zero."""
        vector = vector_of(embedding)
        return vector is not None and await self._rows.embed(doc_id, vector)

    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document; whether there was one."""
        return await self._rows.delete(doc_id)

    async def clear(self) -> int:
        """Delete all documents and say how many."""
        return await self._rows.clear()

    async def clear_stream(self, stream_id: str) -> int:
        """Delete the documents of a stream and say how many."""
        return await self._rows.clear(stream_id)

    async def close(self) -> None:
        """Let go of the connection; a later use connects again."""
        await self._rows.close()


def _split(filter_metadata: Mapping[str, Any] | None) -> tuple[str | None, Mapping[str, Any]]:
    """The stream that Milvus is to look in, and all values that are compared afterwards."""
    wanted = plain(filter_metadata or {})
    stream = wanted.get(STREAM)
    return (stream if isinstance(stream, str) else None), wanted


def _checked(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON. Raises InvalidInput, also for a stream whose name is no text."""
    told = plain(metadata)
    if not isinstance(told.get(STREAM, ""), str | None):
        raise InvalidInput(f"metadata.{STREAM}", "must be a text")
    return told


def _document(stored: Any) -> Document:
    made = Document(stored.id, stored.text, None, dict(stored.metadata))
    return made if stored.created is None else replace(made, created_at=stored.created)
