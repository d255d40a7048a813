"""What is remembered, carried elsewhere as lines of JSON, and back."""

import json
import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Unpack

from conspectus.errors import InvalidInput
from conspectus.facades.agent.mapping import AgentScope, scope_of
from conspectus.facades.agent.memory_writes import Writing
from conspectus.model.memory import Scope

MEMORIES: Final = "memories.jsonl"
_PICKLED: Final = (b"\x80", b"(d", b"(l", b"c__")
_NO_PICKLE: Final = "is a pickle, which can run programs and is never read; only JSON lines are"


class Carrying(Writing):
    """Files are complete: every memory of the scope with its times, its names and what it was before."""

    async def export(self, **whose: Unpack[AgentScope]) -> list[str]:
        """All memories as lines of JSON."""
        return [each async for each in self._lines(scope_of(self.scope, whose))]

    async def export_to(self, path: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Write all memories into a file, and say how many they are."""
        return await _written(Path(path), self._lines(scope_of(self.scope, whose)))

    async def import_memories(self, given: str | Path | Iterable[str], **whose: Unpack[AgentScope]) -> int:
        """Take in such a file, or such lines, and say how many memories came or changed.

        They become memories of this scope, whosever they were, and a memory that is there already is not
        doubled. Raises InvalidInput for a line that cannot be read, and for a pickle.
        """
        scope = scope_of(self.scope, whose)
        lines = await to_thread(_read, Path(given)) if isinstance(given, str | Path) else list(given)
        self.desk.home.written += 1
        done = await self.desk.run(
            lambda engine: engine.memory.import_lines(lines, collection=self.desk.collection, scope=scope)
        )
        return sum(each.outcome != "unchanged" for each in done)

    async def save(self, folder: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Write all memories into a folder, which is made, and say how many they are."""
        place = Path(folder)
        await to_thread(place.mkdir, parents=True, exist_ok=True)
        return await self.export_to(place / MEMORIES, **whose)

    async def load(self, folder: str | Path, **whose: Unpack[AgentScope]) -> int:
        """Take in what `save` wrote, and say how many memories came or changed."""
        return await self.import_memories(Path(folder) / MEMORIES, **whose)

    async def backup(self, folder: str | Path, **whose: Unpack[AgentScope]) -> Path:
        """Save into a new folder below this one, named after the time, and say where that is."""
        place = Path(folder) / f"memory-{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
        await self.save(place, **whose)
        return place

    async def _lines(self, scope: Scope) -> AsyncIterator[str]:
        after: str | None = None
        while True:
            page = await self._export_page(scope, after)
            for line in page[0]:
                yield line
            after = page[1]
            if after is None:
                return

    async def _export_page(self, scope: Scope, after: str | None) -> tuple[tuple[str, ...], str | None]:
        page = await self.desk.run(
            lambda engine: engine.memory.export(scope=scope, collection=self.desk.collection, after=after)
        )
        return page.lines, page.next


def read_json(path: Path) -> object:
    """What a file of JSON holds. Raises InvalidInput, for a pickle too."""
    data = _bytes(path)
    try:
        return json.loads(data)
    except ValueError as fault:
        raise InvalidInput("path", f"{path.name} is no JSON: {fault}") from fault


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


async def _written(path: Path, lines: AsyncIterator[str]) -> int:
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            async for line in lines:
                file.write(line + "\n")
                count += 1
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return count


def _read(path: Path) -> list[str]:
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise InvalidInput("path", f"{path.name} is no text in UTF-8") from fault
    return [line for line in text.split("\n") if line.strip()]


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise InvalidInput("path", f"{path} cannot be read: {fault.strerror}") from fault
    if data.startswith(_PICKLED) or path.suffix in {".pkl", ".pickle"}:
        raise InvalidInput("path", f"{path.name} {_NO_PICKLE}")
    return data
