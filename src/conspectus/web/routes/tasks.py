"""Tasks with attachments, and vector search in them."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from conspectus.engine.tasks import TaskService
from conspectus.errors import Conflict, InvalidInput
from conspectus.model import parameters
from conspectus.model.quarantine import quarantine_notice
from conspectus.model.records import Receipt
from conspectus.model.tasks import (
    Attachment,
    Priority,
    StoredAttachment,
    StoredTask,
    Task,
    TaskContext,
    TaskPage,
    TaskStatus,
    TaskWritten,
)
from conspectus.operations.declared import facts_of, facts_of_field
from conspectus.web.dependencies import After, EngineOf, IfMatch, IfNoneMatch, Limit, Unhurried
from conspectus.web.etags import fingerprint_in, tag_of, unless_not_modified
from conspectus.web.openapi import ReadOnly, Section, problems, with_tag
from conspectus.web.operation_schemas import answer_of, response_type
from conspectus.web.schemas.tasks import (
    AttachmentBody,
    IdentifiedTaskBody,
    SearchFilters,
    SemanticSearch,
    SemanticSearchQuery,
    TaskBody,
    TaskChange,
    TaskContextBody,
    TasksBody,
)
from conspectus.web.stream_dependencies import InCollection

router = Section("tasks")
ONE = "/tasks/{task:path}"
ATTACHMENTS = f"{ONE}/attachments"
ATTACHMENT = f"{ATTACHMENTS}/{{attachment:path}}"
"""Routes below a task are matched first, as the id of a task may contain a slash."""


async def _tasks(engine: EngineOf, collection: InCollection = "tasks") -> TaskService:
    return engine.tasks.using(collection=collection)


async def _require_single_values(request: Request) -> None:
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(name, "is given more than once")


TasksOf = Annotated[TaskService, Depends(_tasks)]
TaskName = Annotated[str, Path(**facts_of_field(Task, "id"))]
AttachmentName = Annotated[str, Path(**facts_of_field(Attachment, "id"))]
Wait = Annotated[bool, Query(**facts_of(parameters.Wait))]


@router.get("/search/semantic", dependencies=[Depends(_require_single_values)])
async def search_tasks(query: Annotated[SemanticSearchQuery, Query()], engine: EngineOf) -> SemanticSearch:
    """Return the tasks and attachments nearest in meaning, the most similar first."""
    if not query.q.strip():
        raise InvalidInput("q", "must have a visible character")
    matches = await engine.tasks.using(collection=query.collection).search(
        query.q,
        query.n,
        status=query.status,
        priority=query.priority,
        min_similarity=query.min_similarity,
        min_trust=query.min_trust,
    )
    return SemanticSearch(matches, len(matches), query.q, SearchFilters(query.status, query.priority))


@router.get("/tasks")
async def list_tasks(
    tasks: TasksOf,
    *,
    status: Annotated[TaskStatus | None, Query(**facts_of_field(TaskService.list, "status"))] = None,
    priority: Annotated[Priority | None, Query(**facts_of_field(TaskService.list, "priority"))] = None,
    tag: Annotated[str | None, Query(**facts_of_field(TaskService.list, "tag"))] = None,
    after: After = None,
    limit: Limit = 100,
) -> TaskPage:
    """Return a page of tasks, the first written first."""
    return await tasks.list(status=status, priority=priority, tag=tag, after=after, limit=limit)


def require_shown(written: TaskWritten) -> None:
    """Raise Conflict for a text that was stored and is not shown, as it is quarantined."""
    if written.quarantined is not None:
        reason = (
            f"{quarantine_notice(written.quarantined)}; it is stored as document {written.document},"
            " and shown once a manager of the collection releases it"
        )
        raise Conflict("task", written.id, reason)


@router.post("/tasks", status_code=201, responses=problems(409), dependencies=[Unhurried])
async def post_task(body: IdentifiedTaskBody, tasks: TasksOf, *, wait: Wait = True) -> StoredTask:
    """Create a task, or replace what the one of that id says."""
    require_shown(await tasks.put(body.task(), wait=wait))
    return await tasks.get(body.id)


@router.post("/tasks/bulk", dependencies=[Unhurried])
async def post_tasks(body: TasksBody, tasks: TasksOf, *, wait: Wait = True) -> Sequence[TaskWritten]:
    """Create or replace many tasks, in batches of 500 that are each written whole or not at all."""
    return await tasks.put_many([task.task() for task in body.tasks], wait=wait)


@router.post("/tasks/context", dependencies=[ReadOnly])
async def task_context(body: TaskContextBody, engine: EngineOf) -> TaskContext:
    """Return the nearest tasks as numbered lines for a prompt, never over the budget."""
    fields = body.model_dump(exclude={"collection", "n_results"})
    return await engine.tasks.using(collection=body.collection).build_context(limit=body.n_results, **fields)


@router.get(ATTACHMENTS)
async def list_attachments(task: TaskName, tasks: TasksOf) -> Sequence[StoredAttachment]:
    """Return the attachments of a task, by id."""
    return await tasks.attachments(task)


@router.get(ATTACHMENT)
async def get_attachment(task: TaskName, attachment: AttachmentName, tasks: TasksOf) -> StoredAttachment:
    """Return an attachment of a task."""
    return await tasks.attachment(task, attachment)


@router.put(ATTACHMENT, responses=problems(409), dependencies=[Unhurried])
async def put_attachment(
    task: TaskName, attachment: AttachmentName, body: AttachmentBody, tasks: TasksOf, *, wait: Wait = True
) -> StoredAttachment:
    """Give a task an attachment, or replace the one of that id."""
    require_shown(await tasks.attach(task, body.attachment(attachment), wait=wait))
    return await tasks.attachment(task, attachment)


@router.delete(ATTACHMENT, dependencies=[Unhurried])
async def delete_attachment(task: TaskName, attachment: AttachmentName, tasks: TasksOf) -> Receipt:
    """Delete an attachment of a task; one that is unknown counts as nothing."""
    return await tasks.detach(task, attachment)


@router.get(ONE, response_model=response_type(StoredTask), responses=with_tag())
async def get_task(task: TaskName, tasks: TasksOf, if_none_match: IfNoneMatch = None) -> Response:
    """Return a task, with its fingerprint as ETag."""
    task_answer = answer_of(await tasks.get(task))
    return unless_not_modified(task_answer, tag_of(task_answer), if_none_match)


@router.put(ONE, responses=problems(409), dependencies=[Unhurried])
async def put_task(task: TaskName, body: TaskBody, tasks: TasksOf, *, wait: Wait = True) -> StoredTask:
    """Create the task of that id, or replace what it says; its attachments stay."""
    require_shown(await tasks.put(Task(id=task, **body.named_fields()), wait=wait))
    return await tasks.get(task)


@router.patch(ONE, responses=problems(409, 412), dependencies=[Unhurried])
async def update_task(
    task: TaskName,
    body: TaskChange,
    tasks: TasksOf,
    engine: EngineOf,
    *,
    if_match: IfMatch = None,
    wait: Wait = True,
) -> StoredTask:
    """Change the fields that are named; with If-Match, only if the task is what was read."""
    read = await fingerprint_in(if_match, (await tasks.get(task)).document, engine)
    require_shown(await tasks.update(task, if_match=read, wait=wait, **body.named_fields()))
    return await tasks.get(task)


@router.delete(ONE, dependencies=[Unhurried])
async def delete_task(task: TaskName, tasks: TasksOf) -> Receipt:
    """Delete a task with its attachments; one that is unknown counts as nothing."""
    return await tasks.delete(task)
