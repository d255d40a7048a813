"""The interface of a store of video contexts, and the types of its documents."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Self

from conspectus.deferred import dataclass
from conspectus.facades.video.caption_times import chunk_index, in_range
from conspectus.model.captions import CaptionRange


@dataclass
class Document:
    """A caption. Stores that keep vectors separately return no `embedding`."""

    id: str
    text: str
    embedding: list[float] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: datetime = field(default_factory=partial(datetime.now, UTC))

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name, as in the dictionaries of `retrieve`. Raises KeyError."""
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)


@dataclass
class RetrievalResult:
    """Documents for a query, best first, with their scores."""

    documents: list[Document]
    scores: list[float]
    query: str
    top_k: int


@dataclass
class ContextWindow:
    """Documents for a model with their number of tokens; `truncated` means that some did not fit."""

    documents: list[Document]
    total_tokens: int
    truncated: bool = False


class ContextStore(ABC):
    """The interface of a store. Six methods are abstract; the others may be overridden for speed."""

    @abstractmethod
    async def add_document(
        self, text: str, metadata: dict[str, Any], embedding: list[float] | None = None
    ) -> str:
        """Store a document and return its id."""

    @abstractmethod
    async def get_document(self, doc_id: str) -> Document | None:
        """Return a document by id, or None."""

    @abstractmethod
    async def search(
        self,
        query_embedding: list[float],
        top_k: int = 5,
        filter_metadata: dict[str, Any] | None = None,
    ) -> list[tuple[Document, float]]:
        """Return the documents most similar to a vector, among those with these metadata."""

    @abstractmethod
    async def get_all_documents(self, filter_metadata: dict[str, Any] | None = None) -> list[Document]:
        """Return all documents with these metadata, in the order of `chunk_idx`."""

    @abstractmethod
    async def delete_document(self, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""

    @abstractmethod
    async def clear(self) -> int:
        """Delete all documents and return their number."""

    async def add_documents(
        self,
        texts: Sequence[str],
        metadatas: Sequence[dict[str, Any]],
        embeddings: Sequence[list[float] | None],
    ) -> list[str]:
        """Store documents and return their ids in order."""
        together = zip(texts, metadatas, embeddings, strict=True)
        return [
            await self.add_document(text=text, metadata=facts, embedding=vector)
            for text, facts, vector in together
        ]

    async def set_embedding(self, doc_id: str, embedding: list[float]) -> bool:
        """Set the vector of a document; False if the store does not support it."""
        return False

    async def clear_stream(self, stream_id: str) -> int:
        """Delete the documents of a stream and return their number."""
        documents = await self.get_all_documents({"stream_id": stream_id})
        return sum([await self.delete_document(document.id) for document in documents])

    async def between(self, within: CaptionRange, stream_id: str | None = None) -> list[Document]:
        """Return the documents of a time range, in the order of `chunk_idx`."""
        metadata = None if stream_id is None else {"stream_id": stream_id}
        documents = [
            document
            for document in await self.get_all_documents(metadata)
            if in_range(document.metadata, within)
        ]
        return in_order(documents)

    async def close(self) -> None:
        """Release the resources of the store; by default there are none."""
        return


class ClosableStore(ContextStore):
    """A store with a connection that writes many documents in one call."""

    async def __aenter__(self) -> Self:
        """Return the store; it is opened on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    @abstractmethod
    async def close(self) -> None:
        """Close the connection."""

    async def add_document(
        self, text: str, metadata: dict[str, Any], embedding: list[float] | None = None
    ) -> str:
        """Store a document and return its id. Raises InvalidInput."""
        return (await self.add_documents([text], [metadata], [embedding]))[0]


def in_order(documents: Sequence[Document]) -> list[Document]:
    """Sort documents by `chunk_idx`, those without one first; the sort is stable."""
    return sorted(documents, key=lambda document: chunk_index(document.metadata))


def stream_filter(stream_id: str | None, more: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Add a stream, if one is named, to the metadata of a filter."""
    metadata = {**(more or {}), **({} if stream_id is None else {"stream_id": stream_id})}
    return metadata or None
