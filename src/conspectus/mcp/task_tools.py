"""The tool that searches tasks."""

from typing import Annotated

from conspectus.engine.tasks import TaskService
from conspectus.mcp.arguments import (
    Arguments,
    Collection,
    MinTrustArgument,
    Question,
)
from conspectus.mcp.lines import escape_content, shorten
from conspectus.mcp.search_tools import NO_MATCH
from conspectus.mcp.token_budget import ResultPage
from conspectus.mcp.tool import ToolCall, tool
from conspectus.model.tasks import Priority, TaskResult, TaskStatus
from conspectus.model.trust import level_mark
from conspectus.operations.declared import declared


class TaskArguments(Arguments):
    """The arguments of search_tasks."""

    query: Question
    status: Annotated[TaskStatus | None, declared(TaskService.search, "status")] = None
    priority: Annotated[Priority | None, declared(TaskService.search, "priority")] = None
    collection: Collection = "tasks"
    limit: Annotated[int, declared(TaskService.search, "limit")] = 5
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
    facts = [task.status] if task.priority == "none" else [task.status, task.priority]
    named = f"attachment {shorten(task.attachment_id)} of " if task.attachment_id else ""
    mark = level_mark(task.trust)
    head = f"{named}task {shorten(task.task_id)}{mark}: {shorten(task.title)} ({', '.join(facts)})"
    return f"{head}\n{escape_content(task.document)}"
