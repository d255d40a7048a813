"""Writing memories: new ones, new versions, and near duplicates."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conspectus.access.collection_access import CollectionAccess
from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_facts import MemoryFacts
from conspectus.engine.memory_reads import MemoryReader
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, PreconditionFailed, TooLarge
from conspectus.ingest.batch_writes import Complete
from conspectus.ingest.document_fields import period
from conspectus.ingest.open_indexes import IndexTiming
from conspectus.memory.documents import A_MOMENT, as_input, document_of, memory_of
from conspectus.memory.fact_edges import as_ended
from conspectus.memory.near_duplicates import NearDuplicates, least_score
from conspectus.memory.scopes import scope_of, source_name
from conspectus.model.filter import And, Eq
from conspectus.model.ids import ChunkId
from conspectus.model.memory import KNOWN_FROM, NEAR, Memory, MemoryWritten, NewMemory, Scope
from conspectus.model.quarantine import as_given
from conspectus.model.records import Json, Source, Written
from conspectus.ports import Probe
from conspectus.text.clean import clean
from conspectus.text.times import canonical

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
        index: IndexTiming = "later" if len(documents) <= MAX_COMPARED_BATCH else "now"
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
