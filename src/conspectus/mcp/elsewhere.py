"""Tools that ask streams, channels and tasks: search_streams, channel_context, search_tasks."""

from pydantic import Field

from conspectus.mcp.formatting import content, notices, short, sources
from conspectus.mcp.tool import (
    ISO,
    Arguments,
    Instant,
    Name,
    Question,
    ResultPage,
    ToolCall,
    ToolResult,
    tool,
)
from conspectus.model.query import Budget
from conspectus.model.streams import CaptionRange, Moment
from conspectus.model.tasks import Priority, TaskResult, TaskStatus
from conspectus.text.times import parse_instant

MOST_FOUND = 20
MOST_STREAMS = 20
NAMING_SHARE = 6
NAMING_MOST = 400
NOTHING = "Nothing relevant was found."


class MomentArguments(Arguments):
    """The arguments of search_streams."""

    query: Question = Field(description="The question; it may name a time.")
    streams: list[Name] = Field(
        default_factory=list, max_length=MOST_STREAMS, description="Only in these streams; left out: all."
    )
    collection: Name = Field("default", description="The collection of the streams.")
    start: Instant | None = Field(None, description=f"From this time on (0:30, or {ISO}).")
    end: Instant | None = Field(None, description="Before this time.")
    limit: int = Field(5, ge=1, le=MOST_FOUND, description="Most moments.")


class ChannelArguments(Arguments):
    """The arguments of channel_context."""

    query: Question = Field(description="The question.")
    channel: Name = Field(description="Name or id of the channel in which it is asked.")
    collection: Name = Field("default", description="The collection of the channel.")
    thread: Name | None = Field(None, description="The thread in which it is asked.")
    at: Instant | None = Field(None, description=f"When it is asked ({ISO}); left out: now.")


class TaskArguments(Arguments):
    """The arguments of search_tasks."""

    query: Question = Field(description="What the tasks are about.")
    status: TaskStatus | None = Field(None, description="Only with this status.")
    priority: Priority | None = Field(None, description="Only with this priority.")
    collection: Name = Field("tasks", description="The collection of the tasks.")
    limit: int = Field(5, ge=1, le=MOST_FOUND, description="Most tasks.")


@tool("Find moments in streams")
async def search_streams(call: ToolCall, given: MomentArguments) -> ToolResult:
    """Find the moments of videos and streams that answer a question, with their captions."""
    for stream in given.streams:
        call.require_inside(await call.engine.collections.get_source(stream, collection=given.collection))
    found = await call.engine.streams.search(
        given.query,
        streams=tuple(given.streams),
        collection=given.collection,
        range=CaptionRange(given.start, given.end),
        limit=given.limit,
    )
    head = "" if found.moments else NOTHING
    return call.page(ResultPage(list(map(_moment, found.moments)), head, notices(found.notices)))


@tool("Build context from a channel")
async def channel_context(call: ToolCall, given: ChannelArguments) -> ToolResult:
    """Build the context for a question asked in a channel: messages, reply chains, threads."""
    call.require_inside(await call.engine.collections.get_source(given.channel, collection=given.collection))
    told = min(call.room.tokens // NAMING_SHARE, NAMING_MOST)
    at = None if given.at is None else parse_instant(given.at)
    found = await call.engine.channels.window(
        given.query,
        Budget(call.room.tokens - told, call.options.tokenizer),
        channel=given.channel,
        collection=given.collection,
        thread=given.thread,
        at=at,
    )
    window = found.window
    return call.page(
        ResultPage(sources(window.citations), window.text or NOTHING, notices(window.notices), between="\n")
    )


@tool("Find tasks")
async def search_tasks(call: ToolCall, given: TaskArguments) -> ToolResult:
    """Find the tasks, and their attachments, that are about something, with status."""
    tasks = call.engine.tasks.using(collection=given.collection)
    found = await tasks.search(given.query, given.limit, status=given.status, priority=given.priority)
    return call.page(ResultPage(list(map(_task, found)), "" if found else NOTHING))


def _moment(moment: Moment) -> str:
    times = f"{moment.start_text} to {moment.end_text}"
    head = f"{short(moment.stream.name)}, {times} (score {moment.score:.3g})"
    return "\n".join((head, *(content(each.text) for each in moment.captions)))


def _task(found: TaskResult) -> str:
    facts = [found.status, *filter(None, (found.priority,))]
    named = f"attachment {short(found.attachment_id)} of " if found.attachment_id else ""
    head = f"{named}task {short(found.task_id)}: {short(found.title)} ({', '.join(facts)})"
    return f"{head}\n{content(found.document)}"
