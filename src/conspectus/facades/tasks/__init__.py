"""The storage and search of a task app over the engine."""

from conspectus.facades.tasks.api import Tasks
from conspectus.facades.tasks.mapping import Attachment, Task

__all__ = ["Attachment", "Task", "Tasks"]
