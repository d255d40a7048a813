"""Bodies of tasks, attachments and their searches."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from conspectus.deferred import dataclass
from conspectus.engine.tasks import TaskService
from conspectus.model.tasks import Attachment, Priority, Task, TaskResult, TaskStatus
from conspectus.model.trust import MinTrust
from conspectus.operations.declared import declared
from conspectus.web.schemas.base import JsonObject, Name, RequestModel

MAX_TASKS = 10_000


class TaskFields(RequestModel):
    """Changes of a task. Metadata are replaced as a whole."""

    description: Annotated[str, declared(Task, "description")] = ""
    tags: Annotated[list[Name], declared(Task, "tags")] = []
    status: Annotated[TaskStatus, declared(Task, "status")] = "pending"
    priority: Annotated[Priority | None, declared(Task, "priority")] = None
    metadata: Annotated[JsonObject, declared(Task, "metadata")] = {}

    def named_fields(self) -> dict[str, Any]:
        """Return the fields that the client named, as the engine takes them."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: tuple(content) if name == "tags" else content for name, content in fields.items()}


class TaskBody(TaskFields):
    """A task to store under the id in the path."""

    title: Annotated[str, declared(Task, "title")]


class IdentifiedTaskBody(TaskBody):
    """A task to store under its id."""

    id: Annotated[str, declared(Task, "id")]

    def task(self) -> Task:
        """Return the task as the engine takes it."""
        return Task(**self.named_fields())


class TaskChange(TaskFields):
    """The fields of a task to change; those that are not named stay."""

    title: Annotated[str, declared(Task, "title")] = ""


class TasksBody(RequestModel):
    """Tasks to store, in order; of two with one id, the last stays."""

    tasks: list[IdentifiedTaskBody] = Field(max_length=MAX_TASKS)


class AttachmentBody(RequestModel):
    """An attachment to store: a text, a title, or both."""

    text: Annotated[str, declared(Attachment, "text")] = ""
    title: Annotated[str, declared(Attachment, "title")] = ""
    metadata: Annotated[JsonObject, declared(Attachment, "metadata")] = {}

    def attachment(self, name: str) -> Attachment:
        """Return the attachment as the engine takes it."""
        return Attachment(name, self.text, self.title, self.metadata)


class SemanticSearchQuery(RequestModel):
    """The parameters of a vector search."""

    model_config = ConfigDict(strict=False)

    q: str = Field(min_length=1, max_length=500, description="What to look for.", examples=["login issues"])
    status: TaskStatus | None = None
    priority: Priority | None = None
    n: int = Field(5, ge=1, le=20, description="Most results.")
    min_similarity: Annotated[float, declared(TaskService.search, "min_similarity")] = 0.0
    min_trust: MinTrust | None = Field(None, description="Lowest trust level of a result.")
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
    min_similarity: Annotated[float, declared(TaskService.search, "min_similarity")] = 0.0
    min_trust: MinTrust | None = None
    collection: Name = "tasks"
