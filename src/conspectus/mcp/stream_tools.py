"""The tool that searches streams."""

from typing import Annotated

from pydantic import Field

from conspectus.mcp.arguments import (
    Arguments,
    Collection,
    Instant,
    MinConfidence,
    MinTrustArgument,
    Name,
    Question,
)
from conspectus.mcp.lines import escape_content, notice_lines, shorten
from conspectus.mcp.search_tools import NO_MATCH
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, tool
from conspectus.model.captions import CaptionRange
from conspectus.model.streams import Moment, StreamQuery
from conspectus.model.trust import level_mark
from conspectus.operations.declared import declared


class MomentArguments(Arguments):
    """The arguments of search_streams."""

    query: Question
    streams: Annotated[list[Name], declared(StreamQuery, "streams")] = Field(default_factory=list)
    collection: Collection = "default"
    start: Annotated[Instant | None, declared(CaptionRange, "start")] = None
    end: Annotated[Instant | None, declared(CaptionRange, "end")] = None
    limit: Annotated[int, declared(StreamQuery, "limit", ge=1)] = 5
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None


@tool()
async def search_streams(call: ToolCall, arguments: MomentArguments) -> str:
    """Find moments of streams and videos, with their captions."""
    for stream in arguments.streams:
        source = await call.engine.collections.get_source(stream, collection=arguments.collection)
        call.require_inside(source, name=stream)
    retrieval = await call.engine.streams.search(
        arguments.query,
        streams=tuple(arguments.streams),
        collection=arguments.collection,
        range=CaptionRange(arguments.start, arguments.end),
        limit=arguments.limit,
        min_confidence=arguments.min_confidence,
        min_trust=arguments.min_trust,
    )
    head = "" if retrieval.moments else NO_MATCH
    return call.page(
        ResultPage(list(map(_moment_lines, retrieval.moments)), head, notice_lines(retrieval.notices))
    )


def _moment_lines(moment: Moment) -> str:
    times = f"{moment.start_text} to {moment.end_text}"
    head = f"{shorten(moment.stream.name)}, {times} (score {moment.score:.3g})"
    captions = (
        f"{level_mark(caption.document.trust)} {escape_content(caption.text)}".lstrip()
        for caption in moment.captions
    )
    return "\n".join((head, *captions))
