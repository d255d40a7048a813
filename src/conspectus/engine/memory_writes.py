"""Memories as they are written: word for word, with what they were before and what they resemble."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conspectus.access.policy import require_scope
from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_facts import MemoryFacts
from conspectus.engine.memory_reads import MemoryReader
from conspectus.errors import Changed
from conspectus.ingest.prepare import period
from conspectus.memory.documents import A_MOMENT, Alike, as_ended, as_given, document_of, known_at, remembered
from conspectus.memory.scopes import home_name
from conspectus.model.filter import And, Eq
from conspectus.model.ids import ChunkId
from conspectus.model.memory import NEAR, Memory, MemoryWritten, NewMemory, Scope
from conspectus.model.records import Json, Source
from conspectus.ports import Probe
from conspectus.text.clean import clean

COMPARED = 5
"""So many memories that share words with a new one are held against it."""
MOST_COMPARED = 50
"""Where more come at once, none is: storing them would take longer than embedding them."""


class MemoryWriter:
    """Writes batches of memories into the source of their scope."""

    def __init__(self, context: EngineContext, reader: MemoryReader, facts: MemoryFacts) -> None:
        self._context = context
        self._core = context.core
        self._parts = context.parts
        self._person = context.person
        self._sight = context.sight
        self._writer = context.writer
        self._reader = reader
        self._facts = facts

    async def home(self, scope: Scope, collection: str) -> tuple[Source, SourceRef]:
        """The source that memories of exactly this scope are written into, made if it is new."""
        place = await self._sight.find(collection)
        if place is None:
            require_scope(self._person, "write", "write")
            made = await self._writer.collection(collection)
            await self._context.extract_entities(made.id)
            return await self._writer.writable(home_name(scope), made.id, kind="memory")
        home = await self._sight.source(place, home_name(scope))
        if home is None:
            return await self._writer.writable(home_name(scope), collection, kind="memory")
        require_scope(self._person, "write", "write")
        place.require("editor", "remember", source=home.id)
        return home, place

    async def write(
        self, home: Source, place: SourceRef, scope: Scope, batch: Sequence[NewMemory]
    ) -> list[MemoryWritten]:
        """Write a batch, of which no key comes twice."""
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
        put = await self._context.write(fresh, home, stored=(), home=behind) if fresh else ()
        for number, written in zip(places, put, strict=True):
            done[number] = MemoryWritten(written.id, written.outcome, near[number])
        return [
            await self._facts.stated(
                home, place, told[number], done[number], stored.get(told[number].key or "")
            )
            for number in sorted(done)
        ]

    async def _stored_before(
        self, home: Source, place: SourceRef, scope: Scope, batch: Sequence[NewMemory]
    ) -> dict[str, Memory]:
        """The memories of the keys of a batch."""
        keys = [each.key for each in batch if each.key is not None]
        if not keys:
            return {}
        homes = await self._reader.homes(scope, place.collection.id)
        found = await self._reader.keyed(homes, home, keys)
        return {each.document.key: each for each in found}

    async def _remember_again(
        self, home: Source, place: SourceRef, new: NewMemory, known: Memory
    ) -> MemoryWritten:
        """A memory whose key is stored: nothing where it says the same, else a new version.

        One that is forgotten meanwhile is stored anew.
        """
        homes = await self._reader.homes(known.scope, place.collection.id)
        found: list[Memory] = [known]
        while found:
            known, told = found[0], as_ended(new, found[0])
            if _said(told) == _said(as_given(known)):
                return MemoryWritten(known.id, "unchanged", known.near)
            try:
                written = await self._facts.revise(homes, known, told)
            except Changed:
                found = await self._reader.keyed(homes, home, [known.document.key])
                continue
            return MemoryWritten(written.id, written.outcome, known.near)
        fresh = document_of(new, known.scope, now=self._parts.clock(), beside={})
        written = (await self._context.write([fresh], home))[0]
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


def _said(new: NewMemory) -> tuple[object, ...]:
    """All of a memory that can be told apart once it is stored."""
    times = tuple(period(getattr(new, each), field=each) for each in ("at", "valid_from", "valid_until"))
    what = (clean(new.text), new.role, new.speaker, new.kind, new.pinned, new.fact, tuple(new.entities))
    return (*what, *times, dict(new.metadata))
