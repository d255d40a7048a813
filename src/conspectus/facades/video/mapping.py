"""Types of video contexts, the interface of a store, and documents as captions of an engine."""

import json
import logging
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Self

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.ingest.captions import span_of
from conspectus.ingest.prepare import storable
from conspectus.model import records
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, Not, Or
from conspectus.model.records import Collection, Json, Period, Source
from conspectus.model.streams import CaptionRange
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, fits, stable_id
from conspectus.text.times import StreamClock, clock_of


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


PAGE: Final = 1_000
_OWN_KEY: Final = re.compile(r"\d{19}-\d{9}-[0-9a-f]{8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredCaptions:
    """A collection with its current streams, by id."""

    collection: Collection
    streams: Mapping[str, Source]

    @property
    def names(self) -> dict[str, str]:
        """The ids of the streams by name."""
        return {each.name: each.id for each in self.streams.values()}

    def chosen(self, stream_id: str | None) -> Sequence[str]:
        """Return the ids of a named stream, if it exists, or of all."""
        if stream_id is None:
            return list(self.streams)
        named = self.names.get(stream_name(stream_id))
        return [] if named is None else [named]

    def document(self, stored: records.Document, text: str) -> Document:
        """Convert a caption; what other programs stored is described by its known fields."""
        metadata = from_stored(stored.metadata)
        stream = self.streams.get(stored.source)
        if stream is not None and not _OWN_KEY.fullmatch(stored.key):
            metadata = {**_described(stored, stream), **metadata}
        return Document(stored.id, text, None, metadata, stored.recorded)


def vector_of(embedding: Sequence[float]) -> tuple[float, ...] | None:
    """Return a vector as a tuple; None for a zero vector, which has no direction and is not stored."""
    try:
        vector = tuple(float(number) for number in embedding)
    except (TypeError, ValueError) as fault:
        raise InvalidInput("embedding", "must be a row of numbers") from fault
    if not any(vector):
        LOG.warning("an embedding of zeros is left out: nothing is similar to it")
        return None
    if not all(map(math.isfinite, vector)):
        raise InvalidInput("embedding", "must be finite")
    return vector


def _described(stored: records.Document, stream: Source) -> dict[str, Any]:
    facts: dict[str, Any] = {STREAM: stream.name}
    if stored.sequence is not None:
        facts["chunk_idx"] = stored.sequence
    if stored.occurred is not None:
        clock = clock_of(stream)
        facts["start_time"] = clock.seconds(stored.occurred.start)
        facts["end_time"] = clock.seconds(stored.occurred.end)
    return facts


STREAM: Final = "stream_id"
UNNAMED: Final = "unnamed"
"""The stream of documents whose metadata name none."""
WHOLE_VALUES: Final = "whole values"
"""Metadata key for the text of lists and objects.

It makes them comparable as a whole, while a filter on a list matches any element.
"""
_LIMITS: Final = Settings(max_metadata_bytes=sys.maxsize, max_metadata_depth=100)
_CAPTIONS: Final = Eq("kind", "caption")
_NOTHING: Final = Not(EVERYTHING)


def to_stored(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """Return metadata in their stored form. Raises InvalidInput for values that are not JSON."""
    given = plain(metadata)
    whole: dict[str, Json] = {
        name: _canonical(each) for name, each in given.items() if isinstance(each, list | dict)
    }
    return {**given, WHOLE_VALUES: whole} if whole else given


def from_stored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as the caller supplied them."""
    return {name: value for name, value in metadata.items() if name != WHOLE_VALUES}


def stream_name(stream_id: object) -> str:
    """Return the name of the source of a stream."""
    if stream_id is None or stream_id == "":
        return UNNAMED
    name = clean(stream_id) if isinstance(stream_id, str) else json.dumps(stream_id, sort_keys=True)
    usable = name.strip() and fits(name, NAME_BYTES) and name.isprintable()
    return name if usable else f"stream {stable_id('stream', name)}"


def metadata_filter(filter_metadata: Mapping[str, Any] | None, sources: Mapping[str, str]) -> Filter:
    """Return the filter for captions with exactly these metadata; `sources` maps names of streams to ids.

    It includes captions that were imported otherwise, such as from subtitle files. Raises InvalidInput for a
    value that is not JSON.
    """
    parts: list[Filter] = [_CAPTIONS]
    for name, value in plain(filter_metadata or {}).items():
        parts.append(_of_stream(value, sources) if name == STREAM else _equals(name, value))
    return And(tuple(parts))


def _of_stream(value: Json, sources: Mapping[str, str]) -> Filter:
    name = stream_name(value)
    if name not in sources:
        return _NOTHING
    named = _equals(STREAM, value)
    if name != UNNAMED:
        named = Or((Not(Exists((STREAM,))), named))
    return And((Eq("source", sources[name]), named))


def _equals(name: str, value: Json) -> Filter:
    if value is None:
        return Not(Exists((name,)))
    if isinstance(value, list | dict):
        return Eq((WHOLE_VALUES, name), _canonical(value))
    return And((Eq((name,), value), Not(Exists((WHOLE_VALUES, name)))))


def has_values(metadata: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Return whether metadata have exactly these values; None matches a missing key."""
    return all(_canonical(metadata.get(name)) == _canonical(value) for name, value in expected.items())


def plain(metadata: Mapping[str, Any]) -> dict[str, Json]:
    """Convert metadata to JSON. Times without a time zone keep their form."""
    written = {
        name: each.isoformat() if isinstance(each, datetime) and each.tzinfo is None else each
        for name, each in metadata.items()
    }
    return dict(storable(written, _LIMITS))


def _canonical(value: object) -> str:
    """Return the same text for equal values; 1 and 1.0 are equal."""
    same = json.loads(json.dumps(value), parse_float=_number)
    return json.dumps(same, ensure_ascii=False, sort_keys=True)


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number
