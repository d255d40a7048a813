"""The tool that builds contexts for questions in channels."""

from typing import Annotated

from conspectus.mcp.arguments import (
    Arguments,
    Collection,
    Instant,
    MinConfidence,
    MinTrustArgument,
    Question,
)
from conspectus.mcp.lines import notice_lines, source_lines
from conspectus.mcp.search_tools import NO_MATCH
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, tool
from conspectus.model.channels import ChannelQuery
from conspectus.operations.declared import declared
from conspectus.text.times import parse_instant


class ChannelArguments(Arguments):
    """The arguments of channel_context."""

    query: Question
    channel: Annotated[str, declared(ChannelQuery, "channel")]
    collection: Collection = "default"
    thread: Annotated[str | None, declared(ChannelQuery, "thread")] = None
    at: Annotated[Instant | None, declared(ChannelQuery, "at")] = None
    min_confidence: MinConfidence = 0.0
    min_trust: MinTrustArgument = None


@tool()
async def channel_context(call: ToolCall, arguments: ChannelArguments) -> str:
    """Build the context for a question in a channel: messages, reply chains, threads."""
    source = await call.engine.collections.get_source(arguments.channel, collection=arguments.collection)
    call.require_inside(source, name=arguments.channel)
    at = None if arguments.at is None else parse_instant(arguments.at)
    window_result = await call.engine.channels.window(
        arguments.query,
        call.text_budget(),
        channel=arguments.channel,
        collection=arguments.collection,
        thread=arguments.thread,
        at=at,
        min_confidence=arguments.min_confidence,
        min_trust=arguments.min_trust,
    )
    window = window_result.window
    return call.page(
        ResultPage(
            source_lines(window.citations),
            window.text or NO_MATCH,
            notice_lines(window.notices),
            between="\n",
        )
    )
