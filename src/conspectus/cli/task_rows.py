"""Rows of task files in JSON, JSON Lines and CSV."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from conspectus.deferred import dataclass
from conspectus.engine.task_documents import check_task
from conspectus.errors import InvalidInput
from conspectus.model.tasks import Task
from conspectus.text.counts import format_count

FIELDS = frozenset(Task.__dataclass_fields__)
NONE = frozenset({"", "none", "null"})


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of a file: its task, or the error."""

    line: int
    task: Task | None
    problem: str | None = None


def read_tasks(text: str, kind: str) -> Iterator[TaskRow]:
    """Yield the rows of a file of this type: json (a list, or an object with `tasks`), jsonl or csv.

    Raises InvalidInput for another type, and for JSON without such a list.
    """
    if kind not in _READERS:
        raise InvalidInput("format", f"{kind!r} is not {', '.join(_READERS)}")
    for line, row in _READERS[kind](text):
        try:
            if isinstance(row, InvalidInput):
                raise row
            read = TaskRow(line, task_of(row))
        except InvalidInput as fault:
            read = TaskRow(line, None, str(fault))
        yield read


def task_of(row: object) -> Task:
    """Return the task of a row. Tags are a list, or words separated by commas. Raises InvalidInput."""
    if not isinstance(row, Mapping):
        raise InvalidInput("task", "must be an object with an id and a title")
    for name in row:
        if name not in FIELDS:
            raise InvalidInput(
                str(name), f"is not a field of a task; expected one of {', '.join(sorted(FIELDS))}"
            )
    return check_task(
        Task(
            id=_file_text(row, "id"),
            title=_file_text(row, "title"),
            description=_file_text(row, "description"),
            tags=_tags(row.get("tags")),
            status=row.get("status") or "pending",
            priority=None if _is_none(row.get("priority")) else row["priority"],
            metadata=_metadata(row.get("metadata")),
        )
    )


def _csv(text: str) -> Iterator[tuple[int, object]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        line = reader.line_num + 1
        for row in reader:
            if len(row) > len(header):
                yield (
                    line,
                    InvalidInput("row", f"has {format_count(len(row), 'cell')}, the header {len(header)}"),
                )
            elif any(row):
                yield line, {name: cell for name, cell in zip(header, row, strict=False) if cell}
            line = reader.line_num + 1
    except csv.Error as fault:
        raise InvalidInput("file", f"line {reader.line_num}: {fault}") from None


def _jsonl(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _decode(line)


def _decode(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as fault:
        return InvalidInput("row", f"is not JSON: {fault}")


def _json(text: str) -> Iterator[tuple[int, object]]:
    """Yield each member of the list with its line, for error messages."""
    content = _decode(text)
    if isinstance(content, InvalidInput):
        raise InvalidInput("file", content.reason)
    rows = content["tasks"] if isinstance(content, Mapping) and content.keys() == {"tasks"} else content
    if not isinstance(rows, list):
        raise InvalidInput("file", "must be a list of tasks, or an object with `tasks` and nothing else")
    decoder = json.JSONDecoder()
    end = counted = text.index("[") + 1
    line = 1 + text.count("\n", 0, end)
    for row in rows:
        start = next(position for position in range(end, len(text)) if text[position] not in " \t\r\n,")
        line, counted = line + text.count("\n", counted, start), start
        _, end = decoder.raw_decode(text, start)
        yield line, row


_READERS: Mapping[str, Callable[[str], Iterator[tuple[int, object]]]] = MappingProxyType(
    {"json": _json, "jsonl": _jsonl, "csv": _csv}
)


def _file_text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, str) or (name == "id" and isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise InvalidInput(name, "must be a string")


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(tag.strip() for tag in value.split(",") if tag.strip())
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(tag, str) for tag in value):
        return tuple(value)
    raise InvalidInput("tags", "must be a list of strings")


def _metadata(value: object) -> Mapping[str, object]:
    """Return an object, or parse one that is JSON in a cell."""
    values = _decode(value) if isinstance(value, str) and value.strip() else value
    if not values:
        return {}
    if not isinstance(values, Mapping):
        raise InvalidInput("metadata", "must be an object")
    return values


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in NONE)
