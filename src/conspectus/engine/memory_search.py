"""Memory search: hits, notes and the newest turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import among
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.searcher import Searcher
from conspectus.engine.windows import WindowBuilder, window_budget
from conspectus.memory.documents import (
    as_of_filter,
    ended,
    memory_filter,
    recent,
    source_remark,
    validity_remark,
)
from conspectus.memory.scopes import reaches, scope_of
from conspectus.model.filter import And, document_row, matches, with_min_trust
from conspectus.model.ids import DocumentId
from conspectus.model.memory import (
    FoundAs,
    Memory,
    MemoryHit,
    MemoryQuery,
    MemoryRetrieval,
    MemoryWindow,
    RecentMemory,
    Scope,
)
from conspectus.model.query import Budget, Query, WindowForm
from conspectus.model.records import StoredChunk
from conspectus.model.results import Hit, Retrieval
from conspectus.model.trust import least
from conspectus.retrieval.query_checks import checked_query
from conspectus.text.times import render
from conspectus.window.build import WindowOptions
from conspectus.window.stable import Previous

NOTE = "note"
LAST = "recent_turn"
ENDED = "fact_ended"
"""Parts of scores. The first two rank notes and recent turns before all hits."""
NOTE_SCORE, LAST_SCORE, ENDED_SCORE = 3.0, 2.0, -0.2
MAX_NOTES = 200
RECENT_SHARE = 0.5
"""The maximum fraction of a window for the newest turns."""


@dataclass(frozen=True, slots=True)
class PinnedNotes:
    """The fixed part of a window: notes, and the newest turns, oldest first."""

    notes: tuple[Memory, ...] = ()
    recent: tuple[RecentMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedMemoryQuery:
    """A query with its sources, reference time, and vector."""

    query: MemoryQuery
    memory_sources: MemorySources
    at: datetime
    vector: tuple[float, ...] | None = None


class MemorySearch(Service, checked=False):
    """Searches memories and builds context windows."""

    def __init__(self, context: EngineContext, searcher: Searcher) -> None:
        super().__init__(context)
        self._reader = MemoryReader(context)
        self._searcher = searcher

    async def recall(self, query: MemoryQuery) -> MemoryRetrieval:
        """Return the memories of a scope for a query, best first, each with the parts of its score."""
        resolved = await self._memory_query(query)
        memory_sources, at = resolved.memory_sources, resolved.at
        retrieval = await self._answers(resolved, query.limit)
        texts = await self._read_texts(retrieval.hits)
        last = {turn.memory.id for turn in await self._read_last_turns(query, memory_sources)}
        recalled: dict[str, MemoryHit] = {}
        hits = [hit for hit in retrieval.hits if hit.document.id in texts]
        memories = [memory_in(memory_sources, hit.document, texts[hit.document.id]) for hit in hits]
        for memory, hit in zip(await self._reader.present(memory_sources, memories), hits, strict=True):
            recalled.setdefault(memory.id, _to_memory_hit(memory, hit, memory.id in last, at))
        return MemoryRetrieval(
            outcome="found" if recalled else "no_match",
            memories=tuple(recalled.values())[: query.limit],
            plan=retrieval.plan,
            notices=retrieval.notices,
            timings=retrieval.timings,
            since=None if query.as_of is None else await memory_sources.since(query.as_of),
            confidence=retrieval.confidence,
        )

    async def _read_texts(self, hits: Sequence[Hit]) -> Mapping[DocumentId, str]:
        """Return the full texts of hits, most of which are one chunk, without those deleted meanwhile."""
        short = {
            hit.document.id: hit.chunk.text
            for hit in hits
            if hit.document.chunks == 1 and len(hit.chunk.text) == hit.document.characters
        }
        rest = [hit.document for hit in hits if hit.document.id not in short]
        return {**short, **await self._authorized.texts(rest)} if rest else short

    async def window(self, query: MemoryQuery, max_tokens: int | Budget, form: WindowForm) -> MemoryWindow:
        """Build the window of the next turn: notes, the newest turns, and hits for the query."""
        budget = window_budget(max_tokens, self._parts.settings)
        resolved = await self._memory_query(query)
        at = resolved.at
        standing = await self._fixed_part(resolved, budget)
        first = await self._fixed_hits(standing)
        fixed_ids = {hit.document.id for hit in first}

        async def search(limit: int) -> Retrieval:
            retrieval = await self._answers(resolved, limit)
            rest = [_with_remarks(hit, at) for hit in retrieval.hits if hit.document.id not in fixed_ids]
            hits = (*(_with_remarks(hit, at) for hit in first), *rest)
            return replace(retrieval, outcome="found" if hits else retrieval.outcome, hits=hits)

        before = await self._previous(form.previous, resolved, first) if form.previous else None
        how = WindowBuilder(options=WindowOptions(previous=before))
        window = await self._searcher.fill_window(search, budget, form, how)
        cited = {citation.document for citation in window.citations}
        return MemoryWindow(
            text=window.text,
            tokens=window.tokens,
            notes=tuple(note for note in standing.notes if note.document.id in cited),
            recent=tuple(turn for turn in standing.recent if turn.memory.id in cited),
            window=window,
        )

    async def _previous(self, state: str, resolved: ResolvedMemoryQuery, first: Sequence[Hit]) -> Previous:
        """Return the window with a state, with those of its memories that the query may show."""
        query, memory_sources = resolved.query, resolved.memory_sources
        filter = with_min_trust(And((as_of_filter(query.as_of), memory_filter())), query.min_trust)
        fixed_hits = {hit.chunk.id: hit for hit in first}

        def allowed(row: StoredChunk) -> bool:
            document = row.document
            return document.source in memory_sources.by_id and matches(filter, document_row(document))

        def add_remarks(hit: Hit) -> Hit:
            return _with_remarks(fixed_hits.get(hit.chunk.id, hit), resolved.at)

        return await self._searcher.previous_where(state, allowed, add_remarks)

    async def _memory_query(self, query: MemoryQuery) -> ResolvedMemoryQuery:
        scope = replace(query.scope, conversation=None) if query.all_conversations else query.scope
        memory_sources = await self._reader.memory_sources(scope, query.collection)
        index_query = Query(query.query, collection=memory_sources.access.collection.id)
        embedded = (
            await self._searcher.embed_query(index_query, memory_sources.access.collection.space)
            if memory_sources.sources
            else index_query
        )
        return ResolvedMemoryQuery(query, memory_sources, query.as_of or self._parts.clock(), embedded.vector)

    async def _answers(self, resolved: ResolvedMemoryQuery, limit: int) -> Retrieval:
        """Return the hits of the scope. Facts that have ended rank slightly lower."""
        query, memory_sources = resolved.query, resolved.memory_sources
        graph = query.graph
        if graph is not None and graph.graphs is None:
            graph = replace(graph, graphs=())
        index_query = Query(
            query.query,
            collection=memory_sources.access.collection.id,
            filter=And((memory_sources.filter, memory_filter())),
            limit=limit,
            min_similarity=query.min_similarity,
            min_confidence=query.min_confidence,
            vector=resolved.vector,
            as_of=query.as_of,
            graph=graph,
            min_trust=query.min_trust,
        )
        index_query = checked_query(index_query, {}, self._parts.settings)
        if not memory_sources.sources:
            return Retrieval("no_match", ())
        graphs = () if graph is None else await self._reader.graphs_of(query.scope, memory_sources.access)
        retrieval = await self._searcher.finish(
            index_query,
            await self._searcher.search_collection(index_query, memory_sources.access, graphs=graphs),
        )
        hits = [_rank_ended_lower(hit, resolved.at) for hit in retrieval.hits]
        hits.sort(key=lambda hit: (-hit.score, hit.chunk.id))
        return replace(retrieval, hits=tuple(hits))

    async def _read_last_turns(self, query: MemoryQuery, memory_sources: MemorySources) -> list[RecentMemory]:
        """Return the newest turns of the conversation; none without one, or as of another time."""
        if query.scope.conversation is None or query.as_of is not None or not memory_sources.sources:
            return []
        turns = await self._reader.recent(
            scope=query.scope,
            collection=query.collection,
            limit=query.recent,
            max_tokens=query.recent_tokens,
        )
        lowest = query.min_trust or "untrusted"
        return [turn for turn in turns if least(turn.memory.document.trust, lowest) == lowest]

    async def _fixed_part(self, resolved: ResolvedMemoryQuery, budget: Budget) -> PinnedNotes:
        query = resolved.query
        count = self._parts.counter(budget.tokenizer)
        room = max(budget.max_tokens - budget.reserved_tokens, 0)
        left = int(room * query.notes_share)
        notes: list[Memory] = []
        for note in await self._read_notes(resolved) if left else ():
            cost = count(note.text)
            if cost <= left:
                notes.append(note)
                left -= cost
        turns = [turn.memory for turn in await self._read_last_turns(query, resolved.memory_sources)][::-1]
        settings = self._parts.settings
        tokens = settings.recent_memory_tokens if query.recent_tokens is None else query.recent_tokens
        maximum = min(tokens, int(room * RECENT_SHARE))
        last = recent(turns, turns=len(turns), tokens=maximum, count=count)
        return PinnedNotes(tuple(notes), tuple(last))

    async def _read_notes(self, resolved: ResolvedMemoryQuery) -> list[Memory]:
        """Return the trusted notes of the scope: those relevant to the query first, then the newest."""
        query, access = resolved.query, resolved.memory_sources.access
        wide = await self._reader.memory_sources(Scope(query.scope.user), query.collection)
        source_ids = {source.id for source in wide.sources if reaches(scope_of(source.name), query.scope)}
        rows = await wide.notes(source_ids, limit=MAX_NOTES)
        now = [memory_in(wide, document, text) for document, text in rows if document.trust == "trusted"]
        there = now if query.as_of is None else await _notes_at(wide, now, query.as_of)
        seen = {memory.document.id: memory for memory in await self._reader.present(wide, there)}
        if not seen or not query.query.strip():
            return list(seen.values())
        index_query = Query(
            query.query,
            collection=access.collection.id,
            filter=And((among(source_ids), memory_filter("note"))),
            limit=min(len(seen), MAX_NOTES),
            vector=resolved.vector,
            as_of=query.as_of,
        )
        retrieval = await self._searcher.search_collection(
            checked_query(index_query, {}, self._parts.settings), access
        )
        order = [hit.document.id for hit in retrieval.hits if hit.document.id in seen]
        return [seen[name] for name in dict.fromkeys((*order, *seen))]

    async def _fixed_hits(self, standing: PinnedNotes) -> list[Hit]:
        """Return the fixed part as hits that rank first; a truncated turn has the rest of its text."""
        texts = {turn.memory.id: turn.text for turn in standing.recent if turn.cut}
        scores = {str(note.document.id): (NOTE, NOTE_SCORE) for note in standing.notes}
        scores |= {turn.memory.id: (LAST, LAST_SCORE) for turn in standing.recent}
        hits = []
        for row in await self._authorized.beginnings(list(scores)):
            name, score = scores[row.document.id]
            text = texts.get(row.document.id, row.chunk.text)
            chunk = replace(row.chunk, text=text)
            hits.append(Hit(chunk, row.document, score, {name: score}, None, None))
        return hits


async def _notes_at(
    memory_sources: MemorySources, notes: Sequence[Memory], instant: datetime
) -> list[Memory]:
    """Return the texts of these notes at an instant, of those that existed as notes then."""
    memories = []
    for history in await memory_sources.histories([note.document for note in notes]):
        for memory in (memory_in(memory_sources, document, text) for document, text in history):
            until = memory.known_until
            if memory.known_from <= instant and (until is None or until > instant) and memory.kind == "note":
                memories.append(memory)
    return memories


def _to_memory_hit(memory: Memory, hit: Hit, is_last: bool, at: datetime) -> MemoryHit:
    origins: list[FoundAs] = ["note" if memory.kind == "note" else "long_term"]
    if is_last:
        origins.insert(0, "recent")
    return MemoryHit(
        memory=memory,
        score=hit.score,
        parts=hit.parts,
        origins=tuple(origins),
        similarity=hit.similarity,
        through=hit.through,
        why=_reasons(memory, hit.through, at),
    )


def _reasons(memory: Memory, through: Sequence[str], at: datetime) -> tuple[str, ...]:
    """Return the reasons that a memory's score refers to."""
    why = [f"found through {' → '.join(through)}"] if through else []
    if memory.cites is not None:
        why.append(f"{memory.kind} extracted from {memory.cites.memory}: “{memory.cites.quote}”")
    if memory.valid_until is not None:
        by = f", ended by {memory.closed_by}" if memory.closed_by else ""
        tense = "was" if memory.valid_until <= at else "is"
        why.append(f"{tense} true until {render(memory.valid_until)}{by}")
    if memory.closes:
        why.append(f"ended {', '.join(memory.closes)}")
    if memory.near:
        why.append(f"says nearly the same as {', '.join(memory.near)}")
    if memory.known_until is not None:
        why.append(f"was changed at {render(memory.known_until)}")
    return tuple(why)


def _rank_ended_lower(hit: Hit, at: datetime) -> Hit:
    if not ended(hit.document, at):
        return hit
    parts = {**hit.parts, ENDED: ENDED_SCORE}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _with_remarks(hit: Hit, at: datetime) -> Hit:
    """State in the text of a memory what it was extracted from, and if it is not valid at that time."""
    remarks = " ".join(filter(None, (source_remark(hit.document), validity_remark(hit.document, at))))
    return replace(hit, chunk=replace(hit.chunk, text=f"{hit.chunk.text} {remarks}")) if remarks else hit
