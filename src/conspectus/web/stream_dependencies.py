"""Dependencies of routes below a stream."""

from typing import Annotated, Final, TypedDict

from fastapi import Depends, Path, Query

from conspectus.model import parameters
from conspectus.model.captions import CaptionRange, When
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.streams import Stream
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.web.dependencies import EngineOf
from conspectus.web.operation_schemas import (
    MAX_TIME_LENGTH,
)

STREAM: Final = "/streams/{stream:path}"
CAPTIONS: Final = f"{STREAM}/captions"
Time = Annotated[str | None, Query(max_length=MAX_TIME_LENGTH, **facts_of(When))]
First = Annotated[int | None, Query(**facts_of_field(CaptionRange, "first"))]
Last = Annotated[int | None, Query(**facts_of_field(CaptionRange, "last"))]
Inside = Annotated[bool, Query(**facts_of_field(CaptionRange, "contains"))]
StreamName = Annotated[str, Path(**facts_of(parameters.StreamName))]
InCollection = Annotated[str, Query(**facts_of(parameters.CollectionName))]


class StreamArguments(TypedDict):
    """The arguments of a service method that name a stream."""

    stream: SourceId
    collection: CollectionId


def stream_arguments(stream: Stream) -> StreamArguments:
    """Return the arguments that name a stream by its id, in its collection."""
    return {"stream": stream.source.id, "collection": stream.source.collection}


async def _read_caption_range(
    *, start: Time = None, end: Time = None, contains: Inside = False, first: First = None, last: Last = None
) -> CaptionRange:
    return CaptionRange(start, end, contains, first, last)


async def _find_stream(
    stream: StreamName, engine: EngineOf, *, collection: InCollection = "default"
) -> Stream:
    return await engine.streams.get(stream, collection=collection)


Within = Annotated[CaptionRange, Depends(_read_caption_range)]
"""The range of captions of the parameters start, end, contains, first and last."""
FoundStream = Annotated[Stream, Depends(_find_stream)]
"""The stream of the path, by id or name. Raises NotFound."""
