"""Asking the version of the index that is current, whoever wrote it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from conspectus.errors import CollectionGone
from conspectus.index.bm25 import Bm25
from conspectus.index.milvus.connection import MilvusServer
from conspectus.index.milvus.distinct_values import Distinct
from conspectus.index.milvus.filters import EVERY, Compiler, either, ranged
from conspectus.index.milvus.lock import Turn
from conspectus.index.milvus.partitions import within
from conspectus.index.milvus.rows import WORDS
from conspectus.index.milvus.search import MilvusQuery, MilvusSnapshot
from conspectus.index.milvus.state import MilvusState, Notes
from conspectus.index.milvus.term_counts import Terms
from conspectus.model.filter import Filter, matches
from conspectus.model.ids import ChunkId
from conspectus.model.index import IndexedChunk
from conspectus.ports import Candidates, Reader, Vectors

Ask: TypeAlias = Callable[[MilvusQuery], Awaitable[Candidates | None]]


@dataclass(frozen=True, slots=True)
class MilvusLocation:
    """Where an index lies: the connection, its name there, whose turn it is, its vectors' size (0: none)."""

    server: MilvusServer
    name: str
    turn: Turn
    dimensions: int = 0
    bm25: Bm25 = field(default_factory=Bm25)

    def view(self, state: MilvusState) -> MilvusSnapshot:
        """A version of the index, without the statistics of its terms."""
        return MilvusSnapshot(self.server, self.name, state, (), self.bm25)


class MilvusReader:
    """Puts questions to a version; what it reads for them it keeps for the next question."""

    def __init__(self, place: MilvusLocation, notes: Notes, reader: Reader) -> None:
        self._place = place
        self._notes = notes
        self._reader = reader
        self._terms = Terms(notes)
        self._distinct = Distinct(notes)
        self._odd: tuple[MilvusState | None, Sequence[IndexedChunk]] = (None, ())

    async def answer(
        self, state: MilvusState, where: Filter, terms: Sequence[str], *, vector: Vectors | None, ask: Ask
    ) -> Candidates | None:
        """What a version answers; None if it is no longer the current one."""
        view, still = self._place.view(state), partial(self.still, state)
        if not state.generation:
            answer = MilvusQuery(view, EVERY, terms, None, still=still).candidates({}, {})
            return answer if await still() else None
        try:
            expression = await self._expression(state, where)
            blocks = await self._terms.blocks(state)
            if expression is None or blocks is None:
                return None
            return await ask(MilvusQuery(view.with_blocks(blocks), expression, terms, vector, still=still))
        except CollectionGone:
            return None

    async def still(self, state: MilvusState) -> bool:
        """Whether the rows of this state are those to be seen now."""
        return (await self._notes.read()).same_rows(state)

    async def _expression(self, state: MilvusState, where: Filter) -> str | None:
        """Which rows may be seen: those of the version that satisfy the filter."""
        visible = await self._notes.visible(state)
        if visible is None:
            return None
        known = await self._distinct.known(state, ranged(where))
        condition = Compiler(known, state.facts_as_text).compiled(where)
        if state.odd:
            odd = [c.chunk.id for c in await self._odd_chunks(state, visible) if matches(where, c.row())]
            condition = f"(odd == false and ({condition})) or (odd == true and {either(odd)})"
        parts = [within(where), visible, None if condition == EVERY else f"({condition})"]
        return " and ".join(part for part in parts if part)

    async def _odd_chunks(self, state: MilvusState, visible: str) -> Sequence[IndexedChunk]:
        """The chunks of which Milvus cannot hold all that filters may ask."""
        held, found = self._odd
        if held is None or not held.same_rows(state):
            name = self._place.view(state).collection(WORDS)
            rows = await self._place.server.every(
                name, f"{visible} and odd == true", ["chunk"], along="chunk", span=(0, state.last + 1)
            )
            numbers = [ChunkId(row["chunk"]) for row in rows]
            found = [chunk for number in numbers for chunk in await self._reader.chunks(number, number)]
            self._odd = state, found
        return found
