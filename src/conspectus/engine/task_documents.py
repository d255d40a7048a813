"""The stored form of tasks: a document per task, with a child document per attachment.

The metadata of an attachment repeats the status and priority of its task, so that one filter of the index
selects both.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote

from conspectus.chat.task_lines import snippet
from conspectus.errors import InvalidInput
from conspectus.model.index import passage
from conspectus.model.records import Document, NewDocument
from conspectus.model.results import Hit
from conspectus.model.tasks import (
    ATTACHMENT_ID_LENGTH,
    ID_LENGTH,
    PRIORITIES,
    STATUSES,
    TITLE_LENGTH,
    Attachment,
    Priority,
    StoredAttachment,
    StoredTask,
    Task,
    TaskResult,
    TaskStatus,
)
from conspectus.text.clean import clean

RESERVED_FIELDS = frozenset(
    {"task_id", "attachment_id", "status", "priority", "tags", "has_attachments", "attachments", "length"}
)
"""Metadata fields of tasks; the caller's own fields need other names."""
Word = TypeVar("Word", bound=str)

DECIMAL_PLACES = 6
"""Decimals of rounded similarities: beyond them, equal texts differ by the order of additions."""


def task_key(task_id: str) -> str:
    """Return the key of a task's document: its id, with slashes as %2F."""
    return clean(task_id).replace("%", "%25").replace("/", "%2F")


def attachment_key(task_id: str, attachment_id: str) -> str:
    """Return the key of an attachment's document, which no task has."""
    return f"{task_key(task_id)}/{task_key(attachment_id)}"


def ids_in(key: str) -> tuple[str, str | None]:
    """Return the id of the task in a document's key, and that of the attachment, if it is one's key."""
    task, slash, attachment = key.partition("/")
    return unquote(task), unquote(attachment) if slash else None


def task_document(task: Task, *, attachments: int, if_match: str | None) -> NewDocument:
    """Return the document of a validated task. Its text is the title, description and tags."""
    tags = f"Tags: {', '.join(task.tags)}" if task.tags else ""
    text = "\n\n".join(part for part in (task.description, tags) if part)
    facts = {
        "tags": list(task.tags),
        "has_attachments": attachments > 0,
        "attachments": attachments,
        "length": len(task.description),
    }
    return NewDocument(
        text=text or task.title,
        title=task.title if text else "",
        kind="task",
        key=task_key(task.id),
        metadata={**task.metadata, "task_id": task.id, **_state(task), **facts},
        if_match=if_match,
    )


def attachment_document(attachment: Attachment, task: Task, *, parent: str) -> NewDocument:
    """Return the document of a validated attachment, with the searchable fields of its task."""
    facts = {"task_id": task.id, "attachment_id": attachment.id, "length": len(attachment.text)}
    return NewDocument(
        text=attachment.text or attachment.title,
        title=attachment.title if attachment.text else "",
        kind="task",
        key=attachment_key(task.id, attachment.id),
        metadata={**attachment.metadata, **facts, **_state(task)},
        parent=parent,
    )


def is_stale(attachment: Document, task: Task) -> bool:
    """Return whether the stored attachment has another status or priority than its task."""
    stored = (attachment.metadata.get("status"), attachment.metadata.get("priority"))
    return stored != (task.status, task.priority)


def with_task_state(attachment: Document, text: str, task: Task) -> NewDocument:
    """Return a stored attachment with the state of its task."""
    other_fields = {
        name: content for name, content in attachment.metadata.items() if name not in {"status", "priority"}
    }
    return NewDocument(
        text=text,
        title=attachment.title,
        kind=attachment.kind,
        key=attachment.key,
        metadata={**other_fields, **_state(task)},
        parent=attachment.parent,
        if_match=attachment.fingerprint,
    )


def to_task(stored: Document, text: str) -> StoredTask:
    """Return the task of a document of which `is_task` holds."""
    facts = stored.metadata
    tags = facts.get("tags")
    return StoredTask(
        id=ids_in(stored.key)[0],
        title=stored.title or text,
        description=text[: _length(stored, text)],
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        status=one_of("status", facts["status"], STATUSES),
        priority=_priority(stored),
        metadata={name: content for name, content in facts.items() if name not in RESERVED_FIELDS},
        has_attachments=facts.get("has_attachments") is True,
        document=stored.id,
        fingerprint=stored.fingerprint,
        created=stored.recorded,
        updated=stored.updated,
        origin=stored.origin,
        trust=stored.trust,
    )


def to_attachment(stored: Document, text: str) -> StoredAttachment:
    """Return the attachment of a document of which `is_task` holds and that has a parent."""
    facts = stored.metadata
    attachment_text = text[: _length(stored, text)]
    task_id, attachment_id = ids_in(stored.key)
    return StoredAttachment(
        id=attachment_id or "",
        text=attachment_text,
        title=stored.title if attachment_text else text,
        metadata={name: content for name, content in facts.items() if name not in RESERVED_FIELDS},
        task_id=task_id,
        document=stored.id,
        created=stored.recorded,
        updated=stored.updated,
        origin=stored.origin,
        trust=stored.trust,
    )


