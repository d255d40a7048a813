"""Lines of an export as they come in: each checked, told by its number, and in batches to be written."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from conspectus.errors import ConspectusError, InvalidInput, TooLarge
from conspectus.memory.jsonl import Line, MemoryVersionLine, Reference, read_line
from conspectus.memory.scopes import checked
from conspectus.model.memory import Scope

NAMED: Final = re.compile(r"line (\d+)")


def renumber(fault: InvalidInput, number_of: Callable[[int], int]) -> None:
    """Let a fault name the line whose number in the whole belongs to the one that it names."""
    if found := NAMED.fullmatch(fault.field):
        fault.field = f"line {number_of(int(found[1]))}"
        fault.args = (f"{fault.field}: {fault.reason}",)


MARK = "\ufeff"
"""What some programs write before the first line of a file."""


class LineReader:
    """Reads lines, for another scope if one is given; `check` raises for what cannot be stored.

    Of the scope that is given, the user takes the place of every line's user; an agent or a conversation
    does so where it is named.
    """

    def __init__(self, into: Scope | None, *, longest: int, check: Callable[[Line], None]) -> None:
        self._into = None if into is None else checked(into)
        self._longest = longest
        self._check = check
        self._meant: dict[tuple[Scope, str], tuple[Scope, int]] = {}

    def batches(self, lines: Iterable[str], *, most: int, characters: int) -> Iterator[list[Line]]:
        """What stands on the lines, in batches that name no memory twice. Raises InvalidInput or TooLarge."""
        batch: dict[tuple[Scope, str], Line] = {}
        size = 0
        for number, text in enumerate(lines.split("\n") if isinstance(lines, str) else lines, 1):
            line = self._read(number, text)
            if line is None:
                continue
            name = (line.scope, line.key)
            if batch and (name in batch or len(batch) == most or size + len(text) > characters):
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
            line = read if self._into is None else moved(read, self._into)
            self._check(line)
        except ConspectusError as fault:
            raise InvalidInput(f"line {number}", str(fault)) from fault
        meant, first = self._meant.setdefault((line.scope, line.key), (read.scope, number))
        if meant != read.scope:
            raise InvalidInput(f"line {number}", f"would have the key of line {first}, of another scope")
        return line


def moved(line: Line, into: Scope) -> Line:
    """A line of a memory in another scope, with all that it refers to."""

    def there(scope: Scope) -> Scope:
        return Scope(into.user, into.agent or scope.agent, into.conversation or scope.conversation)

    def referred(reference: Reference) -> Reference:
        return replace(reference, scope=there(reference.scope))

    def state(each: MemoryVersionLine) -> MemoryVersionLine:
        return replace(
            each,
            closed_by=None if each.closed_by is None else referred(each.closed_by),
            closes=tuple(map(referred, each.closes)),
            near=tuple(map(referred, each.near)),
        )

    return replace(line, scope=there(line.scope), states=tuple(map(state, line.states)))
