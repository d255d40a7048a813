"""The tool that searches tasks."""

from pydantic import Field

from conspectus.mcp.arguments import (
    Arguments,
    MinTrustArgument,
    Name,
    Question,
)
from conspectus.mcp.lines import content, short
from conspectus.mcp.search_tools import MAX_FOUND, NOTHING
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, tool
from conspectus.model.tasks import Priority, TaskResult, TaskStatus
from conspectus.model.trust import level_mark


class TaskArguments(Arguments):
    """The arguments of search_tasks."""

    query: Question = Field(description="Subject of the tasks.")
    status: TaskStatus | None = Field(None, description="Only with this status.")
    priority: Priority | None = Field(None, description="Only with this priority.")
    collection: Name = Field("tasks", description="Collection of the tasks.")
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Maximum tasks.")
    min_trust: MinTrustArgument = None


@tool()
async def search_tasks(call: ToolCall, given: TaskArguments) -> str:
    """Find tasks and their attachments by subject, with status."""
    tasks = call.engine.tasks.using(collection=given.collection)
    found = await tasks.search(
        given.query, given.limit, status=given.status, priority=given.priority, min_trust=given.min_trust
    )
    return call.page(ResultPage(list(map(_task, found)), "" if found else NOTHING))


def _task(found: TaskResult) -> str:
    facts = [found.status, *filter(None, (found.priority,))]
    named = f"attachment {short(found.attachment_id)} of " if found.attachment_id else ""
    mark = level_mark(found.trust)
    head = f"{named}task {short(found.task_id)}{mark}: {short(found.title)} ({', '.join(facts)})"
    return f"{head}\n{content(found.document)}"
