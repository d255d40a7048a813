"""Facts of memories, as edges of the graph of their scope."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.memory_reader import MemorySources
from conspectus.engine.context import EngineContext
from conspectus.engine.graph_access import GraphAccess
from conspectus.engine.memory_reads import MemoryReader
from conspectus.engine.service import Service
from conspectus.errors import NotFound, PreconditionFailed, as_field
from conspectus.memory.documents import (
    as_input,
    change_document,
    document_of,
    store_metadata,
    version_of,
)
from conspectus.memory.fact_edges import edge_of_fact, ends_of_fact, same_edge
from conspectus.memory.scopes import graph_name, scope_of
from conspectus.model.graph import Edge, GraphWritten
from conspectus.model.memory import CLOSED_BY, KNOWN_FROM, Memory, MemoryWritten, NewMemory
from conspectus.model.records import Json, Source, Written
from conspectus.text.hashing import edge_id, edge_id_as_spelled
from conspectus.text.times import canonical, parse_instant

COLUMNS_OF_FACT: Final = {
    "subject": "graph_nodes.id",
    "predicate": "graph_edges.type",
    "object": "graph_nodes.id",
}
MemoryChange = Callable[[Memory], Awaitable[Memory]]
"""Computes the new state of a memory from its current one."""


class MemoryFacts(Service, checked=False):
    """Facts of memories as edges of their scope's graph; facts of quarantined memories are left out."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self.graphs = GraphAccess(context)

    async def check(self, source: Source, access: CollectionAccess, memories: Sequence[NewMemory]) -> None:
        """Validate facts, and create the graph if there are any. Attacks are quarantined later, in the write.

        Raises InvalidInput, or PermissionDenied if the user may not write to the graph.
        """
        facts = [memory for memory in memories if memory.fact is not None]
        if not facts:
            return
        now, entries = self._parts.clock(), replace(self.graphs.entries(source, access), origin=None)
        for memory in facts:
            with as_field("fact", was="node"):
                entries.prepare_adding(ends_of_fact(memory), [edge_of_fact(memory, None, now)])
        await self.graphs.get_writable(graph_name(scope_of(source.name)), access.collection.id)

    def screen_memory(self, new: NewMemory, source: Source) -> NewMemory:
        """Return a memory whose fact is masked as the names of the graph will be."""
        if new.fact is None:
            return new
        masked_names = {
            field: self._context.screen_value(
                column, getattr(new.fact, field), source.collection, field="fact"
            )
            for field, column in COLUMNS_OF_FACT.items()
        }
        return replace(new, fact=replace(new.fact, **masked_names))

    async def store_fact(
        self,
        source: Source,
        access: CollectionAccess,
        new: NewMemory,
        written: MemoryWritten,
        before: Memory | None = None,
    ) -> MemoryWritten:
        """Store the fact of a memory in the graph, and end the fact of its former version `before`.

        Returns the written memory with the memories whose facts it ended.
        """
        if written.quarantined is not None:
            return written
        closed: tuple[str, ...] = ()
        if new.fact is not None:
            edge = edge_of_fact(new, written.id, self._parts.clock())
            [written_edge] = await self.graphs.add_facts(
                ends_of_fact(new),
                [edge],
                graph=graph_name(scope_of(source.name)),
                collection=access.collection.id,
            )
            closed = await self.record_endings(access, source, written.id, written_edge)
        if before is not None and before.fact is not None:
            await self._end_former_fact(access, source, before, new)
        return replace(written, closed=closed) if closed else written

    async def record_endings(
        self, access: CollectionAccess, source: Source, memory: str, written: GraphWritten
    ) -> tuple[str, ...]:
        """Record on memories which fact ended which, and when. Returns the memories that this one ended."""
        memory_sources = await self._reader.memory_sources(scope_of(source.name), access.collection.id)
        edges = {edge.id: edge for edge in await self._read_edges(source, [*written.closed, written.id])}
        own_edge = edges.pop(written.id, None)
        others = [edge for edge in edges.values() if edge.evidence not in {None, memory}]
        ended_ids = [
            str(edge.evidence) for edge in others if await self._note_end(memory_sources, source, edge)
        ]
        if ended_ids:
            await self._note_ended_by(memory_sources, memory, *ended_ids)
        if own_edge is None or own_edge.closed_by is None:
            return tuple(ended_ids)
        await self._note_end(memory_sources, source, replace(own_edge, evidence=memory), version=False)
        for edge in await self._read_edges(source, [own_edge.closed_by]):
            if edge.evidence not in {None, memory}:
                await self._note_ended_by(memory_sources, str(edge.evidence), memory, version=True)
        return tuple(ended_ids)

    async def _end_former_fact(
        self, access: CollectionAccess, memory_source: Source, before: Memory, new: NewMemory
    ) -> None:
        """Withdraw the fact that a memory no longer states; what it had ended is valid again."""
        now = self._parts.clock()
        edge = edge_of_fact(as_input(before), before.id, now)
        is_stated = new.fact is not None and same_edge(edge, edge_of_fact(new, before.id, now))
        if is_stated and (new.fact is None or new.fact.single or not edge.single):
            return
        collection, graph = access.collection.id, graph_name(scope_of(memory_source.name))
        graph_source, _ = await self.graphs.get_readable(graph, collection)
        begins = parse_instant(edge.valid_from or now)
        parts = (graph_source.id, edge.source, edge.target, edge.type, begins)
        ids = list(dict.fromkeys([edge_id(*parts), edge_id_as_spelled(*parts)]))
        for stored_edge in await self.graphs.edges_by_id(graph, collection, ids):
            if stored_edge.evidence == before.id:
                ends = None if is_stated else now
                changed = await self.graphs.withdraw_fact(
                    stored_edge.id, ends=ends, graph=graph, collection=collection
                )
                await self._record_new_ends(access, memory_source, before.id, dict(changed))

    async def _record_new_ends(
        self, access: CollectionAccess, source: Source, memory: str, changed: Mapping[str, str | None]
    ) -> None:
        """Record on memories what ends their facts, now that the fact of a memory does not."""
        memory_sources = await self._reader.memory_sources(scope_of(source.name), access.collection.id)
        closing_edges = await self._read_edges(source, [edge for edge in changed.values() if edge])
        closing_memories = {edge.id: edge.evidence for edge in closing_edges}
        reopened: set[str] = set()
        for edge in await self._read_edges(source, list(changed)):
            if edge.evidence in {None, memory} or not await self._note_end(memory_sources, source, edge):
                continue
            reopened.add(str(edge.evidence))
            closing_memory = closing_memories.get(changed[edge.id] or "")
            if closing_memory is not None:
                await self._note_ended_by(memory_sources, closing_memory, str(edge.evidence))
                reopened -= {str(edge.evidence)} if closing_memory == memory else set()

        async def without_reopened(stored: Memory) -> Memory:
            return replace(stored, closes=tuple(ended for ended in stored.closes if ended not in reopened))

        if reopened:
            await self._apply_change(memory_sources, memory, without_reopened, version=False)

    async def _read_edges(self, source: Source, edges: list[str]) -> list[Edge]:
        return await self.graphs.edges_by_id(graph_name(scope_of(source.name)), source.collection, edges)

    async def _note_end(
        self, memory_sources: MemorySources, source: Source, edge: Edge, *, version: bool = True
    ) -> bool:
        """Record on the memory of an edge what ended its fact, and when. Returns whether it exists."""

        async def with_end(memory: Memory) -> Memory:
            for current in await self._read_edges(source, [edge.id]):
                later = await self._read_edges(source, [current.closed_by] if current.closed_by else [])
                closed_by = later[0].evidence if later else None
                return replace(memory, valid_until=current.valid_until, closed_by=closed_by)
            return memory

        return await self._apply_change(memory_sources, str(edge.evidence), with_end, version=version)

    async def _note_ended_by(
        self, memory_sources: MemorySources, memory: str, *ended_ids: str, version: bool = False
    ) -> None:
        """Record on a memory which ones it ended."""

        async def with_ended_ids(before: Memory) -> Memory:
            return replace(before, closes=tuple(dict.fromkeys((*before.closes, *ended_ids))))

        await self._apply_change(memory_sources, memory, with_ended_ids, version=version)

    async def _apply_change(
        self, memory_sources: MemorySources, memory: str, change: MemoryChange, *, version: bool
    ) -> bool:
        """Update a memory, retrying after concurrent changes. Returns whether it exists.

        With `version`, its former state is stored as a version: callers that wrote it just now need none.
        """
        while True:
            stored = await self._reader.stored.documents(memory_sources, [memory])
            memories = await self._reader.memories(memory_sources, stored)
            if not memories:
                return False
            before = memories[0]
            after = await change(before)
            if after == before:
                return True
            try:
                await self._rewrite(memory_sources, before, after, version=version)
            except PreconditionFailed:
                continue
            return True

    async def _rewrite(
        self, memory_sources: MemorySources, before: Memory, after: Memory, *, version: bool
    ) -> None:
        if version:
            await self.revise(memory_sources, before, as_input(after), store_metadata(after))
            return
        source = memory_sources.by_id[before.document.source]
        known_from: dict[str, Json] = {KNOWN_FROM: canonical(before.known_from)}
        document = document_of(
            as_input(after), before.scope, now=self._parts.clock(), beside=store_metadata(after) | known_from
        )
        await self._context.write([replace(document, if_match=before.document.fingerprint)], source)

    async def revise(
        self,
        memory_sources: MemorySources,
        before: Memory,
        new: NewMemory,
        beside: dict[str, Json] | None = None,
    ) -> Written:
        """Replace a memory, and store its former state as a version. Raises PreconditionFailed.

        `beside` takes the place of the metadata that the store sets itself.
        """
        source = memory_sources.by_id[before.document.source]
        self._context.require_editor(memory_sources.access, before.document, "change a memory")
        # If a clock was set back, no version may be older than the one before it.
        now = max(self._parts.clock(), before.known_from + timedelta(microseconds=1))
        metadata = store_metadata(before) if beside is None else dict(beside)
        if new.fact != before.fact:
            metadata.pop(CLOSED_BY, None)
        document = change_document(before, new, now=now, beside=metadata)
        try:
            written = await self._context.write([version_of(before, now=now), document], source)
        except NotFound as fault:
            raise PreconditionFailed("memory", before.id) from fault
        return replace(written[1], outcome="updated" if new.text == before.text else "replaced")
