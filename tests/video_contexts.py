"""Embedders and a store such as users of video contexts have."""

import uuid
from typing import Any

from conspectus.facades.video import ContextStore, Document

SUBJECTS = ("car", "dog", "rain", "door")


class SubjectEmbeddings:
    """One number for each subject that a text names; it notes what it was conditions, and fails on demand."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.failing: set[str] = set()

    async def embed_document(self, text: str) -> list[float]:
        self.documents.append(text)
        return self._of(text, "document")

    async def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [await self.embed_document(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return self._of(text, "query")

    def _of(self, text: str, task: str) -> list[float]:
        if task in self.failing or text in self.failing:
            raise RuntimeError("quota exceeded for key sk-secret")
        return [float(text.lower().count(subject)) for subject in SUBJECTS]


class PlainEmbeddings(SubjectEmbeddings):
    """The same without coroutines."""

    def embed_document(self, text: str) -> list[float]:
        return self._of(text, "document")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._of(text, "document") for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._of(text, "query")


class ListStore(ContextStore):
    """A store of somebody else's: the six methods, and falsy while it is empty."""

    def __init__(self) -> None:
        self.documents: list[Document] = []

    def __len__(self) -> int:
        return len(self.documents)

    async def add_document(self, text: str, metadata: dict, embedding: list[float] | None = None) -> str:
        self.documents.append(Document(str(uuid.uuid4()), text, embedding, metadata))
        return self.documents[-1].id

    async def get_document(self, doc_id: str) -> Document | None:
        return next((document for document in self.documents if document.id == doc_id), None)

    async def search(
        self, query_embedding: list[float], top_k: int = 5, filter_metadata: dict | None = None
    ) -> list[tuple[Document, float]]:
        scored = [
            (document, sum(a * b for a, b in zip(query_embedding, document.embedding, strict=True)))
            for document in await self.get_all_documents(filter_metadata)
            if document.embedding is not None
        ]
        return sorted(scored, key=lambda pair: -pair[1])[:top_k]

    async def get_all_documents(self, filter_metadata: dict | None = None) -> list[Document]:
        conditions = (filter_metadata or {}).items()
        return [
            document
            for document in self.documents
            if all(document.metadata.get(name) == value for name, value in conditions)
        ]

    async def delete_document(self, doc_id: str) -> bool:
        before = len(self.documents)
        self.documents = [document for document in self.documents if document.id != doc_id]
        return len(self.documents) < before

    async def clear(self) -> int:
        count, self.documents = len(self.documents), []
        return count


def minute(number: int, stream: str = "gate", **more: Any) -> dict[str, Any]:
    """Metadata of a caption of one minute."""
    times = {"start_time": f"00:0{number}:00", "end_time": f"00:0{number + 1}:00"}
    return {"stream_id": stream, "chunk_idx": number, **times, **more}
