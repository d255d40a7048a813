"""Memories as they are stored: word for word, and changed with what they were before."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from conspectus.access.policy import require_scope
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.memory_deletion import MemoryDeletion
from conspectus.engine.memory_facts import MemoryFacts
from conspectus.engine.memory_reads import LIMIT, MemoryReader, in_homes
from conspectus.engine.memory_search import MemorySearch
from conspectus.engine.memory_transfer import MemoryTransfer
from conspectus.engine.memory_writes import MemoryWriter, runs
from conspectus.engine.search import Searcher
from conspectus.errors import Changed, InvalidInput
from conspectus.ingest.pipeline import batches
from conspectus.memory.documents import as_given, remembered
from conspectus.memory.retention import checked_forgetting
from conspectus.memory.scopes import checked, scope_of
from conspectus.model.filter import EVERYTHING, And, Filter
from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    Memory,
    MemoryClass,
    MemoryExport,
    MemoryPage,
    MemoryQuery,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    MemoryStats,
    MemoryWindow,
    MemoryWritten,
    NewMemory,
    Paging,
    RecentMemory,
    Scope,
)
from conspectus.model.query import Budget
from conspectus.model.records import Written
from conspectus.ports import Progress

OF_FACTS = frozenset({"fact", "valid_from", "valid_until", "at"})
FIELDS = NewMemory.__dataclass_fields__.keys() - {"key", "vector"}


class MemoryService(Service):
    """Memories of users, agents and conversations."""

    def __init__(
        self,
        context: EngineContext,
        reader: MemoryReader,
        facts: MemoryFacts,
        batches: MemoryWriter,
        searcher: Searcher,
    ) -> None:
        super().__init__(context)
        self._reader = reader
        self._facts = facts
        self._batches = batches
        self._search = MemorySearch(context, reader, searcher)
        self._transfer = MemoryTransfer(context, reader, facts, batches)
        self._deletion = MemoryDeletion(context, reader)

    async def remember(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        """Store memories in their order, word for word: found by their words when this returns.

        By meaning they are found when they are embedded (`wait=True`: on return). One with the key of a
        stored one is a new version of it. What says nearly the same as another is linked to it, not dropped.
        A fact becomes an edge of the scope's graph, and ends the one that it contradicts. They are written in
        batches of at most 500, each a transaction. Raises InvalidInput or TooLarge; the batch at fault is not
        written.
        """
        home, place = await self._batches.home(checked(scope), collection)
        given = [memories] if isinstance(memories, str | NewMemory) else memories
        done: list[MemoryWritten] = []
        for batch in batches(NewMemory(each) if isinstance(each, str) else each for each in given):
            await self._facts.check(home, place, batch)
            for run in runs(batch):
                done += await self._batches.write(home, place, scope, run)
            embedder = await self._context.embedder(place.collection)
            self._context.begin_embedding(place.collection, embedder)
            if progress is not None:
                progress("remembering", len(done), 0)
        if wait:
            await self._context.embed_in(place, wait=True, progress=progress)
        return done

    async def update(
        self,
        /,
        memory: str,
        *,
        scope: Scope,
        collection: str = MEMORY,
        expected: str | None = None,
        **changes: Any,
    ) -> Written:
        """Change any fields of a memory but its key; it keeps its id, and what it was is kept as a version.

        With `expected`, the fingerprint that the caller read, raises Changed if it is another one by now.
        """
        if unknown := changes.keys() - FIELDS:
            raise InvalidInput(min(unknown), "is not a field that can be changed")
        homes = await self._reader.homes(scope, collection)
        while True:
            before = await self._reader.memory(homes, memory)
            if expected not in {None, before.document.fingerprint}:
                raise Changed("memory", memory)
            new = replace(as_given(before), **changes)
            if before.closed_by is not None and new.fact != before.fact and "valid_until" not in changes:
                new = replace(new, valid_until=None)
            home = homes.by_id[before.document.source]
            if changes.keys() & OF_FACTS:
                await self._facts.check(home, homes.place, [new])
            try:
                written = await self._facts.revise(homes, before, new)
            except Changed:
                continue
            if changes.keys() & OF_FACTS:
                done = MemoryWritten(written.id, "updated")
                await self._facts.stated(home, homes.place, new, done, before)
            await self._context.embed(homes.place.collection, wait=False)
            return written

    async def get(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Memory:
        """A memory of a scope. Raises NotFound, for one of another scope too."""
        homes = await self._reader.homes(scope, collection)
        return await self._reader.memory(homes, memory)

    async def versions(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Sequence[Memory]:
        """All that a memory ever said, oldest first, as it is now last. Raises NotFound."""
        homes = await self._reader.homes(scope, collection)
        now = await self._reader.memory(homes, memory)
        before = [in_homes(homes, each, text) for each, text in await homes.versions(now.document)]
        return [*await self._reader.present(homes, before), now]

    async def list(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        kind: MemoryClass | None = None,
        entity: str | None = None,
        **paging: Unpack[Paging],
    ) -> MemoryPage:
        """A page of the memories of a scope that match, in the order in which they were said."""
        limit, newest_first = paging.get("limit", 100), paging.get("newest_first", False)
        after, where = paging.get("after"), paging.get("where", EVERYTHING)
        if not 1 <= limit <= LIMIT:
            raise InvalidInput("limit", f"must be from 1 to {LIMIT}")
        homes = await self._reader.homes(scope, collection)
        wanted = And((remembered(kind, entity), where))
        rows, cursor = await homes.page(wanted, after=after, limit=limit, newest_first=newest_first)
        found = await self._reader.present(homes, [in_homes(homes, each, text) for each, text in rows])
        return MemoryPage(tuple(found), cursor)

    async def count(self, *, scope: Scope, collection: str = MEMORY, where: Filter = EVERYTHING) -> int:
        """How many memories of a scope match."""
        return await (await self._reader.homes(scope, collection)).count(where)

    async def recent(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        turns: int | None = None,
        tokens: int | None = None,
        tokenizer: str = "o200k_base",
    ) -> Sequence[RecentMemory]:
        """The turns that were stored last, oldest first: so many at most, of so many tokens at most.

        What is not given is as the settings say. One larger than all of the tokens is cut, with a mark.
        """
        return await self._reader.recent(
            scope=scope, collection=collection, turns=turns, tokens=tokens, tokenizer=tokenizer
        )

    async def recall(self, question: MemoryQuery) -> MemoryRetrieval:
        """The memories of a scope that answer a question, best first, each with its reasons.

        Raises NotFound for an unknown collection, InvalidInput for a question that cannot be asked.
        """
        return await self._search.recall(question)

    async def window(
        self, question: MemoryQuery, budget: int | Budget, *, renderer: str = "text"
    ) -> MemoryWindow:
        """The context for the next turn: standing notes, the last turns, and what answers the question.

        Never over the budget. Raises what `recall` does.
        """
        return await self._search.window(question, budget, renderer=renderer)

    async def forget(
        self,
        what: MemorySelection,
        *,
        scope: Scope,
        collection: str = MEMORY,
        preview: bool = False,
        purge: bool = False,
    ) -> MemoryReceipt:
        """Delete memories of a scope with their versions and all that hangs on them, and say what went.

        Unknown ids and those of other scopes count 0. Pinned memories go only by their ids, or with
        `what.pinned`. They are out of every answer when this returns; `purge` also waits until no file holds
        them. A `preview` deletes nothing. Raises InvalidInput, NotFound for the collection, NotAllowed.
        """
        checked_forgetting(what)
        require_scope(self._person, "write", "forget memories")
        homes = await self._reader.homes(scope, collection)
        erased = purge and not preview
        async with self._context.purging(erased, homes.place.collection.id):
            receipt = await self._deletion.delete(homes, what, preview=preview)
        return replace(receipt, purged=erased)

    async def conversations(self, *, scope: Scope, collection: str = MEMORY) -> Sequence[ConversationSummary]:
        """The conversations of a scope that have memories, the one that was last spoken in first."""
        homes = await self._reader.homes(scope, collection)
        found = [
            ConversationSummary(scope_of(homes.by_id[each.source].name), each.memories, each.first, each.last)
            for each in await homes.spans()
        ]
        return sorted(found, key=lambda each: -each.last.timestamp() if each.last is not None else 0.0)

    async def stats(self, *, scope: Scope, collection: str = MEMORY) -> MemoryStats:
        """A scope in numbers."""
        homes = await self._reader.homes(scope, collection)
        totals = await homes.totals()
        return MemoryStats(
            memories=totals.memories,
            notes=totals.notes,
            pinned=totals.pinned,
            facts=totals.facts,
            versions=totals.versions,
            conversations=len(await homes.spans()),
            entities=await homes.names(),
            tokens=totals.tokens,
            pending=totals.pending,
            first=totals.first,
            last=totals.last,
        )

    async def export(
        self, *, scope: Scope, collection: str = MEMORY, after: str | None = None, limit: int | None = None
    ) -> MemoryExport:
        """A page of a scope's memories, in the order in which they were said, each as a line of JSON.

        A line is all there is to a memory: its times, names, facts and earlier versions. `after` is the page
        before's `next`; a page has as many lines as the settings allow, or `limit`.
        """
        return await self._transfer.export(scope, collection, after=after, limit=limit)

    async def import_lines(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = MEMORY,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        """Take in lines of an export; taken in again, they change nothing.

        They go where they say, or into a scope: to its user, and to its agent and conversation where it names
        them. Of a memory that is stored already, all that either knows is kept, and what came to be known
        last is what it says. Lines are written in batches of at most 500, each a transaction. Raises
        InvalidInput or TooLarge with the number of the line at fault, of whose batch nothing is written.
        """
        return await self._transfer.take_in(lines, collection, scope=scope, progress=progress)
