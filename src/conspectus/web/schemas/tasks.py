"""Tasks, their attachments, and what is found of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from conspectus.model.tasks import ID_LENGTH, TITLE_LENGTH, Attachment, Priority, Task, TaskResult, TaskStatus
from conspectus.web.schemas.base import (
    NAME,
    JsonObject,
    Name,
    RequestModel,
    Share,
    Text,
)

MAX_TASKS = 10_000
MAX_TAGS = 1_000
Title = Annotated[str, Field(min_length=1, max_length=TITLE_LENGTH, examples=["Fix login"])]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=NAME)]], Field(max_length=MAX_TAGS)]


class TaskFields(RequestModel):
    """Changes of a task. Metadata are replaced as a whole."""

    description: Text = ""
    tags: Tags = Field(default=[])
    status: TaskStatus = "pending"
    priority: Priority | None = None
    metadata: JsonObject = Field(default={})

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the face takes them."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(each) if name == "tags" else each for name, each in fields.items()}


class TaskBody(TaskFields):
    """A task to store under the id in the path."""

    title: Title


class IdentifiedTaskBody(TaskBody):
    """A task to store under its id."""

    id: str = Field(min_length=1, max_length=ID_LENGTH, examples=["auth-1"])

    def task(self) -> Task:
        """The task as the face takes it."""
        return Task(**self.given())


class TaskChange(TaskFields):
    """The fields of a task to change; those that are not named stay."""

    title: Title = ""


class TasksBody(RequestModel):
    """Tasks to store, in order; of two with one id, the last stays."""

    tasks: list[IdentifiedTaskBody] = Field(max_length=MAX_TASKS)


class AttachmentBody(RequestModel):
    """An attachment to store: a text, a title, or both."""

    text: Text = Field("", examples=["The log of the failed login."])
    title: str = Field("", max_length=TITLE_LENGTH)
    metadata: JsonObject = Field(default={})

    def attachment(self, name: str) -> Attachment:
        """The attachment as the face takes it."""
        return Attachment(name, self.text, self.title, self.metadata)


class SemanticSearchQuery(RequestModel):
    """The parameters of a vector search."""

    model_config = ConfigDict(strict=False)

    q: str = Field(min_length=1, max_length=500, description="What to look for.", examples=["login issues"])
    status: TaskStatus | None = None
    priority: Priority | None = None
    n: int = Field(5, ge=1, le=20, description="Most results.")
    min_similarity: Share = Field(0.0, description="Leave out what is less similar than this.")
    collection: Name = "tasks"


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """The filters that were asked for."""

    status: TaskStatus | None
    priority: Priority | None


@dataclass(frozen=True, slots=True)
class SemanticSearch:
    """Results, the most similar first; `total` is their number."""

    results: Sequence[TaskResult]
    total: int
    query: str
    filters: SearchFilters


class TaskContextBody(RequestModel):
    """A context of the nearest tasks; `max_tokens` counts o200k_base, null means no limit."""

    query: str = Field(min_length=1, max_length=10_000, examples=["What is to do about the login?"])
    n_results: int = Field(3, ge=1, le=10)
    include_metadata: bool = True
    max_tokens: int | None = Field(1_500, ge=100, le=5_000)
    min_similarity: Share = 0.0
    collection: Name = "tasks"
