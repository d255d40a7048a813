"""Tasks from files: JSON, JSON Lines and CSV, each with the line that it stands on."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from conspectus.engine.task_documents import checked
from conspectus.errors import InvalidInput
from conspectus.model.tasks import Task

FIELDS = frozenset(Task.__dataclass_fields__)
NONE = frozenset({"", "none", "null"})


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of a file: the task in it, or why there is none."""

    line: int
    task: Task | None
    problem: str | None = None


def read_tasks(text: str, kind: str) -> Iterator[TaskRow]:
    """The rows of a file of this kind: json (a list, or an object with `tasks`), jsonl or csv.

    Raises InvalidInput for another kind, and for JSON that is not such a list.
    """
    if kind not in _READERS:
        raise InvalidInput("format", f"{kind!r} is not {', '.join(_READERS)}")
    for line, row in _READERS[kind](text):
        yield _row(line, row)


def task_of(row: object) -> Task:
    """The task that a row says. Tags may be a list, or words with commas between. Raises InvalidInput."""
    if not isinstance(row, Mapping):
        raise InvalidInput("task", "must be an object with an id and a title")
    for name in row:
        if name not in FIELDS:
            raise InvalidInput(str(name), f"is no field of a task; there are {', '.join(sorted(FIELDS))}")
    return checked(
        Task(
            id=_text(row, "id"),
            title=_text(row, "title"),
            description=_text(row, "description"),
            tags=_tags(row.get("tags")),
            status=row.get("status") or "pending",
            priority=None if _is_none(row.get("priority")) else row["priority"],
            metadata=_metadata(row.get("metadata")),
        )
    )


def _row(line: int, row: object) -> TaskRow:
    try:
        if isinstance(row, InvalidInput):
            raise row
        return TaskRow(line, task_of(row))
    except InvalidInput as fault:
        return TaskRow(line, None, str(fault))


def _csv(text: str) -> Iterator[tuple[int, object]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        line = reader.line_num + 1
        for row in reader:
            yield from ((line, each) for each in _cells(header, row))
            line = reader.line_num + 1
    except csv.Error as fault:
        raise InvalidInput("file", f"line {reader.line_num}: {fault}") from None


def _cells(header: Sequence[str], row: Sequence[str]) -> Iterator[object]:
    """The cells that are filled in by name; nothing for an empty line."""
    if len(row) > len(header):
        yield InvalidInput("row", f"has {len(row)} cells, the header {len(header)}")
    elif any(row):
        yield {name: cell for name, cell in zip(header, row, strict=False) if cell}


def _jsonl(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _decoded(line)


def _decoded(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as fault:
        return InvalidInput("row", f"is not JSON: {fault}")


def _json(text: str) -> Iterator[tuple[int, object]]:
    """Each member of the list with its line, so that a bad one can be found."""
    whole = _decoded(text)
    if isinstance(whole, InvalidInput):
        raise InvalidInput("file", whole.reason)
    rows = whole["tasks"] if isinstance(whole, Mapping) and whole.keys() == {"tasks"} else whole
    if not isinstance(rows, list):
        raise InvalidInput("file", "must be a list of tasks, or an object with `tasks` and nothing else")
    decoder = json.JSONDecoder()
    end = counted = text.index("[") + 1
    line = 1 + text.count("\n", 0, end)
    for row in rows:
        start = next(place for place in range(end, len(text)) if text[place] not in " \t\r\n,")
        line, counted = line + text.count("\n", counted, start), start
        _, end = decoder.raw_decode(text, start)
        yield line, row


_READERS: Mapping[str, Callable[[str], Iterator[tuple[int, object]]]] = MappingProxyType(
    {"json": _json, "jsonl": _jsonl, "csv": _csv}
)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, str) or (name == "id" and isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise InvalidInput(name, "must be text")


def _tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise InvalidInput("tags", "must be a list of words")


def _metadata(value: object) -> Mapping[str, object]:
    """An object, or in a cell one that is written as JSON."""
    told = _decoded(value) if isinstance(value, str) and value.strip() else value
    if not told:
        return {}
    if not isinstance(told, Mapping):
        raise InvalidInput("metadata", "must be an object")
    return told


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in NONE)
