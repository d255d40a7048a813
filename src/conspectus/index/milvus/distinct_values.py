"""Distinct values of the fields of the Milvus index, for comparisons of ranges."""

import json
from collections.abc import Iterable, Sequence

from conspectus.index.milvus.facts import Value, path_key
from conspectus.index.milvus.filter_expressions import FieldValues
from conspectus.index.milvus.state import VERSION_STEP, MilvusState, Note, Notes
from conspectus.model.filter import Field

_VALUES = "values"
_VERSIONS_AT_ONCE = 2_000 * VERSION_STEP
_MAX_NOTE_BYTES = 40_000
ValuesByFact = dict[int, object]


class DistinctValues:
    """Caches the distinct values of fields, and remembers which ones it has written."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._generation = ""
        self._cached: dict[str, tuple[int, ValuesByFact]] = {}
        self._written: set[int] = set()

    async def read(self, state: MilvusState, fields: Iterable[Field]) -> FieldValues:
        """Return the distinct values of each field, including those of removed rows."""
        self._clear_for_generation(state.generation)
        return {field: list((await self._read_values(path_key(field), state)).items()) for field in fields}

    async def add(self, generation: str, version: int, values: Iterable[Value], *, part: str) -> None:
        """Store the values that this process has not stored yet."""
        self._clear_for_generation(generation)
        fresh: dict[str, list[Value]] = {}
        for value in values:
            if value.fact not in self._written:
                fresh.setdefault(value.path, []).append(value)
                self._written.add(value.fact)
        notes = []
        for path, new_values in fresh.items():
            for number, body in enumerate(_bodies(new_values)):
                notes.append(Note(_VALUES, generation, version, f"{part}.{path}.{number}", body, path))
        await self._notes.put(generation, notes)

    def forget_written(self) -> None:
        """Forget which values were written, because they may be lost."""
        self._written.clear()

    def _clear_for_generation(self, generation: str) -> None:
        """Clear the cache if it belongs to another generation."""
        if generation != self._generation:
            self._generation = generation
            self._cached.clear()
            self._written.clear()

    async def _read_values(self, path: str, state: MilvusState) -> ValuesByFact:
        first, cached = self._cached.get(path, (0, {}))
        values = dict(cached)
        for start in range(first, state.version + 1, _VERSIONS_AT_ONCE):
            end = min(start + _VERSIONS_AT_ONCE, state.version + 1)
            where = f'kind == "{_VALUES}" and path == "{path}"'
            for row in await self._notes.read_between(
                state.generation, where, ["body"], versions=(start, end)
            ):
                values |= {number: json.loads(text) for number, text in json.loads(row["body"])}
        self._cached[path] = state.version + 1, values
        return values


def _bodies(values: Sequence[Value]) -> Iterable[str]:
    """Encode the values as texts that each fit into a note."""
    piece: list[tuple[int, str]] = []
    size = 0
    for value in values:
        cost = len(json.dumps(value.text)) + 25
        if piece and size + cost > _MAX_NOTE_BYTES:
            yield json.dumps(piece)
            piece, size = [], 0
        piece.append((value.fact, value.text))
        size += cost
    yield json.dumps(piece)
