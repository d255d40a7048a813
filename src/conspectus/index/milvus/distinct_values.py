"""The distinct values of metadata paths, each stored once, for filters that compare by order."""

import json
from collections.abc import Iterable, Sequence

from conspectus.index.milvus.filters import Known
from conspectus.index.milvus.row_terms import Value, path_key
from conspectus.index.milvus.state import VERSION_STEP, MilvusState, Note, Notes
from conspectus.model.filter import Field

_KIND = "values"
_VERSIONS_AT_ONCE = 2_000 * VERSION_STEP
_MOST_BYTES = 40_000
Found = dict[int, object]


class Distinct:
    """Reads what is new since it last looked, and remembers what it wrote."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._generation = ""
        self._read: dict[str, tuple[int, Found]] = {}
        self._written: set[int] = set()

    async def known(self, state: MilvusState, fields: Iterable[Field]) -> Known:
        """For each field its distinct values, of removed rows too."""
        self._turn_to(state.generation)
        return {field: list((await self._of(path_key(field), state)).items()) for field in fields}

    async def add(self, generation: str, version: int, values: Iterable[Value], *, part: str) -> None:
        """Store those that this process has not stored yet."""
        self._turn_to(generation)
        fresh: dict[str, list[Value]] = {}
        for value in values:
            if value.fact not in self._written:
                fresh.setdefault(value.path, []).append(value)
                self._written.add(value.fact)
        notes = []
        for path, found in fresh.items():
            for number, body in enumerate(_bodies(found)):
                notes.append(Note(_KIND, generation, version, f"{part}.{path}.{number}", body, path))
        await self._notes.put(generation, notes)

    def forget_written(self) -> None:
        """What was written may not be there."""
        self._written.clear()

    def _turn_to(self, generation: str) -> None:
        if generation != self._generation:
            self._generation = generation
            self._read.clear()
            self._written.clear()

    async def _of(self, path: str, state: MilvusState) -> Found:
        first, held = self._read.get(path, (0, {}))
        found = dict(held)
        for start in range(first, state.version + 1, _VERSIONS_AT_ONCE):
            end = min(start + _VERSIONS_AT_ONCE, state.version + 1)
            where = f'kind == "{_KIND}" and path == "{path}"'
            for row in await self._notes.between(state.generation, where, ["body"], versions=(start, end)):
                found |= {number: json.loads(text) for number, text in json.loads(row["body"])}
        self._read[path] = state.version + 1, found
        return found


def _bodies(values: Sequence[Value]) -> Iterable[str]:
    """The values as texts that fit into a note."""
    piece: list[tuple[int, str]] = []
    size = 0
    for value in values:
        cost = len(json.dumps(value.text)) + 25
        if piece and size + cost > _MOST_BYTES:
            yield json.dumps(piece)
            piece, size = [], 0
        piece.append((value.fact, value.text))
        size += cost
    yield json.dumps(piece)
