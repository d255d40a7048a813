"""Writing memories: new versions, near duplicates, and facts as edges of the graph."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
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
from conspectus.ingest.open_indexes import When
from conspectus.ingest.prepare import Complete, period
from conspectus.memory.documents import (
    A_MOMENT,
    NearDuplicates,
    as_ended,
    as_input,
    document_of,
    edge_of_fact,
    ends_of_fact,
    least_score,
    memory_of,
    remade,
    same_edge,
    store_metadata,
    version_of,
)
from conspectus.memory.scopes import graph_name, scope_of, source_name
from conspectus.model.filter import And, Eq
from conspectus.model.graph import Edge, GraphWritten
from conspectus.model.ids import ChunkId
from conspectus.model.memory import CLOSED_BY, KNOWN_FROM, NEAR, Memory, MemoryWritten, NewMemory, Scope
from conspectus.model.records import Json, Source, Written
from conspectus.model.reports import as_given
from conspectus.ports import Probe
from conspectus.text.clean import clean
from conspectus.text.hashing import edge_id
from conspectus.text.times import canonical, parse_instant

COLUMNS_OF_FACT: Final = {
    "subject": "graph_nodes.id",
    "predicate": "graph_edges.type",
    "object": "graph_nodes.id",
}
MemoryChange = Callable[[Memory], Awaitable[Memory]]
"""Computes the new state of a memory from its current one."""


class MemoryFacts(Service, checked=False):
    """Facts of memories as edges of their scope's graph; that of a quarantined memory is none."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self.graphs = GraphAccess(context)

    async def check(self, source: Source, access: CollectionAccess, memories: Sequence[NewMemory]) -> None:
        """Validate facts, and create the graph if there are any. One that is an attack is quarantined later.

        Raises InvalidInput, or PermissionDenied if the user may not write to the graph.
        """
        facts = [memory for memory in memories if memory.fact is not None]
        if not facts:
            return
        now, entries = self._parts.clock(), replace(self.graphs.entries(source, access), origin=None)
        for memory in facts:
            with as_field("fact", was="node"):
                entries.adding(ends_of_fact(memory), [edge_of_fact(memory, None, now)])
        await self.graphs.writable(graph_name(scope_of(source.name)), access.collection.id)

    def screened(self, new: NewMemory, source: Source) -> NewMemory:
        """Return a memory whose fact has the masks of the graph that it will be stored in."""
        if new.fact is None:
            return new
        names = {
            field: self._context.screened(column, getattr(new.fact, field), source.collection, field="fact")
            for field, column in COLUMNS_OF_FACT.items()
        }
        return replace(new, fact=replace(new.fact, **names))

    async def stated(
        self,
        source: Source,
        access: CollectionAccess,
        new: NewMemory,
        done: MemoryWritten,
        before: Memory | None = None,
    ) -> MemoryWritten:
        """Store the fact of a memory in the graph, and end its former fact. Returns the memory."""
        closed: tuple[str, ...] = ()
        if done.quarantined is not None:
            return done
        if new.fact is not None:
            edge = edge_of_fact(new, done.id, self._parts.clock())
            where = {"graph": graph_name(scope_of(source.name)), "collection": access.collection.id}
            stated = await self.graphs.add_facts(ends_of_fact(new), [edge], **where)
            closed = await self.explain(access, source, done.id, stated[0])
        if before is not None and before.fact is not None:
            await self._end_former_fact(access, source, before, new)
        return replace(done, closed=closed) if closed else done

    async def explain(
        self, access: CollectionAccess, source: Source, memory: str, written: GraphWritten
    ) -> tuple[str, ...]:
        """Record on memories which fact ended which, and when. Returns the memories that this one ended."""
        memory_sources = await self._reader.memory_sources(scope_of(source.name), access.collection.id)
        met = {edge.id: edge for edge in await self._read_edges(source, [*written.closed, written.id])}
        stated_edge = met.pop(written.id, None)
        others = [edge for edge in met.values() if edge.evidence not in {None, memory}]
        gone = [str(edge.evidence) for edge in others if await self._end(memory_sources, source, edge)]
        if gone:
            await self._close(memory_sources, memory, *gone)
        if stated_edge is None or stated_edge.closed_by is None:
            return tuple(gone)
        await self._end(memory_sources, source, replace(stated_edge, evidence=memory), version=False)
        for edge in await self._read_edges(source, [stated_edge.closed_by]):
            if edge.evidence not in {None, memory}:
                await self._close(memory_sources, str(edge.evidence), memory, version=True)
        return tuple(gone)

    async def _end_former_fact(
        self, access: CollectionAccess, memories_in: Source, before: Memory, new: NewMemory
    ) -> None:
        """End facts that a memory no longer states, unless something else ended them."""
        now, was = self._parts.clock(), as_input(before)
        edge = edge_of_fact(was, before.id, now)
        if new.fact is not None and same_edge(edge, edge_of_fact(new, before.id, now)):
            return
        collection, graph = access.collection.id, graph_name(scope_of(memories_in.name))
        source, _ = await self.graphs.readable(graph, collection)
        begins = parse_instant(edge.valid_from or now)
        name = edge_id(source.id, edge.source, edge.target, edge.type, begins)
        for stored_edge in await self.graphs.edges_by_id(graph, collection, [name]):
            if stored_edge.valid_until is None and stored_edge.evidence == before.id:
                ended = replace(edge, valid_until=max(now, begins))
                await self.graphs.add_facts(ends_of_fact(was), [ended], graph=graph, collection=collection)

    async def _read_edges(self, source: Source, edges: list[str]) -> list[Edge]:
        return await self.graphs.edges_by_id(graph_name(scope_of(source.name)), source.collection, edges)

    async def _end(
        self, memory_sources: MemorySources, source: Source, edge: Edge, *, version: bool = True
    ) -> bool:
        """Record on the memory of an edge what ended its fact, and when. Returns whether it exists."""

        async def ended(memory: Memory) -> Memory:
            for now in await self._read_edges(source, [edge.id]):
                later = await self._read_edges(source, [now.closed_by] if now.closed_by else [])
                by = later[0].evidence if later else None
                return replace(memory, valid_until=now.valid_until, closed_by=by)
            return memory

        return await self._revise(memory_sources, str(edge.evidence), ended, version=version)

    async def _close(
        self, memory_sources: MemorySources, memory: str, *ended: str, version: bool = False
    ) -> None:
        """Record on a memory which ones it ended."""

        async def closing(before: Memory) -> Memory:
            return replace(before, closes=tuple(dict.fromkeys((*before.closes, *ended))))

        await self._revise(memory_sources, memory, closing, version=version)

    async def _revise(
        self, memory_sources: MemorySources, memory: str, change: MemoryChange, *, version: bool
    ) -> bool:
        """Update a memory, retrying after concurrent changes. Returns whether it exists.

        The old text is `kept` as a version, unless it was stored a moment ago.
        """
        while True:
            stored = await self._reader.stored.documents(memory_sources, [memory])
            memories = await self._reader.memories(memory_sources, stored)
            if not memories:
                return False
            before, after = memories[0], await change(memories[0])
            try:
                if after != before:
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
        fresh = document_of(
            as_input(after), before.scope, now=self._parts.clock(), beside=store_metadata(after) | known_from
        )
        await self._context.write([replace(fresh, if_match=before.document.fingerprint)], source)

    async def revise(
        self,
        memory_sources: MemorySources,
        before: Memory,
        new: NewMemory,
        beside: dict[str, Json] | None = None,
    ) -> Written:
        """Replace a memory, and keep its former state as a version. Raises PreconditionFailed."""
        source = memory_sources.by_id[before.document.source]
        self._context.may_edit(memory_sources.access, before.document, "change a memory")
        # If a clock was set back, no version may be older than the one before it.
        now = max(self._parts.clock(), before.known_from + timedelta(microseconds=1))
        stays = store_metadata(before)
        if new.fact != before.fact:
            stays.pop(CLOSED_BY, None)
        fresh = remade(before, new, now=now, beside=stays | (beside or {}))
        try:
            written = await self._context.write([version_of(before, now=now), fresh], source)
        except NotFound as gone:
            raise PreconditionFailed("memory", before.id) from gone
        return replace(written[1], outcome="updated" if new.text == before.text else "replaced")


