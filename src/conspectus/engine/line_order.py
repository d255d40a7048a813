"""The order of lines in which each document comes after its parent."""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from conspectus.errors import InvalidInput

MARK: Final = "\ufeff"
"""The byte order mark that some programs write at the start of a file."""
Name = tuple[str, str]
"""The source and the key of a document."""


class NumberedLine(NamedTuple):
    """A line with its number in the file."""

    number: int
    text: str


def parents_first(lines: str | Iterable[str]) -> Iterator[NumberedLine]:
    """Yield numbered lines: those without a parent as they come, then children after their parents.

    Raises InvalidInput.
    """
    children: dict[Name, list[NumberedLine]] = {}
    parents: dict[Name, Name] = {}
    for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
        if not isinstance(text, str):
            raise InvalidInput(f"line {number}", "is not a string")
        line = NumberedLine(number, text.removeprefix(MARK) if number == 1 else text)
        names = _read_names(text)
        if names is None:
            yield line
        else:
            children.setdefault(names[0], []).append(line)
            parents[names[0]] = names[1]
    yield from _sort_children(children, parents)


def _read_names(text: str) -> tuple[Name, Name] | None:
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
    children: dict[Name, list[NumberedLine]], parents: dict[Name, Name]
) -> Iterator[NumberedLine]:
    """Yield children whose parents are no children, then theirs; at last those that form a ring."""
    children_of: dict[Name, list[Name]] = {}
    for child, parent in parents.items():
        children_of.setdefault(parent, []).append(child)
    ready = deque(child for child, parent in parents.items() if parent not in parents)
    while ready:
        child = ready.popleft()
        yield from children.pop(child)
        ready.extend(children_of.get(child, ()))
    for ring in children.values():
        yield from ring
