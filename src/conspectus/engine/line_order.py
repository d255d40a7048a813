"""Sorting of lines of an export, so that each document comes after its parent."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from conspectus.errors import InvalidInput

BYTE_ORDER_MARK: Final = "\ufeff"
"""The byte order mark that some programs write at the start of a file."""
DocumentName = tuple[str, str]
"""The source and the key of a document."""


class NumberedLine(NamedTuple):
    """A line with its number in the file."""

    number: int
    text: str


def parents_first(lines: str | Iterable[str]) -> Iterator[NumberedLine]:
    """Yield numbered lines: those without a parent as they come, then children after their parents.

    Raises InvalidInput.
    """
    children: dict[DocumentName, list[NumberedLine]] = {}
    parents: dict[DocumentName, DocumentName] = {}
    for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
        if not isinstance(text, str):
            raise InvalidInput(f"line {number}", "is not a string")
        line = NumberedLine(number, text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text)
        names = _read_names(text)
        if names is None:
            yield line
        else:
            children.setdefault(names[0], []).append(line)
            parents[names[0]] = names[1]
    yield from _sort_children(children, parents)


def _read_names(text: str) -> tuple[DocumentName, DocumentName] | None:
    """Return the names of a document and of its parent; None without a parent."""
    if '"parent"' not in text:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match content:
        case {"source": str(source), "key": str(key), "parent": str(parent)}:
            return (source, key), (source, parent)
    return None


def _sort_children(
    children: dict[DocumentName, list[NumberedLine]], parents: dict[DocumentName, DocumentName]
) -> Iterator[NumberedLine]:
    """Yield the lines of children in generations; children whose parents form a cycle come last."""
    children_of: dict[DocumentName, list[DocumentName]] = {}
    for child, parent in parents.items():
        children_of.setdefault(parent, []).append(child)
    ready = deque(child for child, parent in parents.items() if parent not in parents)
    while ready:
        child = ready.popleft()
        yield from children.pop(child)
        ready.extend(children_of.get(child, ()))
    for cycle_lines in children.values():
        yield from cycle_lines
