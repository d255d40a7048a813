"""Types of video contexts: documents with metadata and times, windows, and the interface of a store."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Self

from conspectus.errors import InvalidInput
from conspectus.ingest.captions import span_of
from conspectus.model.records import Period
from conspectus.model.streams import CaptionRange
from conspectus.text.times import StreamClock


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
        found = await self.get_all_documents({"stream_id": stream_id})
        return sum([await self.delete_document(each.id) for each in found])

    async def between(self, within: CaptionRange, stream_id: str | None = None) -> list[Document]:
        """Return the documents of a time range, in the order of `chunk_idx`."""
        chosen = None if stream_id is None else {"stream_id": stream_id}
        found = [each for each in await self.get_all_documents(chosen) if in_range(each.metadata, within)]
        return in_order(found)

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
    return sorted(documents, key=lambda each: chunk_index(each.metadata))


def stream_filter(stream_id: str | None, more: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Add a stream, if one is named, to the metadata of a filter."""
    chosen = {**(more or {}), **({} if stream_id is None else {"stream_id": stream_id})}
    return chosen or None


CLOCK: Final = StreamClock()
LOG: Final = logging.getLogger("conspectus.video")

Instant = datetime | str | float


def times_of(metadata: Mapping[str, Any]) -> tuple[Instant, Instant] | None:
    """Return the start and end of a document; a missing one equals the other.

    Returns None without times. Invalid or reversed times are logged: the document is stored and belongs to no
    range.
    """
    given = [metadata.get("start_time"), metadata.get("end_time")]
    known = [each for each in given if each is not None and each != ""]
    if not known:
        return None
    start, end = known[0], known[-1]
    try:
        CLOCK.period(start, end)
    except InvalidInput as fault:
        LOG.warning("stored without a time: start_time %r, end_time %r: %s", *given, fault)
        return None
    return start, end


def in_range(metadata: Mapping[str, Any], within: CaptionRange) -> bool:
    """Return whether the times of a document overlap a range, or with `contains` lie inside it."""
    span = span_of(within, CLOCK)
    times = times_of(metadata)
    if times is None:
        return span.start is None and span.end is None
    period: Period = CLOCK.period(*times)
    if not within.contains:
        return period.overlaps(span.start, span.end)
    starts = span.start is None or period.start >= span.start
    return starts and (span.end is None or period.end <= span.end)


def chunk_index(metadata: Mapping[str, Any]) -> float:
    """Return the number of a document in its stream, default 0."""
    value = metadata.get("chunk_idx")
    return value if isinstance(value, int | float) and value == value else 0


def sequence_of(metadata: Mapping[str, Any]) -> int | None:
    """Return the number of a document in its stream if it is an integer from 0 on, else None."""
    value = metadata.get("chunk_idx")
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < 2**63 else None


def open_ended(value: Instant | None) -> Instant | None:
    """Return a bound of a range, or None for an empty one."""
    return None if value is None or value == "" else value
