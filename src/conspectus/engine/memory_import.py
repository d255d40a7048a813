"""The import of memories from JSON Lines, with all versions."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.memory_writes import MemoryWriter
from conspectus.engine.service import Service
from conspectus.errors import PreconditionFailed
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.prepare import describe
from conspectus.memory.import_plan import current_of, edge_of, ends_of, is_newest, merge_states, plan_import
from conspectus.memory.jsonl import Line, Reference
from conspectus.memory.jsonl_reader import LineReader
from conspectus.memory.scopes import end_of_prefix, graph_name, source_name
from conspectus.model.ids import CollectionId, SourceId
from conspectus.model.memory import Memory, MemoryWritten, Scope
from conspectus.model.records import PreparedDocument, Source
from conspectus.ports import Progress
from conspectus.text.hashing import stable_id

UNKNOWN_SOURCE = Source(SourceId(""), CollectionId(""), "")
"""The source of a memory that is checked before its source exists."""
Histories = Mapping[str, Sequence[Memory]]
"""The versions of memories by id, oldest first."""
ImportPlan: TypeAlias = tuple[list[PreparedDocument], list[MemoryWritten]]
"""The documents to write, and the outcome of each line."""


class MemoryImporter(Service, checked=False):
    """Import of memories from JSON Lines, with all versions."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._memories = MemoryWriter(context)
        self._facts = self._memories.facts

    async def import_lines(
        self, lines: str | Iterable[str], collection: str, *, scope: Scope | None, progress: Progress | None
    ) -> list[MemoryWritten]:
        """Store the memories of exported lines. Raises InvalidInput or TooLarge."""
        require_scope(self._person, "write", "write")
        reader = LineReader(scope, longest=self._parts.settings.max_request_bytes, check=self._check_line)
        memory_sources: dict[Scope, Source] = {}
        written: list[MemoryWritten] = []
        for batch in reader.batches(lines, maximum=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS):
            for line_scope in dict.fromkeys(line.scope for line in batch if line.scope not in memory_sources):
                memory_sources[line_scope], _ = await self._memories.source(line_scope, collection)
            batch = [self._screen(line, memory_sources[line.scope]) for line in batch]
            access = await self._authorized.collection(memory_sources[batch[0].scope].collection)
            batch = [line.in_space(access.collection.space) for line in batch]
            for line_scope in {line.scope for line in batch}:
                access.require("editor", "import memories", source=memory_sources[line_scope].id)
            written += await self._write_batch(batch, access, memory_sources)
            await self._context.embed(access.collection, wait=False)
            if progress is not None:
                progress("importing", len(written), 0)
        return written

    def _screen(self, line: Line, source: Source) -> Line:
        states = (replace(state, new=self._facts.screen_memory(state.new, source)) for state in line.states)
        return replace(line, states=tuple(states))

    def _check_line(self, line: Line) -> None:
        """Raise InvalidInput or TooLarge for a memory that cannot be stored."""
        preparation = self._context.preparation(UNKNOWN_SOURCE)
        for step in merge_states((), line):
            describe(current_of(step, line.scope, {}, first=False), preparation)

    async def _write_batch(
        self, batch: Sequence[Line], access: CollectionAccess, memory_sources: Mapping[Scope, Source]
    ) -> list[MemoryWritten]:
        ids = {
            Reference(line.scope, line.key): stable_id("document", memory_sources[line.scope].id, line.key)
            for line in batch
        }
        ids |= await self._read_referenced_ids(batch, access, ids)
        preparations = {line.scope: self._context.preparation(memory_sources[line.scope]) for line in batch}
        while True:
            stored = await self._read_histories(batch, access, ids)
            try:
                documents, memories = await self._make_plan(
                    partial(plan_import, batch, stored, ids, preparations)
                )
                if documents:
                    written = (await self._core.records.write(documents)).written
                    # Memories that were quarantined before are not in `stored`.
                    outcomes = {str(document.id): document.outcome for document in written}
                    memories = [
                        replace(memory, outcome=outcomes[memory.id]) if memory.quarantined else memory
                        for memory in memories
                    ]
            except PreconditionFailed:
                continue
            await self._core.open_indexes.catch_up(access.collection.id)
            quarantined_ids = {memory.id for memory in memories if memory.quarantined is not None}
            current_lines = []
            for line in batch:
                id = ids[Reference(line.scope, line.key)]
                if id not in quarantined_ids and is_newest(line, stored.get(id, ())):
                    current_lines.append(line)
            await self._add_facts(current_lines, access, memory_sources, ids)
            return memories

    async def _make_plan(self, plan: Callable[..., ImportPlan]) -> ImportPlan:
        """Return the plan of an import, made again at the levels of the documents that are stored already."""
        documents, memories = await asyncio.to_thread(plan, {})
        ids = [prepared.document.id for prepared in documents]
        stored = await self._authorized.documents(ids, quarantined=True) if ids else ()
        if not stored:
            return documents, memories
        return await asyncio.to_thread(plan, {document.id: document for document, _ in stored})

    async def _read_referenced_ids(
        self, batch: Sequence[Line], access: CollectionAccess, ids: Mapping[Reference, str]
    ) -> dict[Reference, str]:
        """Return the ids of memories that these lines refer to and that are not in the batch."""
        unknown = {
            reference
            for line in batch
            for state in line.states
            for reference in (*state.closes, *state.near, *filter(None, [state.closed_by]))
            if reference not in ids
        }
        referenced_ids: dict[Reference, str] = {}
        for scope in {reference.scope for reference in unknown}:
            source = await self._authorized.source(access, source_name(scope))
            if source is None:
                source_id = stable_id("source", access.collection.id, source_name(scope))
            else:
                source_id = source.id
            referenced_ids |= {
                reference: stable_id("document", source_id, reference.key)
                for reference in unknown
                if reference.scope == scope
            }
        return referenced_ids

    async def _read_histories(
        self, batch: Sequence[Line], access: CollectionAccess, ids: Mapping[Reference, str]
    ) -> Histories:
        """Return the stored memories of these lines, by id."""
        names = {source_name(line.scope) for line in batch}
        memory_sources = await self._reader.stored.memory_sources(
            access,
            begins=min(names),
            below=end_of_prefix(max(names)),
            holds=lambda source: source.name in names,
        )
        document_ids = [ids[Reference(line.scope, line.key)] for line in batch]
        histories: dict[str, Sequence[Memory]] = {}
        for history in await memory_sources.histories(
            await self._reader.stored.documents(memory_sources, document_ids)
        ):
            memories = [memory_in(memory_sources, *version) for version in history]
            histories[memories[-1].id] = memories
        return histories

    async def _add_facts(
        self,
        batch: Sequence[Line],
        access: CollectionAccess,
        memory_sources: Mapping[Scope, Source],
        ids: Mapping[Reference, str],
    ) -> None:
        """Ensure that the facts of these lines are in the graphs of their scopes."""
        lines_by_scope: dict[Scope, list[Line]] = {}
        for line in batch:
            if line.states[-1].new.fact is not None:
                lines_by_scope.setdefault(line.scope, []).append(line)
        for scope, lines in lines_by_scope.items():
            nodes = {node.id: node for line in lines for node in ends_of(line)}
            edges = [edge_of(line, ids[Reference(scope, line.key)]) for line in lines]
            written_edges = await self._facts.graphs.add_facts(
                nodes.values(), edges, graph=graph_name(scope), collection=access.collection.id
            )
            for edge, written in zip(edges, written_edges, strict=True):
                await self._facts.record_endings(access, memory_sources[scope], str(edge.evidence), written)
