"""Memory search: hits, notes and the newest turns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from conspectus.access.memory_reader import MemorySources
from conspectus.access.policy import among
from conspectus.deferred import dataclass
from conspectus.engine.answer_parts import (
    documents_of_recall,
    documents_of_window,
    options_of_memory,
    record_of_recall,
    record_of_window,
)
from conspectus.engine.answer_recorder import AnswerRecorder
from conspectus.engine.context import EngineContext
from conspectus.engine.memory_reads import MemoryReader, memory_in
from conspectus.engine.searcher import Searcher
from conspectus.engine.service import Service
from conspectus.engine.windows import WindowPlan, window_budget
from conspectus.memory.documents import as_of_filter, has_ended, memory_filter, source_remark, validity_remark
from conspectus.memory.recent_turns import recent
from conspectus.memory.scopes import applies_in, scope_of
from conspectus.model.answers import AnswerSummary
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
from conspectus.model.results import Hit, Outcome, Retrieval
from conspectus.model.trust import least
from conspectus.retrieval.query_checks import check_query
from conspectus.retrieval.statements import EARLIER_PART, LATER_PART
from conspectus.text.clean import clean
from conspectus.text.times import render
from conspectus.window.build import WindowOptions
from conspectus.window.stable import Previous

NOTE_PART, NOTE_SCORE = "note", 3.0
RECENT_TURN_PART, RECENT_TURN_SCORE = "recent_turn", 2.0
"""Parts of scores that rank notes, then recent turns, before all hits."""
FACT_ENDED_PART, FACT_ENDED_SCORE = "fact_ended", -0.2
"""The part of a score that ranks facts which have ended slightly lower."""
MAX_NOTES = 200
MAX_RECENT_SHARE = 0.5
"""The maximum fraction of a window for the newest turns."""


@dataclass(frozen=True, slots=True)
class FixedPart:
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
        self._recorder = AnswerRecorder(context)

    async def recall(self, query: MemoryQuery) -> MemoryRetrieval:
        """Return the memories of a scope for a query, best first, each with the parts of its score."""
        beginning = self._recorder.begin("recall")
        resolved = await self._resolve(query)
        memory_sources, at = resolved.memory_sources, resolved.at
        retrieval = await self._search(resolved, query.limit)
        texts = await self._read_texts(retrieval.hits)
        recent_ids = {turn.memory.id for turn in await self._read_recent_turns(query, memory_sources)}
        memory_hits: dict[str, MemoryHit] = {}
        hits = [hit for hit in retrieval.hits if hit.document.id in texts]
        memories = [memory_in(memory_sources, hit.document, texts[hit.document.id]) for hit in hits]
        for memory, hit in zip(await self._reader.present(memory_sources, memories), hits, strict=True):
            is_recent = memory.id in recent_ids
            memory_hits.setdefault(memory.id, _to_memory_hit(memory, hit, at, is_recent=is_recent))
        memory_hits = _with_statement_reasons(memory_hits)
        recalled = MemoryRetrieval(
            outcome="found" if memory_hits else "no_match",
            memories=tuple(memory_hits.values())[: query.limit],
            plan=retrieval.plan,
            notices=retrieval.notices,
            timings=retrieval.timings,
            since=None if query.as_of is None else await memory_sources.since(query.as_of),
            confidence=retrieval.confidence,
        )
        if beginning is None:
            return recalled
        summary = _summary_of(beginning, resolved, recalled.outcome)
        record = record_of_recall(summary, options_of_memory(query), recalled)
        return replace(recalled, answer=await self._recorder.keep(record, documents_of_recall(recalled)))

    async def _read_texts(self, hits: Sequence[Hit]) -> Mapping[DocumentId, str]:
        """Return the full texts of hits, most of which are one chunk, without those deleted meanwhile."""
        one_chunk_texts = {
            hit.document.id: hit.chunk.text
            for hit in hits
            if hit.document.chunks == 1 and len(hit.chunk.text) == hit.document.characters
        }
        longer = [hit.document for hit in hits if hit.document.id not in one_chunk_texts]
        if not longer:
            return one_chunk_texts
        return {**one_chunk_texts, **await self._authorized.texts(longer)}

    async def window(self, query: MemoryQuery, max_tokens: int | Budget, form: WindowForm) -> MemoryWindow:
        """Build the window of the next turn: notes, the newest turns, and hits for the query."""
        budget = window_budget(max_tokens, self._parts.settings)
        beginning = self._recorder.begin("window")
        resolved = await self._resolve(query)
        at = resolved.at
        fixed_part = await self._read_fixed_part(resolved, budget)
        fixed_hits = await self._make_fixed_hits(fixed_part)
        fixed_ids = {hit.document.id for hit in fixed_hits}

        async def search(limit: int) -> Retrieval:
            retrieval = await self._search(resolved, limit)
            others = [hit for hit in retrieval.hits if hit.document.id not in fixed_ids]
            hits = tuple(_with_remarks(hit, at) for hit in (*fixed_hits, *others))
            return replace(retrieval, outcome="found" if hits else retrieval.outcome, hits=hits)

        previous = await self._previous(form.previous, resolved, fixed_hits) if form.previous else None
        window_plan = WindowPlan(options=WindowOptions(previous=previous))
        window = await self._searcher.fill_window(search, budget, form, window_plan)
        if beginning is not None:
            summary = _summary_of(beginning, resolved, window.outcome)
            record = record_of_window(summary, options_of_memory(query, budget, form), window)
            kept_id = await self._recorder.keep(record, documents_of_window(window))
            window = replace(window, answer=kept_id)
        cited = {citation.document for citation in window.citations}
        return MemoryWindow(
            text=window.text,
            tokens=window.tokens,
            notes=tuple(note for note in fixed_part.notes if note.document.id in cited),
            recent=tuple(turn for turn in fixed_part.recent if turn.memory.id in cited),
            window=window,
        )

    async def _previous(
        self, state: str, resolved: ResolvedMemoryQuery, fixed_hits: Sequence[Hit]
    ) -> Previous:
        """Return the window with a state, with those of its memories that the query allows."""
        query, memory_sources = resolved.query, resolved.memory_sources
        filter = with_min_trust(And((as_of_filter(query.as_of), memory_filter())), query.min_trust)
        fixed_hits_by_chunk = {hit.chunk.id: hit for hit in fixed_hits}

        def is_allowed(row: StoredChunk) -> bool:
            document = row.document
            return document.source in memory_sources.by_id and matches(filter, document_row(document))

        def add_remarks(hit: Hit) -> Hit:
            return _with_remarks(fixed_hits_by_chunk.get(hit.chunk.id, hit), resolved.at)

        return await self._searcher.previous_where(state, is_allowed, add_remarks)

    async def _resolve(self, query: MemoryQuery) -> ResolvedMemoryQuery:
        scope = replace(query.scope, conversation=None) if query.all_conversations else query.scope
        memory_sources = await self._reader.memory_sources(scope, query.collection)
        collection = memory_sources.access.collection
        index_query = Query(query.query, collection=collection.id)
        if memory_sources.sources:
            index_query = await self._searcher.embed_query(index_query, collection.space)
        at = query.as_of or self._parts.clock()
        return ResolvedMemoryQuery(query, memory_sources, at, index_query.vector)

    async def _search(self, resolved: ResolvedMemoryQuery, limit: int) -> Retrieval:
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
        index_query = check_query(index_query, {}, self._parts.settings)
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

    async def _read_recent_turns(
        self, query: MemoryQuery, memory_sources: MemorySources
    ) -> list[RecentMemory]:
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

    async def _read_fixed_part(self, resolved: ResolvedMemoryQuery, budget: Budget) -> FixedPart:
        """Return the notes and the newest turns that fit into their shares of a window."""
        query = resolved.query
        count = self._parts.counter(budget.tokenizer)
        window_tokens = max(budget.max_tokens - budget.reserved_tokens, 0)
        note_tokens = int(window_tokens * query.notes_share)
        notes: list[Memory] = []
        for note in await self._read_notes(resolved) if note_tokens else ():
            tokens = count(note.text)
            if tokens <= note_tokens:
                notes.append(note)
                note_tokens -= tokens
        recent_tokens = query.recent_tokens
        if recent_tokens is None:
            recent_tokens = self._parts.settings.recent_memory_tokens
        recent_tokens = min(recent_tokens, int(window_tokens * MAX_RECENT_SHARE))
        oldest_first = await self._read_recent_turns(query, resolved.memory_sources)
        turns = [turn.memory for turn in reversed(oldest_first)]
        recent_turns = recent(turns, turns=len(turns), tokens=recent_tokens, count=count)
        return FixedPart(tuple(notes), tuple(recent_turns))

    async def _read_notes(self, resolved: ResolvedMemoryQuery) -> list[Memory]:
        """Return the trusted notes of the scope: those relevant to the query first, then the newest."""
        query, access = resolved.query, resolved.memory_sources.access
        user_sources = await self._reader.memory_sources(Scope(query.scope.user), query.collection)
        source_ids = {
            source.id for source in user_sources.sources if applies_in(scope_of(source.name), query.scope)
        }
        rows = await user_sources.notes(source_ids, limit=MAX_NOTES)
        notes = [
            memory_in(user_sources, document, text) for document, text in rows if document.trust == "trusted"
        ]
        if query.as_of is not None:
            notes = await _notes_at(user_sources, notes, query.as_of)
        by_id = {note.document.id: note for note in await self._reader.present(user_sources, notes)}
        if not by_id or not query.query.strip():
            return list(by_id.values())
        index_query = Query(
            query.query,
            collection=access.collection.id,
            filter=And((among(source_ids), memory_filter("note"))),
            limit=min(len(by_id), MAX_NOTES),
            vector=resolved.vector,
            as_of=query.as_of,
        )
        retrieval = await self._searcher.search_collection(
            check_query(index_query, {}, self._parts.settings), access
        )
        relevant = [hit.document.id for hit in retrieval.hits if hit.document.id in by_id]
        return [by_id[id] for id in dict.fromkeys((*relevant, *by_id))]

    async def _make_fixed_hits(self, fixed_part: FixedPart) -> list[Hit]:
        """Return the fixed part as hits that rank first; those of truncated turns have the truncated text."""
        truncated_texts = {turn.memory.id: turn.text for turn in fixed_part.recent if turn.cut}
        scores = {str(note.document.id): (NOTE_PART, NOTE_SCORE) for note in fixed_part.notes}
        scores |= {turn.memory.id: (RECENT_TURN_PART, RECENT_TURN_SCORE) for turn in fixed_part.recent}
        hits = []
        for row in await self._authorized.beginnings(list(scores)):
            part, score = scores[row.document.id]
            text = truncated_texts.get(row.document.id, row.chunk.text)
            chunk = replace(row.chunk, text=text)
            hits.append(Hit(chunk, row.document, score, {part: score}, None, None))
        return hits


async def _notes_at(
    memory_sources: MemorySources, notes: Sequence[Memory], instant: datetime
) -> list[Memory]:
    """Return the versions of these notes at an instant, without those that were no notes then."""
    past_notes = []
    for history in await memory_sources.histories([note.document for note in notes]):
        for document, text in history:
            version = memory_in(memory_sources, document, text)
            until = version.known_until
            was_known = version.known_from <= instant and (until is None or until > instant)
            if was_known and version.kind == "note":
                past_notes.append(version)
    return past_notes


def _summary_of(beginning: AnswerSummary, resolved: ResolvedMemoryQuery, outcome: Outcome) -> AnswerSummary:
    """Return the summary of an answer record."""
    collection = resolved.memory_sources.access.collection.id
    return replace(beginning, question=clean(resolved.query.query), collection=collection, outcome=outcome)


def _to_memory_hit(memory: Memory, hit: Hit, at: datetime, *, is_recent: bool) -> MemoryHit:
    origins: list[FoundAs] = ["note" if memory.kind == "note" else "long_term"]
    if is_recent:
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
    """Return explanations of a hit: its path in the graph, its source, and what ended or replaced it."""
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


def _with_statement_reasons(hits: Mapping[str, MemoryHit]) -> dict[str, MemoryHit]:
    """Return the hits by memory; those that are ordered by time name the other statements among them."""
    earlier = [id for id, hit in hits.items() if hit.parts.get(EARLIER_PART)]
    later = [id for id, hit in hits.items() if hit.parts.get(LATER_PART)]
    explained = dict(hits)
    for id in {*earlier, *later}:
        others = {
            "said later, probably about the same, than": earlier if id in later else [],
            "said earlier, probably about the same, than": later if id in earlier else [],
        }
        for words, ids in others.items():
            named = [other for other in ids if other != id]
            if named:
                why = (*explained[id].why, f"{words} {', '.join(named)}")
                explained[id] = replace(explained[id], why=why)
    return explained


def _rank_ended_lower(hit: Hit, at: datetime) -> Hit:
    if not has_ended(hit.document, at):
        return hit
    parts = {**hit.parts, FACT_ENDED_PART: FACT_ENDED_SCORE}
    return replace(hit, parts=parts, score=sum(parts.values()))


def _with_remarks(hit: Hit, at: datetime) -> Hit:
    """Append to the text of a memory what it was extracted from, and that it is not valid at that time."""
    remarks = " ".join(filter(None, (source_remark(hit.document), validity_remark(hit.document, at))))
    if not remarks:
        return hit
    return replace(hit, chunk=replace(hit.chunk, text=f"{hit.chunk.text} {remarks}"))
