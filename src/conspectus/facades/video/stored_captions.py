"""Captions of a collection as documents of the video API."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.facades.video.caption_times import LOG
from conspectus.facades.video.context_store import Document
from conspectus.facades.video.metadata import STREAM_KEY, from_stored, stream_name
from conspectus.model import records
from conspectus.model.records import Collection, Source
from conspectus.text.stream_clocks import clock_of

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
        return {stream.name: stream.id for stream in self.streams.values()}

    def stream_ids(self, stream_id: str | None) -> Sequence[str]:
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
            metadata = {**_describe(stored, stream), **metadata}
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


def _describe(stored: records.Document, stream: Source) -> dict[str, Any]:
    facts: dict[str, Any] = {STREAM_KEY: stream.name}
    if stored.sequence is not None:
        facts["chunk_idx"] = stored.sequence
    if stored.occurred is not None:
        clock = clock_of(stream)
        facts["start_time"] = clock.seconds(stored.occurred.start)
        facts["end_time"] = clock.seconds(stored.occurred.end)
    return facts
