"""Common parts of routes of streams: the stream's name and the range of captions."""

from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query

from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.streams import CaptionRange, Stream
from conspectus.web.deps import EngineOf
from conspectus.web.schemas.base import INT64, NAME

STREAM: Final = "/streams/{stream:path}"
CAPTIONS: Final = f"{STREAM}/captions"
MAX_TIME_LENGTH = 100
WHEN = "Seconds or a timecode on the stream's clock, or an ISO 8601 instant."
Time = Annotated[str | None, Query(max_length=MAX_TIME_LENGTH, description=WHEN)]
Index = Annotated[int | None, Query(ge=-INT64, lt=INT64, description="Number of a caption, included.")]
Inside = Annotated[bool, Query(description="Only captions that lie wholly inside.")]
StreamName = Annotated[
    str, Path(min_length=1, max_length=NAME, description="The id or the name of a stream.")
]
InCollection = Annotated[str, Query(min_length=1, max_length=NAME)]


class ResolvedStream(TypedDict):
    """A stream as the engine is asked for it."""

    stream: SourceId
    collection: CollectionId


def found_by(stream: Stream) -> ResolvedStream:
    """By its id, in its collection."""
    return {"stream": stream.source.id, "collection": stream.source.collection}


async def _within(
    *, start: Time = None, end: Time = None, contains: Inside = False, first: Index = None, last: Index = None
) -> CaptionRange:
    return CaptionRange(start, end, contains, first, last)


async def _found(stream: StreamName, engine: EngineOf, *, collection: InCollection = "default") -> Stream:
    return await engine.streams.get(stream, collection=collection)


Within = Annotated[CaptionRange, Depends(_within)]
"""Which captions of a stream, by the parameters start, end, contains, first and last."""
FoundStream = Annotated[Stream, Depends(_found)]
"""The stream of the path, by id or name. Raises NotFound."""
