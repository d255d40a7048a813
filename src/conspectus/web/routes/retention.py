"""Memories on their way: how long they are kept, what is forgotten, and how they are carried elsewhere."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Response

from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    MemoryExport,
    MemoryReceipt,
    MemoryStats,
    MemoryWritten,
    RetentionRule,
)
from conspectus.web.deps import After, EngineOf, Unhurried
from conspectus.web.logs import API
from conspectus.web.memories import MEMORIES, InMemory, OfScope, spelt
from conspectus.web.ndjson import LINES, SENT_AS_LINES
from conspectus.web.openapi import Responses, Section, accepted, problems
from conspectus.web.schemas.base import INT64
from conspectus.web.schemas.jobs import JobAnswer
from conspectus.web.schemas.memories import (
    ApplyRetentionBody,
    ForgetBody,
    MemoryLinesBody,
    RetentionBody,
    RetentionJobBody,
)
from conspectus.web.schemas.memory_answers import (
    ConversationAnswer,
    ForgetReceiptAnswer,
    MemoryExportAnswer,
    MemoryStatsAnswer,
    RememberedAnswer,
    RetentionRuleAnswer,
)

router = Section("memory", dependencies=[Depends(spelt)])
RETENTIONS = f"{MEMORIES}/retention"
OR_LINES: Responses = {200: {"content": LINES}, **problems()}
MostLines = Annotated[int | None, Query(ge=-INT64, lt=INT64, description="Most lines on a page.")]


@router.post(
    f"{MEMORIES}/forget", response_model=ForgetReceiptAnswer, responses=problems(), dependencies=[Unhurried]
)
async def forget(body: ForgetBody, engine: EngineOf) -> MemoryReceipt:
    """Delete memories of a scope: by ids, by age, or all; with `preview`, say what would go."""
    return await engine.memory.forget(
        body.what(),
        scope=body.scope(),
        collection=body.collection,
        preview=body.preview,
        purge=body.purge,
    )


@router.get(RETENTIONS, response_model=list[RetentionRuleAnswer], responses=problems())
async def list_retentions(engine: EngineOf, *, collection: InMemory = MEMORY) -> Sequence[RetentionRule]:
    """The retentions of a collection, with when each was last carried out."""
    return await engine.retention.list(collection=collection)


@router.put(RETENTIONS, status_code=204, responses=problems())
async def retain(body: RetentionBody, engine: EngineOf) -> None:
    """Keep a retention for a scope, in place of the one that it has."""
    await engine.retention.set(body.retention(), scope=body.scope(), collection=body.collection)


@router.delete(RETENTIONS, status_code=204, responses=problems())
async def retain_all(whose: OfScope, engine: EngineOf) -> None:
    """Let a scope have no retention of its own any more."""
    await engine.retention.set(None, **whose.told)


@router.post(
    f"{RETENTIONS}/apply",
    response_model=ForgetReceiptAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def apply_retention(body: ApplyRetentionBody, engine: EngineOf) -> MemoryReceipt:
    """Carry retentions out now; with `preview`, say what would go."""
    scope = None if body.scope is None else body.scope.scope()
    return await engine.retention.apply(collection=body.collection, scope=scope, preview=body.preview)


@router.post(f"{RETENTIONS}/start", response_model=JobAnswer, status_code=202, responses=accepted())
async def start_retention(body: RetentionJobBody, engine: EngineOf, response: Response) -> JobAnswer:
    """Carry all retentions of a collection out by a job."""
    job = JobAnswer.model_validate(await engine.retention.start_job(collection=body.collection))
    response.headers["Location"] = f"{API}/jobs/{job.id}"
    return job


@router.get(f"{MEMORIES}/conversations", response_model=list[ConversationAnswer], responses=problems())
async def list_conversations(whose: OfScope, engine: EngineOf) -> Sequence[ConversationSummary]:
    """The conversations of a scope in numbers."""
    return await engine.memory.conversations(**whose.told)


@router.get(f"{MEMORIES}/stats", response_model=MemoryStatsAnswer, responses=problems())
async def memory_stats(whose: OfScope, engine: EngineOf) -> MemoryStats:
    """A scope in numbers."""
    return await engine.memory.stats(**whose.told)


@router.get(f"{MEMORIES}/export", response_model=MemoryExportAnswer, responses=OR_LINES)
async def export_memories(
    whose: OfScope, engine: EngineOf, *, after: After = None, limit: MostLines = None
) -> MemoryExport:
    """A page of memories as lines, complete with times, versions and entities; as JSON lines, all of them."""
    return await engine.memory.export(**whose.told, after=after, limit=limit)


@router.post(
    f"{MEMORIES}/import",
    response_model=list[RememberedAnswer],
    responses=problems(),
    dependencies=[Unhurried],
    openapi_extra=SENT_AS_LINES,
)
async def import_memories(body: MemoryLinesBody, engine: EngineOf) -> Sequence[MemoryWritten]:
    """Take in lines of an export; again changes nothing."""
    scope = None if body.scope is None else body.scope.scope()
    return await engine.memory.import_lines(body.lines, collection=body.collection, scope=scope)
