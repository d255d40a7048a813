"""Answer records from windows, recalls and chats."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from conspectus.model.answers import (
    ANSWER_PARTS,
    AnswerCandidate,
    AnswerOptions,
    AnswerPart,
    AnswerRecord,
    AnswerSummary,
)
from conspectus.model.chat import ChatRequest, ChatSource
from conspectus.model.memory import MemoryHit, MemoryQuery, MemoryRetrieval
from conspectus.model.query import Budget, Query, WindowForm
from conspectus.model.results import Citation, ContextWindow, Hit, TraceEntry

PROFILE: Final = "default"
CITATION_BYTES: Final = 400
CANDIDATE_BYTES: Final = 300
"""Bytes of a stored citation without its texts, and of a candidate."""


def options_of_query(query: Query, budget: Budget, form: WindowForm, *, limit: int | None) -> AnswerOptions:
    """Return the options of a window. `limit` is None if as many hits are retrieved as fill it."""
    context = query.query_context
    return AnswerOptions(
        max_tokens=budget.max_tokens,
        tokenizer=budget.tokenizer,
        format=form.format,
        limit=limit,
        filter=query.filter,
        min_similarity=query.min_similarity,
        min_confidence=query.min_confidence,
        min_trust=query.min_trust,
        rerank=query.rerank,
        profile=PROFILE if context is None else context.profile,
        as_of=query.as_of,
    )


def options_of_memory(
    query: MemoryQuery, budget: Budget | None = None, form: WindowForm | None = None
) -> AnswerOptions:
    """Return the options of a recall, or with a budget of a window from memory."""
    return AnswerOptions(
        max_tokens=0 if budget is None else budget.max_tokens,
        tokenizer=AnswerOptions().tokenizer if budget is None else budget.tokenizer,
        format=AnswerOptions().format if form is None else form.format,
        limit=query.limit,
        min_similarity=query.min_similarity,
        min_confidence=query.min_confidence,
        min_trust=query.min_trust,
        as_of=query.as_of,
        scope=query.scope,
    )


def options_of_chat(request: ChatRequest, tokenizer: str) -> AnswerOptions:
    """Return the options of a chat; the budget is that of its context."""
    context = request.query_context
    return AnswerOptions(
        max_tokens=request.allocation.context,
        tokenizer=tokenizer,
        format="guarded",
        filter=request.filter,
        min_similarity=None if request.min_similarity == "default" else request.min_similarity,
        min_confidence=request.min_confidence,
        min_trust=request.min_trust,
        profile=PROFILE if context is None else context.profile,
    )


def record_of_window(summary: AnswerSummary, options: AnswerOptions, window: ContextWindow) -> AnswerRecord:
    """Return the record of a window."""
    return AnswerRecord(
        summary=replace(summary, passages=len(window.citations), tokens=window.tokens),
        options=options,
        text=window.text,
        citations=window.citations,
        candidates=candidates_of_trace(window.trace),
        confidence=window.confidence,
    )


def candidates_of_trace(trace: Iterable[TraceEntry]) -> tuple[AnswerCandidate, ...]:
    """Return the candidates of a trace, without the texts in it."""
    return tuple(
        AnswerCandidate(
            candidate.rank,
            candidate.chunk,
            candidate.document,
            candidate.start,
            candidate.end,
            candidate.score,
            candidate.parts,
            candidate.status,
            candidate.tokens,
        )
        for candidate in trace
    )


def documents_of_window(window: ContextWindow, hits: Iterable[Hit] = ()) -> set[str]:
    """Return the documents whose texts or names a window has: its candidates, and what supersedes them."""
    documents = {citation.document for citation in window.citations}
    documents |= {candidate.document for candidate in window.trace}
    documents |= {successor.document for hit in hits for successor in hit.superseded_by}
    return documents


def record_of_recall(
    summary: AnswerSummary, options: AnswerOptions, retrieval: MemoryRetrieval
) -> AnswerRecord:
    """Return the record of a recall, with its memories as numbered lines."""
    lines = [f"[{number}] {hit.memory.text}" for number, hit in enumerate(retrieval.memories, 1)]
    return AnswerRecord(
        summary=replace(summary, passages=len(lines)),
        options=options,
        text="\n".join(lines),
        citations=tuple(_memory_citation(number, hit) for number, hit in enumerate(retrieval.memories, 1)),
        candidates=tuple(_memory_candidate(rank, hit) for rank, hit in enumerate(retrieval.memories, 1)),
        confidence=retrieval.confidence,
    )


def documents_of_recall(retrieval: MemoryRetrieval) -> set[str]:
    """Return the documents of the memories of a recall."""
    return {str(hit.memory.document.id) for hit in retrieval.memories}


def _memory_citation(number: int, hit: MemoryHit) -> Citation:
    document = hit.memory.document
    return Citation(
        number=number,
        document=document.id,
        source=document.source,
        key=document.key,
        title=document.title,
        start=0,
        end=document.characters,
        chunks=(),
        location=document.location,
        trust=document.trust,
    )


def _memory_candidate(rank: int, hit: MemoryHit) -> AnswerCandidate:
    document = hit.memory.document
    return AnswerCandidate(
        rank=rank,
        chunk=0,
        document=document.id,
        start=0,
        end=document.characters,
        score=hit.score,
        parts=hit.parts,
        status="included",
        tokens=0,
    )


def citations_of_sources(sources: Sequence[ChatSource]) -> tuple[Citation, ...]:
    """Return the sources of a chat as citations."""
    return tuple(
        Citation(
            number=source.number,
            document=source.document,
            source=source.source,
            key=source.key,
            title=source.title,
            start=source.start,
            end=source.end,
            chunks=(),
            page=source.page,
            heading=source.heading,
            location=source.location,
            trust=source.trust,
            read_by=source.read_by,
            table_header=source.table_header,
        )
        for source in sources
    )


def candidates_of_hits(hits: Sequence[Hit], sources: Sequence[ChatSource]) -> tuple[AnswerCandidate, ...]:
    """Return hits as candidates: those of the documents of the sources are in the prompt."""
    included = {source.document for source in sources}
    return tuple(
        AnswerCandidate(
            rank=rank,
            chunk=hit.chunk.id,
            document=hit.document.id,
            start=hit.chunk.start,
            end=hit.chunk.end,
            score=hit.score,
            parts=hit.parts,
            status="included" if hit.document.id in included else "over_budget",
            tokens=0,
        )
        for rank, hit in enumerate(hits, 1)
    )


def without_surplus(record: AnswerRecord, max_bytes: int) -> AnswerRecord | None:
    """Return a record of at most so many bytes, without some of its parts; None if it is still too large."""
    left_out: list[AnswerPart] = [*record.left_out]
    for part in (None, *ANSWER_PARTS):
        if part is not None and part not in left_out:
            left_out.append(part)
            record = _without_part(record, part, tuple(left_out))
        if size_of(record) <= max_bytes:
            return record
    return None


def size_of(record: AnswerRecord) -> int:
    """Return the approximate size of a record in bytes."""
    texts = [record.summary.question, record.text, record.answer]
    texts += [message.content for message in record.prompt]
    for citation in record.citations:
        texts += [citation.title, citation.key or "", citation.heading or "", citation.table_header or ""]
    rows = len(record.citations) * CITATION_BYTES + len(record.candidates) * CANDIDATE_BYTES
    return rows + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _without_part(record: AnswerRecord, part: AnswerPart, left_out: tuple[AnswerPart, ...]) -> AnswerRecord:
    match part:
        case "prompt":
            return replace(record, prompt=(), left_out=left_out)
        case "candidates":
            return replace(record, candidates=(), left_out=left_out)
    return replace(record, answer="", left_out=left_out)
