"""The memory service: add, search, update, delete, import and export memories."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Unpack

from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_deletion import MemoryDeletion
from conspectus.engine.memory_export import MemoryExporter
from conspectus.engine.memory_import import MemoryImporter
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.memory_search import MemorySearch
from conspectus.engine.memory_writes import MemoryWriter, split_before_repeated_keys
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.errors import InvalidInput, PreconditionFailed
from conspectus.ingest.batch_writes import batches
from conspectus.memory.documents import as_input, date_versions, memory_filter
from conspectus.memory.fact_edges import with_new_end
from conspectus.memory.retention import check_forgetting
from conspectus.memory.scopes import (
    check_scope,
    choose_scope,
    choose_scope_or_all,
    scope_and_options,
    scope_of,
)
from conspectus.model.annotations import Example, Length, Range
from conspectus.model.filter import EVERYTHING, And, DocumentFilter
from conspectus.model.jobs import Job
from conspectus.model.memory import (
    MEMORY,
    NO_SCOPE,
    ConversationSummary,
    Memory,
    MemoryChanges,
    MemoryExport,
    MemoryKind,
    MemoryListOptions,
    MemoryPage,
    MemoryQuery,
    MemoryQueryOptions,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    MemoryStats,
    MemoryWindow,
    MemoryWindowOptions,
    MemoryWritten,
    NewMemory,
    RecentMemory,
    Scope,
    ScopedListOptions,
    ScopedMemoryChanges,
    ScopedQueryOptions,
    ScopeNames,
)
from conspectus.model.parameters import (
    MAX_LIST,
    Cursor,
    DryRun,
    ExportLimit,
    Fingerprint,
    Label,
    MemoryCollection,
    MemoryIdentifier,
    Purge,
    QueryText,
    Tokenizer,
    Wait,
)
from conspectus.model.query import WindowTokens
from conspectus.model.records import Written
from conspectus.ports import Progress
from conspectus.window.build import window_form

if TYPE_CHECKING:
    from conspectus.engine.memory_extraction import FactExtraction

FACT_FIELDS = frozenset({"fact", "valid_from", "valid_until", "at"})


class MemoryService(Service):
    """Memories of users, agents and conversations."""

    def __init__(
        self,
        context: EngineContext,
        searcher: Searcher,
        extraction: "Callable[[], FactExtraction]",
    ) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._memories = MemoryWriter(context)
        self._facts = self._memories.facts
        self._search = MemorySearch(context, searcher)
        self._importer = MemoryImporter(context)
        self._exporter = MemoryExporter(context)
        self._deletion = MemoryDeletion(context)
        self._extraction = extraction

    async def add(
        self,
        memories: Annotated[
            str | NewMemory | Iterable[str | NewMemory], Length(0, MAX_LIST), "Memories to write."
        ],
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        wait: Wait = False,
        progress: Progress | None = None,
        **names: Unpack[ScopeNames],
    ) -> Sequence[MemoryWritten]:
        """Add memories in their order. Keyword search finds them when this returns.

        Vector search finds them once they are embedded (`wait=True`: when this returns). A memory with a
        stored key is a new version. A near duplicate is linked to the other memory, not dropped. A fact
        becomes an edge of the scope's graph, and ends the fact that it contradicts. Memories are written in
        batches of at most 500, one transaction each. Raises InvalidInput or TooLarge; the batch at fault is
        not written.
        """
        scope = choose_scope(scope, names)
        inputs = [memories] if isinstance(memories, str | NewMemory) else memories
        written: list[MemoryWritten] = []
        with self._parts.records.one_snapshot():
            source, access = await self._memories.source(check_scope(scope), collection)
            embedder = await self._context.embedder(access.collection)
            complete = self._context.completion(access.collection, embedder) if wait else None
            for batch in batches(
                NewMemory(memory) if isinstance(memory, str) else memory for memory in inputs
            ):
                await self._facts.check(source, access, batch)
                for run in split_before_repeated_keys(batch):
                    written += await self._memories.write(source, access, scope, run, complete=complete)
                if not wait:
                    self._context.begin_embedding(access.collection, embedder)
                if progress is not None:
                    progress("remembering", len(written), 0)
        if wait:
            await self._context.embed_in(access, wait=True, progress=progress)
        return written

    async def update(
        self,
        /,
        memory: MemoryIdentifier,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        if_match: Fingerprint | None = None,
        **changes: Unpack[ScopedMemoryChanges],
    ) -> Written:
        """Change the named fields of a memory; its earlier state becomes a version.

        With `if_match`, the fingerprint that you read, raises PreconditionFailed if it was changed since.
        """
        scope, new_fields = scope_and_options(scope, changes, MemoryChanges)
        memory_sources = await self._reader.memory_sources(scope, collection)
        while True:
            before = await self._reader.memory(memory_sources, memory)
            if if_match not in {None, before.document.fingerprint}:
                raise PreconditionFailed("memory", memory)
            if before.cites is not None and "kind" in new_fields:
                raise InvalidInput(
                    "kind",
                    "of an extracted fact cannot be changed; change the memory that it cites",
                )
            new = with_new_end(before, replace(as_input(before), **new_fields), new_fields)
            source = memory_sources.by_id[before.document.source]
            new = self._facts.screen_memory(new, source)
            if new_fields.keys() & FACT_FIELDS:
                await self._facts.check(source, memory_sources.access, [new])
            try:
                written = await self._facts.revise(memory_sources, before, new)
            except PreconditionFailed:
                continue
            if new_fields.keys() & FACT_FIELDS:
                updated = MemoryWritten(written.id, "updated", quarantined=written.quarantined)
                await self._facts.store_fact(source, memory_sources.access, new, updated, before)
            await self._context.embed(memory_sources.access.collection, wait=False)
            return written

    async def get(
        self,
        memory: MemoryIdentifier,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> Memory:
        """Return a memory of a scope. Raises NotFound, also for a memory of another scope."""
        scope = choose_scope(scope, names)
        memory_sources = await self._reader.memory_sources(scope, collection)
        return await self._reader.memory(memory_sources, memory)

    async def list_versions(
        self,
        memory: MemoryIdentifier,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> Sequence[Memory]:
        """List all versions of a memory, oldest first, the current one last. Raises NotFound.

        Each earlier one says from when on the next holds in its place: `superseded`.
        """
        scope = choose_scope(scope, names)
        memory_sources = await self._reader.memory_sources(scope, collection)
        current = await self._reader.memory(memory_sources, memory)
        earlier = [
            memory_in(memory_sources, document, text)
            for document, text in await memory_sources.versions(current.document)
        ]
        return date_versions([*await self._reader.present(memory_sources, earlier), current])

    async def list(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        kind: Annotated[MemoryKind | None, "Only memories of this kind."] = None,
        entity: Annotated[Label, "Only memories that mention this entity.", Example("backup")] | None = None,
        **options: Unpack[ScopedListOptions],
    ) -> MemoryPage:
        """List a page of the memories of a scope that match, by time."""
        scope, list_options = scope_and_options(scope, options, MemoryListOptions)
        limit, newest_first = list_options.get("limit", 100), list_options.get("newest_first", False)
        after, filter = list_options.get("after"), list_options.get("filter", EVERYTHING)
        memory_sources = await self._reader.memory_sources(scope, collection)
        condition = And((memory_filter(kind, entity), filter))
        rows, cursor = await memory_sources.page(
            condition, after=after, limit=limit, newest_first=newest_first
        )
        memories = await self._reader.present(
            memory_sources, [memory_in(memory_sources, document, text) for document, text in rows]
        )
        return MemoryPage(tuple(memories), cursor)

    async def count(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        filter: DocumentFilter = EVERYTHING,
        **names: Unpack[ScopeNames],
    ) -> int:
        """Count the memories of a scope that match."""
        scope = choose_scope(scope, names)
        return await (await self._reader.memory_sources(scope, collection)).count(filter)

    async def list_recent(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        limit: Annotated[
            int | None, Range(0), "Maximum number of turns; by default as set.", Example(10)
        ] = None,
        max_tokens: Annotated[
            int | None, Range(0), "Maximum tokens of the turns; by default as set.", Example(1_000)
        ] = None,
        tokenizer: Tokenizer = "o200k_base",
        **names: Unpack[ScopeNames],
    ) -> Sequence[RecentMemory]:
        """Return the newest turns of a scope, oldest first, within a number of turns and of tokens.

        Defaults come from the settings. A turn that exceeds the tokens is truncated, with a mark.
        """
        scope = choose_scope(scope, names)
        return await self._reader.recent(
            scope=scope, collection=collection, limit=limit, max_tokens=max_tokens, tokenizer=tokenizer
        )

    async def recall(
        self,
        query: QueryText,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        **options: Unpack[ScopedQueryOptions],
    ) -> MemoryRetrieval:
        """Search the memories of a scope, best first, each with the parts of its score.

        The options are the fields of MemoryQuery. Raises NotFound for an unknown collection, InvalidInput for
        an invalid query.
        """
        scope, query_options = scope_and_options(scope, options, MemoryQueryOptions)
        return await self._search.recall(MemoryQuery(query, scope, **query_options))

    async def window(
        self,
        query: QueryText,
        max_tokens: WindowTokens = 4_000,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        **options: Unpack[MemoryWindowOptions],
    ) -> MemoryWindow:
        """Build the context window of the next turn: notes, the newest turns, and memories for the query.

        It never exceeds `max_tokens`. The options and errors are those of `recall`, with the fields of
        WindowForm.
        """
        scope, window_options = scope_and_options(scope, options, dict[str, object])
        form, query_options = window_form(window_options, MemoryQueryOptions)
        return await self._search.window(MemoryQuery(query, scope, **query_options), max_tokens, form)

    async def extract(
        self,
        *,
        scope: Annotated[Scope | None, "Scope of the memories; none: all."] = None,
        collection: MemoryCollection = MEMORY,
        max_tokens: Annotated[
            int | None, Range(1, 1_000_000_000), "Maximum tokens of all calls of the model.", Example(1_000)
        ] = None,
        replay: Annotated[bool, "Also read memories that were read before."] = False,
        **names: Unpack[ScopeNames],
    ) -> Job:
        """Extract facts from the memories of a scope (None: all) with the chat model, in a background job.

        The job reads new and changed memories. Each fact becomes a memory that cites the memory it quotes;
        the memories do not change. The job ends before prompts and answers could exceed `max_tokens` (None:
        as the settings say). Its result is a report without texts. With `replay`, facts are derived again
        from stored answers, without a call of the model. If a job of the same request is queued or running,
        that one is returned. Raises ChatNotConfigured, InvalidInput, NotFound or PermissionDenied.
        """
        scope = choose_scope_or_all(scope, names)
        return await self._extraction().start(collection, scope, max_tokens=max_tokens, replay=replay)

    async def start(self) -> None:
        """Run `extract` in the background for the collections that the settings name, if they name any.

        One of the processes that have the store open does so, every `fact_interval_minutes` of the settings,
        with the rights of the owner account.
        """
        if self._parts.settings.fact_collections:
            self._extraction().watch()

    async def forget(
        self,
        selection: Annotated[MemorySelection, "Memories to delete."],
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        dry_run: DryRun = False,
        purge: Purge = False,
        **names: Unpack[ScopeNames],
    ) -> MemoryReceipt:
        """Delete memories of a scope with their versions and facts; return what was deleted.

        Unknown ids and those of other scopes count 0. Pinned memories are deleted only by id, or with
        `selection.pinned`. They are in no result when this returns; `purge` also waits until no file holds
        their text. A `dry_run` deletes nothing. Raises InvalidInput, NotFound or PermissionDenied.
        """
        scope = choose_scope(scope, names)
        check_forgetting(selection)
        require_scope(self._person, "write", "forget memories")
        memory_sources = await self._reader.memory_sources(scope, collection)
        purges = purge and not dry_run
        async with self._context.open_deletion(purges, memory_sources.access.collection.id) as erasure:
            receipt = await self._deletion.delete(memory_sources, selection, dry_run=dry_run)
            if purges:
                await self._deletion.delete_empty_sources(memory_sources)
        return replace(receipt, purged=erasure.purged, erasure_pending=erasure.pending)

    async def list_conversations(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> Sequence[ConversationSummary]:
        """List the conversations of a scope, the newest one first."""
        scope = choose_scope(scope, names)
        memory_sources = await self._reader.memory_sources(scope, collection)
        summaries = [
            ConversationSummary(
                scope_of(memory_sources.by_id[span.source].name), span.memories, span.first, span.last
            )
            for span in await memory_sources.spans()
        ]
        return sorted(
            summaries, key=lambda summary: -summary.last.timestamp() if summary.last is not None else 0.0
        )

    async def stats(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        **names: Unpack[ScopeNames],
    ) -> MemoryStats:
        """Return the numbers of memories in a scope."""
        scope = choose_scope(scope, names)
        memory_sources = await self._reader.memory_sources(scope, collection)
        totals = await memory_sources.totals()
        conversations, entities = len(await memory_sources.spans()), await memory_sources.names()
        return replace(totals, conversations=conversations, entities=entities)

    async def export(
        self,
        *,
        scope: Annotated[Scope, "Scope of the memories."] = NO_SCOPE,
        collection: MemoryCollection = MEMORY,
        after: Cursor | None = None,
        limit: ExportLimit | None = None,
        **names: Unpack[ScopeNames],
    ) -> MemoryExport:
        """Export a page of a scope's memories as JSON Lines, by time.

        A line holds all of a memory: times, names, facts, earlier versions, and a given vector. `after` is a
        cursor; a page has `limit` lines, or as many as the settings allow. Quarantined memories come last,
        and come back quarantined; for others than managers of the collection they are only counted, as are
        extracted facts and feedback, in `left_out` of the last page.
        """
        scope = choose_scope(scope, names)
        return await self._exporter.page(scope, collection, after=after, limit=limit)

    async def import_lines(
        self,
        lines: Annotated[
            str | Iterable[str],
            Length(0, MAX_LIST),
            "Lines of an export.",
            Example(['{"text": "Prefers short answers.", "kind": "note"}']),
        ],
        *,
        collection: MemoryCollection = MEMORY,
        scope: Annotated[Scope | None, "Scope of the memories; none: all."] = None,
        progress: Progress | None = None,
        **names: Unpack[ScopeNames],
    ) -> Sequence[MemoryWritten]:
        """Import memories from JSON Lines. Importing the same lines twice has no effect.

        They go into the scope that each line names, or into the given one. A memory that is stored already
        keeps the versions of both sides, and the newest is the current one. Lines are written in batches of
        at most 500, one transaction each. Raises InvalidInput or TooLarge with the number of the line at
        fault, whose batch is not written.
        """
        scope = choose_scope_or_all(scope, names)
        return await self._importer.import_lines(lines, collection, scope=scope, progress=progress)
