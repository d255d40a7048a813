"""Facts that memories state: they stand in the graph of the scope, and end those that they contradict."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from conspectus.access.memory_reader import MemorySources
from conspectus.access.reader import SourceRef
from conspectus.engine.context import EngineContext
from conspectus.engine.graph_access import GraphAccess
from conspectus.engine.memory_reads import MemoryReader
from conspectus.errors import Changed, NotFound
from conspectus.memory.documents import (
    as_given,
    beside_of,
    document_of,
    edge_of_fact,
    ends_of_fact,
    remade,
    same_edge,
    version_of,
)
from conspectus.memory.scopes import graph_name, scope_of
from conspectus.model.graph import Edge, GraphWritten, NewEdge, NewNode
from conspectus.model.memory import CLOSED_BY, KNOWN_FROM, Memory, MemoryWritten, NewMemory
from conspectus.model.records import Json, Source, Written
from conspectus.text.hashing import edge_id
from conspectus.text.times import canonical, parse_instant

Told = Callable[[Memory], Awaitable[Memory]]
"""What a memory becomes when more is said of it."""


class MemoryFacts:
    """Facts of memories as edges of the graph of their scope."""

    def __init__(self, context: EngineContext, reader: MemoryReader, graphs: GraphAccess) -> None:
        self._context = context
        self._parts = context.parts
        self._reader = reader
        self._graphs = graphs

    async def check(self, home: Source, place: SourceRef, told: Sequence[NewMemory]) -> None:
        """Refuse facts that cannot be stated, and have a graph where there are some to state.

        Raises InvalidInput, or NotAllowed for who may not write into it.
        """
        facts = [each for each in told if each.fact is not None]
        if not facts:
            return
        now = self._parts.clock()
        for each in facts:
            self._graphs.entries(home, place).adding(ends_of_fact(each), [edge_of_fact(each, None, now)])
        await self._graphs.writable(graph_name(scope_of(home.name)), place.collection.id)

    async def stated(
        self,
        home: Source,
        place: SourceRef,
        new: NewMemory,
        done: MemoryWritten,
        before: Memory | None = None,
    ) -> MemoryWritten:
        """A memory whose fact stands in the graph too, and what it stated before no longer."""
        closed: tuple[str, ...] = ()
        if new.fact is not None:
            edge = edge_of_fact(new, done.id, self._parts.clock())
            where = {"graph": graph_name(scope_of(home.name)), "collection": place.collection.id}
            stated = await self._graphs.add_facts(ends_of_fact(new), [edge], **where)
            closed = await self.explain(place, home, done.id, stated[0])
        if before is not None and before.fact is not None:
            await self._take_back(place, home, before, new)
        return replace(done, closed=closed) if closed else done

    async def add(
        self, nodes: Iterable[NewNode], edges: Iterable[NewEdge], *, graph: str, collection: str
    ) -> list[GraphWritten]:
        """Store facts that are checked; what became of the edges."""
        return await self._graphs.add_facts(nodes, edges, graph=graph, collection=collection)

    async def explain(
        self, place: SourceRef, home: Source, memory: str, written: GraphWritten
    ) -> tuple[str, ...]:
        """Say of memories whose facts meet which one ended which, and when; those that this one ended."""
        homes = await self._reader.homes(scope_of(home.name), place.collection.id)
        met = {each.id: each for each in await self._edges_here(home, [*written.closed, written.id])}
        own = met.pop(written.id, None)
        others = [each for each in met.values() if each.evidence not in {None, memory}]
        gone = [str(each.evidence) for each in others if await self._end(homes, home, each)]
        if gone:
            await self._close(homes, memory, *gone)
        if own is None or own.closed_by is None:
            return tuple(gone)
        await self._end(homes, home, replace(own, evidence=memory), kept=False)
        for each in await self._edges_here(home, [own.closed_by]):
            if each.evidence not in {None, memory}:
                await self._close(homes, str(each.evidence), memory, kept=True)
        return tuple(gone)

    async def _take_back(self, place: SourceRef, home: Source, before: Memory, new: NewMemory) -> None:
        """End what a memory stated and does not state any more, unless something else ended it."""
        now, was = self._parts.clock(), as_given(before)
        edge = edge_of_fact(was, before.id, now)
        if new.fact is not None and same_edge(edge, edge_of_fact(new, before.id, now)):
            return
        collection, graph = place.collection.id, graph_name(scope_of(home.name))
        source, _ = await self._graphs.place(graph, collection)
        begins = parse_instant(edge.valid_from or now)
        name = edge_id(source.id, edge.source, edge.target, edge.type, begins)
        for each in await self._graphs.edges_by_id(graph, collection, [name]):
            if each.valid_until is None and each.evidence == before.id:
                ended = replace(edge, valid_until=max(now, begins))
                await self._graphs.add_facts(ends_of_fact(was), [ended], graph=graph, collection=collection)

    async def _edges_here(self, home: Source, edges: list[str]) -> list[Edge]:
        return await self._graphs.edges_by_id(graph_name(scope_of(home.name)), home.collection, edges)

    async def _end(self, homes: MemorySources, home: Source, edge: Edge, *, kept: bool = True) -> bool:
        """Say of the memory of an edge what ended its fact, and when; whether it is there."""

        async def ended(memory: Memory) -> Memory:
            for now in await self._edges_here(home, [edge.id]):
                later = await self._edges_here(home, [now.closed_by] if now.closed_by else [])
                by = later[0].evidence if later else None
                return replace(memory, valid_until=now.valid_until, closed_by=by)
            return memory

        return await self._tell(homes, str(edge.evidence), ended, kept=kept)

    async def _close(self, homes: MemorySources, memory: str, *ended: str, kept: bool = False) -> None:
        """Say of a memory which ones it ended."""

        async def closing(each: Memory) -> Memory:
            return replace(each, closes=tuple(dict.fromkeys((*each.closes, *ended))))

        await self._tell(homes, memory, closing, kept=kept)

    async def _tell(self, homes: MemorySources, memory: str, told: Told, *, kept: bool) -> bool:
        """Say more of a memory, found out anew where it changes meanwhile; whether it is there.

        What it was is `kept` as a version, unless it was stored a moment ago.
        """
        while True:
            stored = await self._reader.stored.documents(homes, [memory])
            found = await self._reader.memories(homes, stored)
            if not found:
                return False
            before, after = found[0], await told(found[0])
            try:
                if after != before:
                    await self._rewrite(homes, before, after, kept=kept)
            except Changed:
                continue
            return True

    async def _rewrite(self, homes: MemorySources, before: Memory, after: Memory, *, kept: bool) -> None:
        if kept:
            await self.revise(homes, before, as_given(after), beside_of(after))
            return
        source = homes.by_id[before.document.source]
        known: dict[str, Json] = {KNOWN_FROM: canonical(before.known_from)}
        fresh = document_of(
            as_given(after), before.scope, now=self._parts.clock(), beside=beside_of(after) | known
        )
        await self._context.write([replace(fresh, expected=before.document.fingerprint)], source)

    async def revise(
        self,
        homes: MemorySources,
        before: Memory,
        new: NewMemory,
        beside: dict[str, Json] | None = None,
    ) -> Written:
        """Put a memory in the place of what it was, which is kept as a version. Raises Changed."""
        source = homes.by_id[before.document.source]
        self._context.may_edit(homes.place, before.document, "change a memory")
        # A clock that was set back makes no version older than the one before it.
        now = max(self._parts.clock(), before.known_from + timedelta(microseconds=1))
        stays = beside_of(before)
        if new.fact != before.fact:
            stays.pop(CLOSED_BY, None)
        fresh = remade(before, new, now=now, beside=stays | (beside or {}))
        try:
            written = await self._context.write([version_of(before, now=now), fresh], source)
        except NotFound as gone:
            raise Changed("memory", before.id) from gone
        return replace(written[1], outcome="updated" if new.text == before.text else "replaced")
