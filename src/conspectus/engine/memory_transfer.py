"""Memories as lines of JSON: given out with all their history, and taken in again."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_facts import MemoryFacts
from conspectus.engine.memory_reads import MemoryReader, in_homes
from conspectus.engine.memory_writes import MemoryWriter
from conspectus.errors import Changed, InvalidInput
from conspectus.ingest.pipeline import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.prepare import describe
from conspectus.memory.import_plan import current_of, edge_of, ends_of, is_newest, merged, taken_in
from conspectus.memory.jsonl import Line, LineReader, Reference, line_of
from conspectus.memory.scopes import beyond, graph_name, home_name, scope_of
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.memory import Memory, MemoryExport, MemoryWritten, Scope
from conspectus.model.records import Source
from conspectus.ports import Progress
from conspectus.text.hashing import stable_id

NOWHERE = Source(SourceId(""), CollectionId(""), "")
"""What a memory is checked against before there is a place for it."""
Stored = Mapping[str, Sequence[Memory]]


class MemoryTransfer:
    """Memories as lines of JSON, with all their history."""

    def __init__(
        self, context: EngineContext, reader: MemoryReader, facts: MemoryFacts, batches: MemoryWriter
    ) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._sight = context.sight
        self._reader = reader
        self._facts = facts
        self._batches = batches

    async def export(
        self, scope: Scope, collection: str, *, after: str | None, limit: int | None
    ) -> MemoryExport:
        """A page of a scope's memories as lines of JSON. Raises InvalidInput for a limit."""
        most = self._parts.settings.max_export_lines
        if limit is not None and not 1 <= limit <= most:
            raise InvalidInput("limit", f"must be from 1 to {most}")
        homes = await self._reader.homes(scope, collection)
        rows, cursor = await homes.page(EVERYTHING, after=after, limit=limit or most)
        found = await homes.histories([document for document, _ in rows])
        histories = [[in_homes(homes, *each) for each in history] for history in found]
        known = await self._referred(homes, histories)
        lines = await asyncio.to_thread(lambda: tuple(line_of(each, known) for each in histories))
        return MemoryExport(lines, cursor)

    async def take_in(
        self, lines: str | Iterable[str], collection: str, *, scope: Scope | None, progress: Progress | None
    ) -> list[MemoryWritten]:
        """Store the memories of lines of an export. Raises InvalidInput or TooLarge."""
        require_scope(self._person, "write", "write")
        reader = LineReader(scope, longest=self._parts.settings.max_request_bytes, check=self._check_line)
        homes: dict[Scope, Source] = {}
        done: list[MemoryWritten] = []
        for batch in reader.batches(lines, most=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS):
            for each in dict.fromkeys(line.scope for line in batch if line.scope not in homes):
                homes[each], _ = await self._batches.home(each, collection)
            place = await self._sight.place_of(homes[batch[0].scope].collection)
            for each in {line.scope for line in batch}:
                place.require("editor", "take in memories", source=homes[each].id)
            done += await self._write_batch(batch, place, homes)
            await self._context.embed(place.collection, wait=False)
            if progress is not None:
                progress("importing", len(done), 0)
        return done

    def _check_line(self, line: Line) -> None:
        """Raise InvalidInput or TooLarge for what cannot be stored."""
        by = self._context.preparation(NOWHERE)
        for step in merged((), line):
            describe(current_of(step, line.scope, {}, first=False), by)

    async def _referred(
        self, homes: MemorySources, histories: Sequence[Sequence[Memory]]
    ) -> dict[str, Reference]:
        """The other memories that these name, as far as they are there, by their ids."""
        named = {
            name
            for history in histories
            for each in history
            for name in (*each.closes, *each.near, *filter(None, [each.closed_by]))
        }
        found = await self._reader.stored.documents(homes, sorted(named))
        return {str(each.id): Reference(scope_of(homes.by_id[each.source].name), each.key) for each in found}

    async def _write_batch(
        self, batch: Sequence[Line], place: SourceRef, homes: Mapping[Scope, Source]
    ) -> list[MemoryWritten]:
        ids = {Reference(line.scope, line.key): _id(homes[line.scope], line.key) for line in batch}
        ids |= await self._ids_elsewhere(batch, place, ids)
        while True:
            stored = await self._histories_of(batch, place, ids)
            try:
                done = await self._write_lines(batch, homes, ids, stored)
            except Changed:
                continue
            await self._core.shelves.keep_up(place.collection.id)
            told = [
                line
                for line in batch
                if is_newest(line, stored.get(ids[Reference(line.scope, line.key)], ()))
            ]
            await self._state_facts(told, place, homes, ids)
            return done

    async def _ids_elsewhere(
        self, batch: Sequence[Line], place: SourceRef, ids: Mapping[Reference, str]
    ) -> dict[Reference, str]:
        """The ids of memories that are named on these lines but stand on others, if they can be known."""
        named = {
            each
            for line in batch
            for state in line.states
            for each in (*state.closes, *state.near, *filter(None, [state.closed_by]))
            if each not in ids
        }
        found: dict[Reference, str] = {}
        for scope in {each.scope for each in named}:
            home = await self._sight.source(place, home_name(scope))
            source = stable_id("source", place.collection.id, home_name(scope)) if home is None else home.id
            found |= {each: stable_id("document", source, each.key) for each in named if each.scope == scope}
        return found

    async def _histories_of(
        self, batch: Sequence[Line], place: SourceRef, ids: Mapping[Reference, str]
    ) -> Stored:
        """What is stored of the memories of these lines, by their ids."""
        names = {home_name(line.scope) for line in batch}
        homes = await self._reader.stored.homes(
            place, begins=min(names), below=beyond(max(names)), holds=lambda source: source.name in names
        )
        wanted = [ids[Reference(line.scope, line.key)] for line in batch]
        found: dict[str, Sequence[Memory]] = {}
        for history in await homes.histories(await self._reader.stored.documents(homes, wanted)):
            memories = [in_homes(homes, *each) for each in history]
            found[memories[-1].id] = memories
        return found

    async def _write_lines(
        self,
        batch: Sequence[Line],
        homes: Mapping[Scope, Source],
        ids: Mapping[Reference, str],
        stored: Stored,
    ) -> list[MemoryWritten]:
        """Write what is not stored yet, all of it in one transaction. Raises Changed."""
        preparations = {line.scope: self._context.preparation(homes[line.scope]) for line in batch}
        ready, done = await asyncio.to_thread(taken_in, batch, stored, ids, preparations)
        if ready:
            await self._core.records.write(ready)
        return done

    async def _state_facts(
        self,
        batch: Sequence[Line],
        place: SourceRef,
        homes: Mapping[Scope, Source],
        ids: Mapping[Reference, str],
    ) -> None:
        """See to it that the facts of these lines stand in the graphs of their scopes."""
        facts: dict[Scope, list[Line]] = {}
        for line in batch:
            if line.states[-1].new.fact is not None:
                facts.setdefault(line.scope, []).append(line)
        for scope, stating in facts.items():
            where = {"graph": graph_name(scope), "collection": place.collection.id}
            ends = {node.id: node for line in stating for node in ends_of(line)}
            edges = [edge_of(line, ids[Reference(scope, line.key)]) for line in stating]
            stated = await self._facts.add(ends.values(), edges, **where)
            for edge, written in zip(edges, stated, strict=True):
                await self._facts.explain(place, homes[scope], str(edge.evidence), written)


def _id(home: Source, key: str) -> str:
    return stable_id("document", home.id, key)
