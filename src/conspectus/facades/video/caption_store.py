"""Captions of one collection in the format of video contexts. Metadata are filters of the index."""

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from time import time_ns
from typing import Any, Final
from uuid import uuid4

from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.facades.video.mapping import LOG, Document, in_order, sequence_of, times_of
from conspectus.ingest.prepare import DocumentLimits, storable
from conspectus.integrations.texts import best_of_each
from conspectus.model import records
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, Not, Or
from conspectus.model.pages import pages
from conspectus.model.query import Query
from conspectus.model.records import Collection, Json, Source
from conspectus.model.results import Retrieval
from conspectus.model.streams import CaptionRange, NewCaption
from conspectus.text.clean import clean
from conspectus.text.hashing import NAME_BYTES, fits, stable_id
from conspectus.text.times import clock_of

PAGE: Final = 1_000
_OWN_KEY: Final = re.compile(r"\d{19}-\d{9}-[0-9a-f]{8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Item:
    """A document to store."""

    text: str
    metadata: Mapping[str, Any]
    embedding: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class StoredCaptions:
    """A collection with its current streams, by id."""

    collection: Collection
    streams: Mapping[str, Source]

    @property
    def names(self) -> dict[str, str]:
        """The ids of the streams by name."""
        return {each.name: each.id for each in self.streams.values()}

    def document(self, stored: records.Document, text: str) -> Document:
        """Convert a caption; what other programs stored is described by its known fields."""
        metadata = from_stored(stored.metadata)
        stream = self.streams.get(stored.source)
        if stream is not None and not _OWN_KEY.fullmatch(stored.key):
            metadata = {**_described(stored, stream), **metadata}
        return Document(stored.id, text, None, metadata, stored.recorded)


class CaptionStore:
    """A collection of captions, created by the first write.

    The caller supplies vectors of `dimensions` (default: the size of the first one). With `engine_embeds`,
    the engine computes them.
    """

    def __init__(
        self, collection: str, *, dimensions: int | None = None, engine_embeds: bool = False
    ) -> None:
        self.collection = collection
        self._dimensions = dimensions
        self._engine_embeds = engine_embeds
        self._numbers = count()

    async def add(self, engine: AnyEngine, items: Sequence[Item]) -> list[str]:
        """Store documents and return their ids in order."""
        streams: dict[str, list[int]] = {}
        captions = [self._caption(each) for each in items]
        for place, item in enumerate(items):
            streams.setdefault(stream_name(item.metadata.get(STREAM)), []).append(place)
        sizes = [len(each.vector) for each in captions if each.vector is not None]
        collection = await self._ensure_collection(engine, sizes[0] if sizes else None)
        ids = [""] * len(items)
        for stream, places in streams.items():
            chosen = [captions[place] for place in places]
            written = await engine.streams.add_captions(chosen, stream=stream, collection=collection.id)
            for place, each in zip(places, written, strict=True):
                ids[place] = each.id
        return ids

    async def get(self, engine: AnyEngine, doc_id: str) -> Document | None:
        """Return a document, or None if it does not exist."""
        captions = await self._open(engine)
        stored = None if captions is None else await self._stored(engine, captions, doc_id)
        if captions is None or stored is None:
            return None
        texts = await engine.documents.get_texts([stored.id])
        return captions.document(stored, texts[stored.id]) if stored.id in texts else None

    async def search(
        self, engine: AnyEngine, query: Query, top_k: int, chosen: Mapping[str, Any] | None
    ) -> list[tuple[Document, float]]:
        """Return the best documents for a query or a vector; none if there is nothing to compare."""
        captions = await self._open(engine)
        alone = query.retrievers == ("vector",)
        if captions is None or top_k <= 0 or (alone and captions.collection.space is None):
            return []
        asked = replace(
            query, collection=captions.collection.id, filter=metadata_filter(chosen, captions.names)
        )

        async def ask(limit: int) -> Retrieval:
            return await engine.search.retrieve(replace(asked, limit=limit))

        best = await best_of_each(ask, top_k)
        texts = await engine.documents.get_texts([hit.document.id for hit in best])
        return [
            (captions.document(hit.document, texts[hit.document.id]), hit.score)
            for hit in best
            if hit.document.id in texts
        ]

    async def all(self, engine: AnyEngine, chosen: Mapping[str, Any] | None) -> list[Document]:
        """Return all documents with these metadata, by `chunk_idx`, then in the order of insertion."""
        captions = await self._open(engine)
        if captions is None:
            return []
        found: list[tuple[str, Document]] = []
        where = metadata_filter(chosen, captions.names)
        read = pages(engine.documents.list, collection=captions.collection.id, filter=where, limit=PAGE)
        async for page in read:
            texts = await engine.documents.get_texts([each.id for each in page.documents])
            pairs = [(each, texts[each.id]) for each in page.documents if each.id in texts]
            found += [(each.key, captions.document(each, text)) for each, text in pairs]
        return _in_order(found)

    async def between(self, engine: AnyEngine, within: CaptionRange, stream_id: str | None) -> list[Document]:
        """Return the documents of a time range of one stream or of all, in the order of `all`."""
        captions = await self._open(engine)
        if captions is None:
            return []
        named = None if stream_id is None else captions.names.get(stream_name(stream_id))
        streams = list(captions.streams) if stream_id is None else [named] if named else []
        found: list[tuple[str, Document]] = []
        for stream in streams:
            async for page in pages(
                engine.streams.list_captions,
                stream=stream,
                collection=captions.collection.id,
                range=within,
                limit=PAGE,
            ):
                found += [
                    (each.document.key, captions.document(each.document, each.text)) for each in page.captions
                ]
        return _in_order(found)

    async def embed(self, engine: AnyEngine, doc_id: str, embedding: Sequence[float]) -> bool:
        """Set the vector of a document; return whether the document exists and the vector is not zero."""
        captions = await self._open(engine)
        vector = vector_of(embedding)
        if captions is None or vector is None or await self._stored(engine, captions, doc_id) is None:
            return False
        await self._ensure_collection(engine, len(vector))
        await engine.documents.update(doc_id, vector=vector)
        return True

    async def delete(self, engine: AnyEngine, doc_id: str) -> bool:
        """Delete a document and return whether it existed."""
        captions = await self._open(engine)
        stored = None if captions is None else await self._stored(engine, captions, doc_id)
        return stored is not None and (await engine.documents.delete(stored.id)).documents > 0

    async def clear(self, engine: AnyEngine, stream_id: str | None = None) -> int:
        """Delete the documents of one stream or of all, and empty streams; return the number of documents."""
        captions = await self._open(engine)
        if captions is None:
            return 0
        chosen = metadata_filter(None, {}) if stream_id is None else of_stream(stream_id, captions.names)
        receipt = await engine.documents.delete_by_filter(chosen, collection=captions.collection.id)
        named = None if stream_id is None else captions.names.get(stream_name(stream_id))
        for stream in captions.streams if stream_id is None else filter(None, [named]):
            if not await engine.documents.count(
                collection=captions.collection.id, filter=Eq("source", stream)
            ):
                with suppress(NotFound):
                    await engine.collections.delete_source(stream, collection=captions.collection.id)
        return receipt.documents

    def _caption(self, item: Item) -> NewCaption:
        times = times_of(item.metadata)
        return NewCaption(
            text=item.text,
            start=None if times is None else times[0],
            end=None if times is None else times[1],
            index=sequence_of(item.metadata),
            key=f"{time_ns():019}-{next(self._numbers):09}-{uuid4().hex[:8]}",
            metadata=to_stored(item.metadata),
            vector=None if item.embedding is None else vector_of(item.embedding),
        )

    async def _stored(
        self, engine: AnyEngine, captions: StoredCaptions, doc_id: str
    ) -> records.Document | None:
        if not doc_id:
            return None
        with suppress(NotFound):
            found = await engine.documents.get(doc_id)
            if found.collection == captions.collection.id and found.kind == "caption":
                return found
        return None

    async def _open(self, engine: AnyEngine) -> StoredCaptions | None:
        with suppress(NotFound):
            found = await engine.collections.get(self.collection)
            sources = await engine.collections.list_sources(collection=found.id)
            return StoredCaptions(found, {each.id: each for each in sources if each.kind == "stream"})
        return None

    async def _ensure_collection(self, engine: AnyEngine, size: int | None) -> Collection:
        """Return the collection for vectors of that size. Raises InvalidInput if it has another size."""
        if self._engine_embeds:
            return await engine.collections.get_or_create(self.collection)
        if size is not None and self._dimensions not in {None, size}:
            raise InvalidInput("embedding", f"has {size} numbers, not {self._dimensions}")
        size = size or self._dimensions
        if size is None:
            return await engine.collections.get_or_create(self.collection, words_only=True)
        found = await self._sized(engine, f"vectors:{size}")
        if found.space is None:
            await engine.maintenance.reembed(f"vectors:{size}", collection=found.id)
        elif found.space.dimensions != size:
            has = f"has {size} numbers, those of {self.collection} have {found.space.dimensions}"
            raise InvalidInput("embedding", has)
        return found

    async def _sized(self, engine: AnyEngine, embedder: str) -> Collection:
        with suppress(NotFound):
            return await engine.collections.get(self.collection)
        with suppress(Conflict):
            return await engine.collections.create(self.collection, embedder=embedder)
        return await engine.collections.get(self.collection)


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


def _in_order(found: Sequence[tuple[str, Document]]) -> list[Document]:
    return in_order([document for _, document in sorted(found, key=lambda each: each[0])])


STREAM: Final = "stream_id"
UNNAMED: Final = "unnamed"
"""The stream of documents whose metadata name none."""
WHOLE_VALUES: Final = "whole values"
"""Metadata key for the text of lists and objects.

It makes them comparable as a whole, while a filter on a list matches any element.
"""
_LIMITS: Final = DocumentLimits(sys.maxsize, sys.maxsize, 100)
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


def of_stream(stream_id: object, sources: Mapping[str, str]) -> Filter:
    """Return the filter for the captions of a stream."""
    return metadata_filter({STREAM: stream_id}, sources)


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
