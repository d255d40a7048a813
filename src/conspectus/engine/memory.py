"""Memories as they are stored: word for word, and changed with what they were before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.memory_facts import Stating
from conspectus.errors import Changed, InvalidInput
from conspectus.ingest.pipeline import batches
from conspectus.ingest.prepare import period
from conspectus.memory.documents import A_MOMENT, as_given, document_of, known_at, remembered
from conspectus.memory.facts import as_ended
from conspectus.memory.near_duplicates import Alike
from conspectus.memory.scopes import checked, home_name
from conspectus.model.filter import And, Eq
from conspectus.model.ids import ChunkId
from conspectus.model.memory import MEMORY, NEAR, Memory, MemoryWritten, NewMemory, Scope
from conspectus.model.records import Json, Source, Written
from conspectus.ports import Probe, Progress
from conspectus.text.clean import clean


def runs(batch: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """A batch in its order, cut before a key that came already, so that a later version meets the earlier."""
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


COMPARED = 5
"""So many memories that share words with a new one are held against it."""
MOST_COMPARED = 50
"""Where more come at once, none is: storing them would take longer than embedding them."""
OF_FACTS = frozenset({"fact", "valid_from", "valid_until", "at"})
FIELDS = NewMemory.__dataclass_fields__.keys() - {"key", "vector"}


class Remembering(Stating):
    """What agents are to know again."""

    async def remember(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> list[MemoryWritten]:
        """Store memories in their order, word for word: found by their words when this returns.

        By meaning they are found when they are embedded (`wait=True`: on return). One with the key of a
        stored one is a new version of it. What says nearly the same as another is linked to it, not dropped.
        A fact becomes an edge of the scope's graph, and ends the one that it contradicts. They are written in
        batches of at most 500, each a transaction. Raises InvalidInput or TooLarge; the batch at fault is not
        written.
        """
        home, place = await self._memory_home(checked(scope), collection)
        given = [memories] if isinstance(memories, str | NewMemory) else memories
        done: list[MemoryWritten] = []
        for batch in batches(NewMemory(each) if isinstance(each, str) else each for each in given):
            await self._fact_home(home, place, batch)
            for run in runs(batch):
                done += await self._remember_batch(home, place, scope, run)
            embedder = await self._embedder(place.collection)
            self._begin_embedding(place.collection, embedder)
            if progress is not None:
                progress("remembering", len(done), 0)
        if wait:
            await self._embed_in(place, wait=True, progress=progress)
        return done

    async def update_memory(
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
        homes = await self._homes(scope, collection)
        while True:
            before = await self._memory_in(homes, memory)
            if expected not in {None, before.document.fingerprint}:
                raise Changed("memory", memory)
            new = replace(as_given(before), **changes)
            if before.closed_by is not None and new.fact != before.fact and "valid_until" not in changes:
                new = replace(new, valid_until=None)
            home = homes.by_id[before.document.source]
            if changes.keys() & OF_FACTS:
                await self._fact_home(home, homes.place, [new])
            try:
                written = await self._revise(homes, before, new)
            except Changed:
                continue
            if changes.keys() & OF_FACTS:
                done = MemoryWritten(written.id, "updated")
                await self._with_fact(home, homes.place, new, done, before)
            await self._embed(homes.place.collection, wait=False)
            return written

    async def _memory_home(self, scope: Scope, collection: str) -> tuple[Source, SourceRef]:
        """The source that memories of exactly this scope are written into, made if it is new."""
        place = await self._sight.find(collection)
        if place is None:
            require_scope(self._person, "write", "write")
            made = await self.collection(collection)
            await self.keep_names(collection=made.id)
            return await self._writable(home_name(scope), made.id, kind="memory")
        home = await self._sight.source(place, home_name(scope))
        if home is None:
            return await self._writable(home_name(scope), collection, kind="memory")
        require_scope(self._person, "write", "write")
        place.require("editor", "remember", source=home.id)
        return home, place

    async def _remember_batch(
        self, home: Source, place: SourceRef, scope: Scope, batch: Sequence[NewMemory]
    ) -> list[MemoryWritten]:
        stored = await self._stored_before(home, place, scope, batch)
        near = await self._said_alike(home, place, batch, stored)
        now = self._parts.clock()
        fresh, places = [], []
        done: dict[int, MemoryWritten] = {}
        told: dict[int, NewMemory] = {}
        for number, (new, alike) in enumerate(zip(batch, near, strict=True)):
            known = stored.get(new.key or "")
            if known is not None:
                told[number] = replace(new, at=as_given(known).at if new.at is None else new.at)
                done[number] = await self._remember_again(home, place, told[number], known)
                continue
            beside: dict[str, Json] = {NEAR: list(alike)} if alike else {}
            told[number] = replace(new, at=now + number * A_MOMENT if new.at is None else new.at)
            fresh.append(document_of(told[number], scope, now=now, beside=beside))
            places.append(number)
        behind = place.collection if len(fresh) <= MOST_COMPARED else None
        put = await self._write(fresh, home, stored=(), home=behind) if fresh else ()
        for number, written in zip(places, put, strict=True):
            done[number] = MemoryWritten(written.id, written.outcome, near[number])
        return [
            await self._with_fact(home, place, told[number], done[number], stored.get(told[number].key or ""))
            for number in sorted(done)
        ]

    async def _stored_before(
        self, home: Source, place: SourceRef, scope: Scope, batch: Sequence[NewMemory]
    ) -> dict[str, Memory]:
        """The memories of the keys of a batch."""
        keys = [each.key for each in batch if each.key is not None]
        if not keys:
            return {}
        homes = await self._homes(scope, place.collection.id)
        found = await self._keyed(homes, home, keys)
        return {each.document.key: each for each in found}

    async def _remember_again(
        self, home: Source, place: SourceRef, new: NewMemory, known: Memory
    ) -> MemoryWritten:
        """A memory whose key is stored: nothing where it says the same, else a new version.

        One that is forgotten meanwhile is stored anew.
        """
        homes = await self._homes(known.scope, place.collection.id)
        found: list[Memory] = [known]
        while found:
            known, told = found[0], as_ended(new, found[0])
            if _said(told) == _said(as_given(known)):
                return MemoryWritten(known.id, "unchanged", known.near)
            try:
                written = await self._revise(homes, known, told)
            except Changed:
                found = await self._keyed(homes, home, [known.document.key])
                continue
            return MemoryWritten(written.id, written.outcome, known.near)
        fresh = document_of(new, known.scope, now=self._parts.clock(), beside={})
        written = (await self._write([fresh], home))[0]
        return MemoryWritten(written.id, written.outcome)

    async def _said_alike(
        self, home: Source, place: SourceRef, batch: Sequence[NewMemory], stored: dict[str, Memory]
    ) -> list[tuple[str, ...]]:
        """For each new memory those stored in the same place that say nearly the same."""
        alike = Alike(place.collection.language)
        found: list[tuple[str, ...]] = []
        for new in batch:
            skip = len(batch) > MOST_COMPARED or new.key in stored or not alike.terms(new.text)
            found.append(() if skip else await self._alike(home, place, new, alike))
        return found

    async def _alike(self, home: Source, place: SourceRef, new: NewMemory, alike: Alike) -> tuple[str, ...]:
        shelf = await self._core.shelves.current(place.collection)
        here = And((Eq("source", home.id), remembered(), known_at(None)))
        words = new.text[: self._parts.settings.max_query_characters]
        found = await shelf.index.search(Probe(place.narrowed(here), words, None, COMPARED))
        rows = await self._sight.rows(place)([ChunkId(int(each)) for each in found.ids])
        others = [(str(row.document.id), row.chunk.text) for row in rows if row.document.chunks == 1]
        return tuple(alike.near(new.text, others))


def _said(new: NewMemory) -> tuple[object, ...]:
    """All of a memory that can be told apart once it is stored."""
    times = tuple(
        None if each is None else period(each) for each in (new.at, new.valid_from, new.valid_until)
    )
    what = (clean(new.text), new.role, new.speaker, new.kind, new.pinned, new.fact, tuple(new.entities))
    return (*what, *times, dict(new.metadata))
