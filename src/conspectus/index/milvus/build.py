"""Building a generation: every chunk of the records in new collections, while the old ones answer."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from conspectus.index.bm25 import Analyse, occurrences
from conspectus.index.milvus.lock import my_turn
from conspectus.index.milvus.reads import MilvusLocation
from conspectus.index.milvus.rows import NOTES
from conspectus.index.milvus.state import MilvusState, Notes
from conspectus.index.milvus.writes import CHANGES, MilvusWriter
from conspectus.model.index import IndexedChunk
from conspectus.ports import Progress, Reader

_FOLD_FROM = 20_000
_MOST_DRIFT = 1.5
_ENOUGH = 1_000
_MOST_VOID = 200
_USUAL_LENGTH = 50.0


def needs_building(state: MilvusState) -> bool:
    """Whether there is nothing yet, the mean length has moved far from that of the weights, or much failed.

    Questions would have to look ever deeper. It is looked at whenever the index has doubled, so that the
    work is in proportion to what was written.
    """
    if not state.generation or len(state.void) > _MOST_VOID:
        return True
    mean = max(1.0, state.length / max(1, state.total)) / state.average
    return state.total >= 2 * max(state.built, _ENOUGH) and not 1 / _MOST_DRIFT < mean < _MOST_DRIFT


class Building:
    """Builds generations, one at a time among all processes."""

    def __init__(
        self, place: MilvusLocation, notes: Notes, writer: MilvusWriter, *, reader: Reader, analyse: Analyse
    ) -> None:
        self._place = place
        self._notes = notes
        self._writer = writer
        self._reader = reader
        self._analyse = analyse

    async def build(
        self, identity: str, progress: Progress | None, *, only_if_needed: bool = False
    ) -> MilvusState:
        """Build everything anew; with `only_if_needed` not if another process has done so meanwhile."""
        async with my_turn(self._place.turn, "build"):
            before = await self._notes.read()
            if only_if_needed and not needs_building(before):
                return before
            await self._drop_all_but_current()
            lite = await self._place.server.is_lite()
            state = MilvusState(identity, uuid4().hex[:12], facts_as_text=lite)
            state = await self._filled(state, progress)
            async with my_turn(self._place.turn, "write"):
                state = await self._caught_up(state)
                await self._notes.write(state)
                await self._switch(state)
            await self._drop_all_but_current()
        if progress:
            progress("index", state.total, state.total)
        return state

    async def _filled(self, state: MilvusState, progress: Progress | None) -> MilvusState:
        """All chunks of the records, and the sequence from which changes may be missing."""
        state = replace(state, applied=await self._reader.last_sequence())
        draft = None
        async for chunks in self._reader.scan():
            if draft is None:
                state = replace(state, average=_mean_length(chunks, self._analyse))
                await self._writer.create(state)
                draft = self._writer.draft(state)
            await self._writer.write(draft, chunks)
            if len(draft.added) >= _FOLD_FROM:
                draft = self._writer.draft(await self._writer.folded(draft))
            if progress:
                progress("index", draft.before.total + len(draft.added), 0)
        if draft is None:
            state = replace(state, average=_USUAL_LENGTH)
            await self._writer.create(state)
            draft = self._writer.draft(state)
        state = await self._writer.folded(draft)
        return replace(state, built=state.total, replaced=0)

    async def _caught_up(self, state: MilvusState) -> MilvusState:
        """With what changed meanwhile."""
        while changes := await self._reader.changes_since(state.applied, limit=CHANGES):
            draft = self._writer.draft(state)
            await self._writer.take_in(draft, changes)
            state = await self._writer.folded(draft)
        await self._writer.flush(state)
        return state

    async def _switch(self, state: MilvusState) -> None:
        """Let the name of the index mean this generation, all of it in one step."""
        name, server = self._place.name, self._place.server
        if name in await server.collections():
            await server.drop(name)
        await server.point(name, self._notes.collection(state.generation))

    async def _drop_all_but_current(self) -> None:
        """Delete the collections of other generations: no one is building, so no one needs them."""
        current = await self._place.server.meaning(self._place.name)
        kept = current.removesuffix(NOTES) if current else None
        start = f"{self._place.name}_"
        for name in await self._place.server.collections():
            if name.startswith(start) and not (kept and name.startswith(kept)):
                await self._place.server.drop(name)


async def forget(place: MilvusLocation) -> None:
    """Delete an index with all its collections, when nobody builds it any more."""
    async with my_turn(place.turn, "build"):
        await place.server.point(place.name, None)
        for name in await place.server.collections():
            if name == place.name or name.startswith(f"{place.name}_"):
                await place.server.drop(name)


def _mean_length(chunks: Sequence[IndexedChunk], analyse: Analyse) -> float:
    """That of the first chunks, with as many usual ones as are missing to a sample worth the name."""
    lengths = [occurrences(chunk, analyse)[1] for chunk in chunks]
    missing = max(0, _ENOUGH - len(lengths)) / 10
    return max(1.0, (sum(lengths) + missing * _USUAL_LENGTH) / (len(lengths) + missing))
