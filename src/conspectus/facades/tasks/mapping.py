"""The words of a task list: what tasks, attachments and results are made of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args

from conspectus.errors import InvalidInput
from conspectus.model.results import Outcome
from conspectus.text.clean import clean

TaskStatus = Literal["pending", "in_progress", "completed"]
Priority = Literal["low", "medium", "high", "critical"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
OWN = frozenset(
    {"task_id", "attachment_id", "status", "priority", "tags", "has_attachments", "attachments", "length"}
)
"""Metadata that say what a task is; a caller's own have other names."""
ID_LENGTH = 200
ATTACHMENT_ID_LENGTH = 100
TITLE_LENGTH = 1_000

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be done. `id` is the caller's own; `metadata` are what else the caller knows of it."""

    id: str
    title: str
    description: str = ""
    tags: tuple[str, ...] = ()
    status: TaskStatus = "pending"
    priority: Priority | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask(Task):
    """A task as it is stored, in the document of that id; `fingerprint` changes with anything of it."""

    has_attachments: bool
    document: str
    fingerprint: str
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text that belongs to a task; its `id` is unique there."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttachment(Attachment):
    """An attachment as it is stored, in the document of that id."""

    task_id: str
    document: str
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class TaskWritten:
    """What a write did to one task."""

    id: str
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    document: str


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks, the first written first; `next` is the cursor of the page after this one."""

    tasks: tuple[StoredTask, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task found, or an attachment of it.

    `similarity` is the cosine of its nearest piece with the question, 0 where that is negative, and
    `distance` is 1 less that. `document` is all that was written, `snippet` its beginning. Status and
    priority are the task's, as is whether it has attachments; `reference` is the id of the document found.
    """

    task_id: str
    type: Literal["task", "attachment"]
    attachment_id: str | None
    title: str
    document: str
    distance: float
    similarity: float
    status: TaskStatus
    priority: Priority | None
    has_attachments: bool
    snippet: str
    reference: str


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Tasks for a prompt: `text` costs exactly `tokens` and shows `results`; `left_out` did not fit.

    Whether anything was found is said by `outcome`, whatever the text is.
    """

    text: str
    tokens: int
    outcome: Outcome
    results: tuple[TaskResult, ...]
    left_out: int = 0


def checked(task: Task) -> Task:
    """The task as it can be stored. Raises InvalidInput."""
    title = _named("title", task.title, TITLE_LENGTH)
    tags = tuple(dict.fromkeys(clean(each).strip() for each in _tags(task.tags)))
    if not all(tags):
        raise InvalidInput("tags", "a tag has visible characters")
    _own(task.metadata)
    return Task(
        id=_named("id", task.id, ID_LENGTH),
        title=title,
        description=clean(task.description) if task.description.strip() else "",
        tags=tags,
        status=one_of("status", task.status, STATUSES),
        priority=None if task.priority is None else one_of("priority", task.priority, PRIORITIES),
        metadata=dict(task.metadata),
    )


def checked_attachment(attachment: Attachment) -> Attachment:
    """The attachment as it can be stored; without a text, its title is what it says. Raises InvalidInput."""
    title, text = clean(attachment.title), clean(attachment.text)
    if len(title) > TITLE_LENGTH:
        raise InvalidInput("title", f"has more than {TITLE_LENGTH} characters")
    if not (title.strip() or text.strip()):
        raise InvalidInput("text", "an attachment has a text or a title")
    _own(attachment.metadata)
    name = _named("attachment", attachment.id, ATTACHMENT_ID_LENGTH)
    return Attachment(name, text if text.strip() else "", title, dict(attachment.metadata))


def changed(task: Task, changes: Mapping[str, Any]) -> Task:
    """The task with other values of some of its fields. Raises InvalidInput."""
    fields = Task.__dataclass_fields__.keys() - {"id"}
    for name in changes:
        if name not in fields:
            raise InvalidInput(name, f"cannot be changed; there are {', '.join(sorted(fields))}")
    return checked(replace(task, **changes))


def named_status(value: str | None) -> TaskStatus | None:
    """A status to look for. Raises InvalidInput."""
    return None if value is None else one_of("status", value, STATUSES)


def named_priority(value: str | None) -> Priority | None:
    """A priority to look for. Raises InvalidInput."""
    return None if value is None else one_of("priority", value, PRIORITIES)


def one_of(field: str, value: object, values: tuple[Word, ...]) -> Word:
    """The value, if it is one of these. Raises InvalidInput."""
    for each in values:
        if value == each:
            return each
    raise InvalidInput(field, f"must be one of {', '.join(values)}")


def _named(field: str, value: object, most: int) -> str:
    name = clean(value) if isinstance(value, str) else ""
    if not name.strip() or len(name) > most:
        raise InvalidInput(field, f"must have 1 to {most} characters, one of them visible")
    return name


def _tags(tags: object) -> Iterator[str]:
    if isinstance(tags, str) or not isinstance(tags, list | tuple):
        raise InvalidInput("tags", "must be a list of words")
    for each in tags:
        if not isinstance(each, str):
            raise InvalidInput("tags", "must be a list of words")
        yield each


def _own(metadata: Mapping[str, object]) -> None:
    if taken := OWN & metadata.keys():
        raise InvalidInput("metadata", f"{min(taken)!r} is a name that tasks use themselves")