def is_task(stored: Document) -> bool:
    """Return whether a document was written by this service.

    Ids are in the key: in the metadata, personal data of an id may be masked.
    """
    if not isinstance(stored.metadata.get("task_id"), str) or stored.kind != "task":
        return False
    if stored.metadata.get("status") not in STATUSES:
        return False
    if stored.metadata.get("priority") not in (None, *PRIORITIES):
        return False
    task_id, attachment_id = ids_in(stored.key)
    if stored.parent is None:
        return stored.key == task_key(task_id)
    return attachment_id is not None and stored.key == attachment_key(task_id, attachment_id)


def to_result(hit: Hit, text: str) -> TaskResult:
    """Return the result of a hit on a task or an attachment with its full text."""
    facts, full_text = hit.document.metadata, passage(hit.document, text)
    task_id, attachment_id = ids_in(hit.document.key)
    similarity = rounded_similarity(hit)
    return TaskResult(
        task_id=task_id,
        type="task" if hit.document.parent is None else "attachment",
        attachment_id=attachment_id,
        title=hit.document.title or text,
        document=full_text,
        distance=round(1.0 - similarity, DECIMAL_PLACES),
        similarity=similarity,
        status=one_of("status", facts["status"], STATUSES),
        priority=_priority(hit.document) or "none",
        has_attachments=hit.document.parent is not None or facts.get("has_attachments") is True,
        snippet=snippet(full_text),
        reference=hit.document.id,
        trust=hit.document.trust,
    )


def rounded_similarity(hit: Hit) -> float:
    """Return the similarity of a hit, from 0 to 1 and rounded, so that equal texts are equally similar."""
    return round(min(1.0, max(0.0, hit.similarity or 0.0)), DECIMAL_PLACES)


def _state(task: Task) -> dict[str, object]:
    return {"status": task.status} | ({} if task.priority is None else {"priority": task.priority})


def _length(stored: Document, text: str) -> int:
    length = stored.metadata.get("length")
    return max(0, length) if isinstance(length, int) else len(text)


def _priority(stored: Document) -> Priority | None:
    priority = stored.metadata.get("priority")
    return None if priority is None else one_of("priority", priority, PRIORITIES)


def check_task(task: Task) -> Task:
    """Return a storable task. Raises InvalidInput."""
    title = _check_text("title", task.title, TITLE_LENGTH)
    if not isinstance(task.tags, list | tuple) or not all(isinstance(tag, str) for tag in task.tags):
        raise InvalidInput("tags", "must be a list of strings")
    tags = tuple(dict.fromkeys(clean(tag).strip() for tag in task.tags))
    if not all(tags):
        raise InvalidInput("tags", "a tag needs a visible character")
    _refuse_reserved(task.metadata)
    return Task(
        id=_check_text("id", task.id, ID_LENGTH),
        title=title,
        description=clean(task.description) if task.description.strip() else "",
        tags=tags,
        status=one_of("status", task.status, STATUSES),
        priority=None if task.priority is None else one_of("priority", task.priority, PRIORITIES),
        metadata=dict(task.metadata),
    )


def check_attachment(attachment: Attachment) -> Attachment:
    """Return a storable attachment; without a text, its title is the text. Raises InvalidInput."""
    title, text = clean(attachment.title), clean(attachment.text)
    if len(title) > TITLE_LENGTH:
        raise InvalidInput("title", f"has more than {TITLE_LENGTH} characters")
    if not (title.strip() or text.strip()):
        raise InvalidInput("text", "an attachment needs a text or a title")
    _refuse_reserved(attachment.metadata)
    name = _check_text("attachment", attachment.id, ATTACHMENT_ID_LENGTH)
    return Attachment(name, text if text.strip() else "", title, dict(attachment.metadata))


def apply_changes(task: Task, changes: Mapping[str, Any]) -> Task:
    """Return the task with some fields changed. Raises InvalidInput."""
    fields = Task.__dataclass_fields__.keys() - {"id"}
    for name in changes:
        if name not in fields:
            raise InvalidInput(name, f"cannot be changed; expected one of {', '.join(sorted(fields))}")
    return check_task(replace(task, **changes))


def parse_status(value: str | None) -> TaskStatus | None:
    """Return a status to filter by. Raises InvalidInput."""
    return None if value is None else one_of("status", value, STATUSES)


def parse_priority(value: str | None) -> Priority | None:
    """Return a priority to filter by. Raises InvalidInput."""
    return None if value is None else one_of("priority", value, PRIORITIES)


def one_of(field: str, value: object, values: tuple[Word, ...]) -> Word:
    """Return the value, if it is one of these. Raises InvalidInput."""
    for word in values:
        if value == word:
            return word
    raise InvalidInput(field, f"must be one of {', '.join(values)}")


def _check_text(field: str, value: object, maximum: int) -> str:
    name = clean(value) if isinstance(value, str) else ""
    if not name.strip() or len(name) > maximum:
        raise InvalidInput(field, f"must have 1 to {maximum} characters, one of them visible")
    return name


def _refuse_reserved(metadata: Mapping[str, object]) -> None:
    if reserved := RESERVED_FIELDS & metadata.keys():
        raise InvalidInput("metadata", f"{min(reserved)!r} is reserved for tasks")
