"""Writing memories: new versions, near duplicates, and facts as edges of the graph."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import require_scope
from conspectus.access.reader import CollectionAccess
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.graph_access import GraphAccess
from conspectus.engine.memory_reads import MemoryReader
from conspectus.errors import InvalidInput, NotFound, PreconditionFailed, TooLarge, as_field
from conspectus.ingest.batch_writes import Complete
from conspectus.ingest.document_fields import period
from conspectus.ingest.open_indexes import When
from conspectus.memory.documents import (
    A_MOMENT,
    as_input,
    document_of,
    memory_of,
    remade,
    store_metadata,
    version_of,
)
from conspectus.memory.fact_edges import as_ended, edge_of_fact, ends_of_fact, same_edge
from conspectus.memory.near_duplicates import NearDuplicates, least_score
from conspectus.memory.scopes import graph_name, scope_of, source_name
from conspectus.model.filter import And, Eq
from conspectus.model.graph import Edge, GraphWritten
from conspectus.model.ids import ChunkId
from conspectus.model.memory import CLOSED_BY, KNOWN_FROM, NEAR, Memory, MemoryWritten, NewMemory, Scope
from conspectus.model.quarantine import as_given
from conspectus.model.records import Json, Source, Written
from conspectus.ports import Probe
from conspectus.text.clean import clean
from conspectus.text.hashing import edge_id, edge_id_as_spelled
from conspectus.text.times import canonical, parse_instant

COLUMNS_OF_FACT: Final = {
    "subject": "graph_nodes.id",
    "predicate": "graph_edges.type",
    "object": "graph_nodes.id",
}
MAX_SIMILAR_MEMORIES = 5
"""Number of memories sharing words with a new one that are compared with it."""
MAX_COMPARED_BATCH = 50
"""Larger batches are not compared: that would take longer than embedding them."""
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
        document = remade(before, new, now=now, beside=metadata)
        try:
            written = await self._context.write([version_of(before, now=now), document], source)
        except NotFound as fault:
            raise PreconditionFailed("memory", before.id) from fault
        return replace(written[1], outcome="updated" if new.text == before.text else "replaced")


class MemoryWriter(Service, checked=False):
    """Writes batches of memories to the source of their scope."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self.facts = MemoryFacts(context)

    async def can_store(self, source: Source, access: CollectionAccess, new: NewMemory) -> bool:
        """Return whether a memory with its fact can be stored; the graph of its scope is created."""
        try:
            await self.facts.check(source, access, [new])
            document_of(new, scope_of(source.name), now=self._parts.clock(), beside={})
        except (InvalidInput, TooLarge):
            return False
        return True

    async def source(self, scope: Scope, collection: str) -> tuple[Source, CollectionAccess]:
        """Return the source of exactly this scope; it is created if it is new."""
        access, source = await self._authorized.find_with_source(collection, source_name(scope))
        if access is None:
            require_scope(self._person, "write", "write")
            new_collection = await self._writer.collection(collection)
            await self._context.set_entity_extraction(new_collection.id, enabled=True)
            return await self._writer.writable(source_name(scope), new_collection.id, kind="memory")
        if source is None:
            return await self._writer.writable(source_name(scope), collection, kind="memory")
        require_scope(self._person, "write", "write")
        access.require("editor", "remember", source=source.id)
        return source, access

    async def write(
        self,
        source: Source,
        access: CollectionAccess,
        scope: Scope,
        batch: Sequence[NewMemory],
        *,
        complete: Complete | None = None,
    ) -> list[MemoryWritten]:
        """Write a batch without duplicate keys. With `complete`, memories also get vectors and mentions."""
        batch = [self.facts.screen_memory(new, source) for new in batch]
        stored, quarantined = await self._read_stored(source, access, scope, batch)
        duplicates = await self._find_near_duplicates(source, access, batch, stored)
        now = self._parts.clock()
        documents, numbers = [], []
        outcomes: dict[int, MemoryWritten] = {}
        inputs: dict[int, NewMemory] = {}
        for number, (new, near) in enumerate(zip(batch, duplicates, strict=True)):
            existing = stored.get(new.key or "")
            if existing is not None:
                inputs[number] = replace(new, at=as_input(existing).at if new.at is None else new.at)
                outcomes[number] = await self._update_existing(source, access, inputs[number], existing)
                continue
            beside: dict[str, Json] = {NEAR: list(near)} if near else {}
            if new.key in quarantined:
                beside[KNOWN_FROM] = canonical(max(now, quarantined[new.key].known_from + A_MOMENT))
            inputs[number] = replace(new, at=now + number * A_MOMENT if new.at is None else new.at)
            documents.append(document_of(inputs[number], scope, now=now, beside=beside))
            numbers.append(number)
        index: When = "later" if len(documents) <= MAX_COMPARED_BATCH else "now"
        added: Sequence[Written] = ()
        if documents:
            added = await self._context.write(documents, source, index=index, complete=complete)
        for number, written in zip(numbers, added, strict=True):
            outcomes[number] = MemoryWritten(
                written.id, written.outcome, duplicates[number], quarantined=written.quarantined
            )
        return [
            await self.facts.store_fact(
                source, access, inputs[number], outcomes[number], stored.get(inputs[number].key or "")
            )
            for number in sorted(outcomes)
        ]

    async def _read_stored(
        self, source: Source, access: CollectionAccess, scope: Scope, batch: Sequence[NewMemory]
    ) -> tuple[dict[str, Memory], dict[str, Memory]]:
        """Return the stored memories with the keys of a batch, and quarantined ones without their texts."""
        keys = [new.key for new in batch if new.key is not None]
        if not keys:
            return {}, {}
        memory_sources = await self._reader.memory_sources(scope, access.collection.id)
        documents = await self._reader.read_documents_by_keys(memory_sources, source, keys, quarantined=True)
        readable = [document for document in documents if document.kind != "quarantined"]
        memories = await self._reader.memories(memory_sources, readable)
        quarantined = {
            document.key: memory_of(as_given(document), "", scope)
            for document in documents
            if document.kind == "quarantined"
        }
        return {memory.document.key: memory for memory in memories}, quarantined

    async def _update_existing(
        self, source: Source, access: CollectionAccess, new: NewMemory, stored: Memory
    ) -> MemoryWritten:
        """Store a memory whose key exists as a new version, if it differs.

        If it is deleted meanwhile, it is stored again.
        """
        memory_sources = await self._reader.memory_sources(stored.scope, access.collection.id)
        memories: list[Memory] = [stored]
        while memories:
            stored = memories[0]
            version = as_ended(new, stored)
            if _versioned_fields(version) == _versioned_fields(as_input(stored)):
                return MemoryWritten(stored.id, "unchanged", stored.near)
            try:
                written = await self.facts.revise(memory_sources, stored, version)
            except PreconditionFailed:
                memories = await self._reader.read_by_keys(memory_sources, source, [stored.document.key])
                continue
            return MemoryWritten(written.id, written.outcome, stored.near, quarantined=written.quarantined)
        document = document_of(new, stored.scope, now=self._parts.clock(), beside={})
        written = (await self._context.write([document], source))[0]
        return MemoryWritten(written.id, written.outcome, quarantined=written.quarantined)

    async def _find_near_duplicates(
        self, source: Source, access: CollectionAccess, batch: Sequence[NewMemory], stored: dict[str, Memory]
    ) -> list[tuple[str, ...]]:
        """Return for each new memory its stored near duplicates in the same source."""
        near_duplicates = NearDuplicates(access.collection.language)
        duplicates: list[tuple[str, ...]] = []
        for new in batch:
            is_compared = len(batch) <= MAX_COMPARED_BATCH and new.key not in stored
            terms: frozenset[str] = near_duplicates.terms(new.text) if is_compared else frozenset()
            others = await self._find_similar(source, access, new, len(terms)) if terms else []
            duplicates.append(tuple(near_duplicates.find_near_duplicates(terms, others)))
        return duplicates

    async def _find_similar(
        self, source: Source, access: CollectionAccess, new: NewMemory, terms: int
    ) -> list[tuple[str, str]]:
        """Return ids and texts of the memories in the same source that share the most with a new one."""
        opened = await self._core.open_indexes.current(access.collection)
        where = And((Eq("source", source.id), Eq("kind", "memory")))
        words = new.text[: self._parts.settings.max_query_characters]
        matches = await opened.index.search(
            Probe(access.restrict_filter(where), words, None, MAX_SIMILAR_MEMORIES)
        )
        min_score = least_score(matches, terms)
        chunk_ids = [
            ChunkId(chunk_id)
            for chunk_id, score in zip(matches.ids.tolist(), matches.words.tolist(), strict=True)
            if score >= min_score
        ]
        rows = await self._authorized.rows(access)(chunk_ids) if chunk_ids else ()
        return [(str(row.document.id), row.chunk.text) for row in rows if row.document.chunks == 1]


def split_before_repeated_keys(batch: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Split a batch so that no part repeats a key: a later version has to see the earlier one."""
    run: list[NewMemory] = []
    seen: set[str] = set()
    for new in batch:
        key = None if new.key is None else clean(new.key)
        if key in seen:
            yield run
            run, seen = [], set()
        run.append(new)
        if key is not None:
            seen.add(key)
    if run:
        yield run


def _versioned_fields(new: NewMemory) -> tuple[object, ...]:
    """Return the fields of a memory whose change makes a new version."""
    times = tuple(period(getattr(new, field), field=field) for field in ("at", "valid_from", "valid_until"))
    content = (clean(new.text), new.role, new.speaker, new.kind, new.pinned, new.fact, tuple(new.entities))
    return (*content, *times, dict(new.metadata))
