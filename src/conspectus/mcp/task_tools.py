"""The tool that searches tasks."""

from pydantic import Field

from conspectus.mcp.arguments import (
    Arguments,
    MinTrustArgument,
    Name,
    Question,
)
from conspectus.mcp.lines import escape_content, shorten
from conspectus.mcp.search_tools import MAX_MATCHES, NO_MATCH
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
    limit: int = Field(5, ge=1, le=MAX_MATCHES, description="Maximum tasks.")
    min_trust: MinTrustArgument = None


@tool()
async def search_tasks(call: ToolCall, arguments: TaskArguments) -> str:
    """Find tasks and their attachments by subject, with status."""
    tasks = call.engine.tasks.using(collection=arguments.collection)
    matches = await tasks.search(
        arguments.query,
        arguments.limit,
        status=arguments.status,
        priority=arguments.priority,
        min_trust=arguments.min_trust,
    )
    return call.page(ResultPage(list(map(_task_lines, matches)), "" if matches else NO_MATCH))


def _task_lines(task: TaskResult) -> str:
    facts = [task.status, *filter(None, (task.priority,))]
    named = f"attachment {shorten(task.attachment_id)} of " if task.attachment_id else ""
    mark = level_mark(task.trust)
    head = f"{named}task {shorten(task.task_id)}{mark}: {shorten(task.title)} ({', '.join(facts)})"
    return f"{head}\n{escape_content(task.document)}"
