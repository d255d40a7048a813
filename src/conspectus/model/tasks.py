"""Tasks of a task list, their attachments, and results of searches for them."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length
from conspectus.model.parameters import Name, StoredId, StoredText, StoredTitle, Text
from conspectus.model.results import Outcome
from conspectus.model.trust import Origin, Trust

TaskStatus = Literal["pending", "in_progress", "completed"]
Priority = Literal["low", "medium", "high", "critical"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
ID_LENGTH = 200
ATTACHMENT_ID_LENGTH = 100
TITLE_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Task:
    """A task to be written, with an id and metadata of your own."""

    id: Annotated[str, Length(1, ID_LENGTH), "Id that the caller gives it.", Example("auth-1")]
    title: Annotated[str, Length(1, TITLE_LENGTH), "Title of the task.", Example("Fix login")]
    description: Annotated[
        Text, "Description of the task.", Example("Users are logged out after a minute.")
    ] = ""
    tags: Annotated[tuple[Name, ...], Length(0, 1_000), "Tags of the task."] = ()
    status: Annotated[TaskStatus, "Status of the task."] = "pending"
    priority: Annotated[Priority | None, "Priority of the task."] = None
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)


class TaskChanges(TypedDict, total=False):
    """The fields of a task that an update changes; those that are not named stay."""

    title: str
    description: str
    tags: Sequence[str]
    status: TaskStatus
    priority: Priority | None
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTask(Task):
    """A stored task, with the id of its document; `fingerprint` changes with any field."""

    has_attachments: bool
    document: StoredId
    fingerprint: Annotated[str, Example("5d41402abc4b2a76")]
    created: datetime
    updated: datetime
    origin: Origin = "user"
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text that belongs to a task; its `id` is unique within the task."""

    id: Annotated[
        str, Length(1, ATTACHMENT_ID_LENGTH), "Id of the attachment in its task.", Example("login.log")
    ]
    text: Annotated[Text, "Text of the attachment.", Example("The log of the failed login.")]
    title: Annotated[str, Length(0, TITLE_LENGTH), "Title of the attachment."] = ""
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttachment(Attachment):
    """A stored attachment, with the id of its document."""

    task_id: Annotated[str, Example("auth-1")]
    document: StoredId
    created: datetime
    updated: datetime
    origin: Origin = "user"
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class TaskWritten:
    """The outcome of a write of one task or attachment.

    `quarantined` is the attack pattern that its text matches: it is stored, and found once it is released.
    """

    id: StoredId
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    document: StoredId
    quarantined: str | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Tasks, the first written first; `next` is the cursor of the page after this one."""

    tasks: tuple[StoredTask, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """A task found, or an attachment of it.

    `similarity` is the cosine similarity of its best chunk with the query, 0 if that is negative, and
    `distance` is 1 minus it. `document` is the whole text, `snippet` its beginning. Status, priority (`none`
    without one) and whether there are attachments are those of the task; `reference` is the id of the
    document found.
    """

    task_id: Annotated[str, Example("auth-1")]
    type: Literal["task", "attachment"]
    attachment_id: Annotated[str | None, Example("login.log")]
    title: StoredTitle
    document: StoredId
    distance: float
    similarity: float
    status: TaskStatus
    priority: Priority | Literal["none"]
    has_attachments: bool
    snippet: StoredText
    reference: Annotated[str, Example("[auth-1]")]
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Tasks for a prompt: `text` has exactly `tokens` tokens and shows `results`; `left_out` did not fit.

    `outcome` says whether anything was found.
    """

    text: StoredText
    tokens: int
    outcome: Outcome
    results: tuple[TaskResult, ...]
    left_out: int = 0
