"""Read memories from JSON Lines. Errors name the line."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from conspectus.errors import ConspectusError, InvalidInput, TooLarge
from conspectus.memory.jsonl import Line, MemoryVersionLine, Reference, read_line
from conspectus.memory.scopes import check_scope
from conspectus.model.memory import Scope

NAMED: Final = re.compile(r"line (\d+)")


def renumber(fault: InvalidInput, number_of: Callable[[int], int]) -> None:
    """Replace the line number in an error with its number in the whole input."""
    if match := NAMED.fullmatch(fault.field):
        fault.field = f"line {number_of(int(match[1]))}"
        fault.args = (f"{fault.field}: {fault.reason}",)


MARK = "\ufeff"
"""The byte order mark that some programs write at the start of a file."""


class LineReader:
    """Reads lines, optionally into another scope. `check` raises for lines that cannot be stored.

    The user of the given scope replaces the user of every line. Its agent and conversation replace those of
    the line if they are set.
    """

    def __init__(self, into: Scope | None, *, longest: int, check: Callable[[Line], None]) -> None:
        self._into = None if into is None else check_scope(into)
        self._longest = longest
        self._check = check
        self._meant: dict[tuple[Scope, str], tuple[Scope, int]] = {}

    def batches(self, lines: Iterable[str], *, maximum: int, characters: int) -> Iterator[list[Line]]:
        """Parse lines in batches without duplicate memories. Raises InvalidInput or TooLarge."""
        batch: dict[tuple[Scope, str], Line] = {}
        size = 0
        for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
            line = self._read(number, text)
            if line is None:
                continue
            name = (line.scope, line.key)
            if batch and (name in batch or len(batch) == maximum or size + len(text) > characters):
                yield list(batch.values())
                batch, size = {}, 0
            batch[name] = line
            size += len(text)
        if batch:
            yield list(batch.values())

    def _read(self, number: int, text: str) -> Line | None:
        if isinstance(text, str):
            text = text.removeprefix(MARK).strip() if number == 1 else text.strip()
            if not text:
                return None
            if len(text) > self._longest:
                raise TooLarge(f"line {number}", size=len(text), limit=self._longest, unit="characters")
        try:
            read = read_line(text)
            line = read if self._into is None else move_line(read, self._into)
            self._check(line)
        except ConspectusError as fault:
            raise InvalidInput(f"line {number}", str(fault)) from fault
        meant, first = self._meant.setdefault((line.scope, line.key), (read.scope, number))
        if meant != read.scope:
            raise InvalidInput(f"line {number}", f"has the key of line {first}, which has another scope")
        return line


def move_line(line: Line, into: Scope) -> Line:
    """Move the line of a memory, with all its references, to another scope."""

    def there(scope: Scope) -> Scope:
        return Scope(into.user, into.agent or scope.agent, into.conversation or scope.conversation)

    def move_reference(reference: Reference) -> Reference:
        return replace(reference, scope=there(reference.scope))

    def state(version: MemoryVersionLine) -> MemoryVersionLine:
        return replace(
            version,
            closed_by=None if version.closed_by is None else move_reference(version.closed_by),
            closes=tuple(map(move_reference, version.closes)),
            near=tuple(map(move_reference, version.near)),
        )

    return replace(line, scope=there(line.scope), states=tuple(map(state, line.states)))