MAX_SIMILAR_MEMORIES = 5
"""Number of memories sharing words with a new one that are compared with it."""
MAX_COMPARED_BATCH = 50
"""Larger batches are not compared: that would take longer than embedding them."""


class MemoryWriter(Service, checked=False):
    """Writes batches of memories to the source of their scope."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self.facts = MemoryFacts(context)

    async def accepts(self, source: Source, access: CollectionAccess, new: NewMemory) -> bool:
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
            await self._context.extract_entities(new_collection.id)
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
        """Write a batch without duplicate keys; a few are made `complete`."""
        batch = [self.facts.screened(new, source) for new in batch]
        stored, quarantined = await self._read_stored(source, access, scope, batch)
        near = await self._find_near_duplicates(source, access, batch, stored)
        now = self._parts.clock()
        fresh, numbers = [], []
        done: dict[int, MemoryWritten] = {}
        inputs: dict[int, NewMemory] = {}
        for number, (new, alike) in enumerate(zip(batch, near, strict=True)):
            existing = stored.get(new.key or "")
            if existing is not None:
                inputs[number] = replace(new, at=as_input(existing).at if new.at is None else new.at)
                done[number] = await self._update_existing(source, access, inputs[number], existing)
                continue
            beside: dict[str, Json] = {NEAR: list(alike)} if alike else {}
            if new.key in quarantined:
                beside[KNOWN_FROM] = canonical(max(now, quarantined[new.key].known_from + A_MOMENT))
            inputs[number] = replace(new, at=now + number * A_MOMENT if new.at is None else new.at)
            fresh.append(document_of(inputs[number], scope, now=now, beside=beside))
            numbers.append(number)
        index: When = "later" if len(fresh) <= MAX_COMPARED_BATCH else "now"
        put: Sequence[Written] = ()
        if fresh:
            put = await self._context.write(fresh, source, index=index, complete=complete)
        for number, written in zip(numbers, put, strict=True):
            done[number] = MemoryWritten(
                written.id, written.outcome, near[number], quarantined=written.quarantined
            )
        return [
            await self.facts.stated(
                source, access, inputs[number], done[number], stored.get(inputs[number].key or "")
            )
            for number in sorted(done)
        ]

    async def _read_stored(
        self, source: Source, access: CollectionAccess, scope: Scope, batch: Sequence[NewMemory]
    ) -> tuple[dict[str, Memory], dict[str, Memory]]:
        """Return the stored memories with the keys of a batch, and quarantined ones without their texts."""
        keys = [new.key for new in batch if new.key is not None]
        if not keys:
            return {}, {}
        memory_sources = await self._reader.memory_sources(scope, access.collection.id)
        documents = await self._reader.keyed_documents(memory_sources, source, keys, quarantined=True)
        shown = [document for document in documents if document.kind != "quarantined"]
        memories = await self._reader.memories(memory_sources, shown)
        quarantined = {
            document.key: memory_of(as_given(document), "", scope)
            for document in documents
            if document.kind == "quarantined"
        }
        return {memory.document.key: memory for memory in memories}, quarantined

    async def _update_existing(
        self, source: Source, access: CollectionAccess, new: NewMemory, stored: Memory
    ) -> MemoryWritten:
        """Store a memory whose key exists as a new version, if its text differs.

        If it is deleted meanwhile, it is stored again.
        """
        memory_sources = await self._reader.memory_sources(stored.scope, access.collection.id)
        memories: list[Memory] = [stored]
        while memories:
            stored, ended = memories[0], as_ended(new, memories[0])
            if _identity(ended) == _identity(as_input(stored)):
                return MemoryWritten(stored.id, "unchanged", stored.near)
            try:
                written = await self.facts.revise(memory_sources, stored, ended)
            except PreconditionFailed:
                memories = await self._reader.keyed(memory_sources, source, [stored.document.key])
                continue
            return MemoryWritten(written.id, written.outcome, stored.near, quarantined=written.quarantined)
        fresh = document_of(new, stored.scope, now=self._parts.clock(), beside={})
        written = (await self._context.write([fresh], source))[0]
        return MemoryWritten(written.id, written.outcome, quarantined=written.quarantined)

    async def _find_near_duplicates(
        self, source: Source, access: CollectionAccess, batch: Sequence[NewMemory], stored: dict[str, Memory]
    ) -> list[tuple[str, ...]]:
        """Return for each new memory its stored near duplicates in the same source."""
        alike = NearDuplicates(access.collection.language)
        duplicates: list[tuple[str, ...]] = []
        for new in batch:
            skip = len(batch) > MAX_COMPARED_BATCH or new.key in stored
            terms: frozenset[str] = frozenset() if skip else alike.terms(new.text)
            others = await self._find_similar(source, access, new, len(terms)) if terms else []
            duplicates.append(tuple(alike.near(terms, others)))
        return duplicates

    async def _find_similar(
        self, source: Source, access: CollectionAccess, new: NewMemory, terms: int
    ) -> list[tuple[str, str]]:
        """Return ids and texts of the memories in the same source that share the most with a new one."""
        opened = await self._core.open_indexes.current(access.collection)
        here = And((Eq("source", source.id), Eq("kind", "memory")))
        words = new.text[: self._parts.settings.max_query_characters]
        matches = await opened.index.search(Probe(access.narrowed(here), words, None, MAX_SIMILAR_MEMORIES))
        least = least_score(matches, terms)
        near = [
            ChunkId(chunk_id)
            for chunk_id, score in zip(matches.ids.tolist(), matches.words.tolist(), strict=True)
            if score >= least
        ]
        rows = await self._authorized.rows(access)(near) if near else ()
        return [(str(row.document.id), row.chunk.text) for row in rows if row.document.chunks == 1]


def runs(batch: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Split a batch before repeated keys, so that a later version sees the earlier one."""
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


def _identity(new: NewMemory) -> tuple[object, ...]:
    """Return the properties of a memory that identify it once it is stored."""
    times = tuple(period(getattr(new, field), field=field) for field in ("at", "valid_from", "valid_until"))
    what = (clean(new.text), new.role, new.speaker, new.kind, new.pinned, new.fact, tuple(new.entities))
    return (*what, *times, dict(new.metadata))
