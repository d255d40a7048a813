"""Memories: the operations of the table, and by hand what they do not cover."""

from fastapi import Depends

from conspectus.model.memory import MemoryReceipt, MemorySelection
from conspectus.model.records import Written
from conspectus.operations import MEMORY_OPERATIONS
from conspectus.web.deps import EngineOf, IfMatch, Purge, Unhurried, fingerprint_in
from conspectus.web.memories import MEMORIES, MemoryId, OfScope, spelt
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import response_model
from conspectus.web.schemas.memories import MemoryChange, RetentionBody

router = Section("memory", dependencies=[Depends(spelt)])
RETENTION = f"{MEMORIES}/retention"


@router.put(RETENTION, status_code=204, responses=problems())
async def retain(body: RetentionBody, engine: EngineOf) -> None:
    """Keep a retention for a scope, in place of the one that it has."""
    await engine.retention.set(body.retention(), scope=body.scope(), collection=body.collection)


@router.delete(RETENTION, status_code=204, responses=problems())
async def retain_all(whose: OfScope, engine: EngineOf) -> None:
    """Let a scope have no retention of its own any more."""
    await engine.retention.set(None, **whose.told)


@router.patch(
    f"{MEMORIES}/{{memory}}",
    response_model=response_model(Written),
    responses=problems(412),
    dependencies=[Unhurried],
)
async def update_memory(
    memory: MemoryId, body: MemoryChange, whose: OfScope, engine: EngineOf, if_match: IfMatch = None
) -> Written:
    """Change the fields that are named, and keep the version before; with If-Match, only what was read."""
    expected = await fingerprint_in(if_match, memory, engine)
    return await engine.memory.update(memory, **whose.told, expected=expected, **body.given())


@router.delete(
    f"{MEMORIES}/{{memory}}",
    response_model=response_model(MemoryReceipt),
    responses=problems(),
    dependencies=[Unhurried],
)
async def forget_memory(
    memory: MemoryId, whose: OfScope, engine: EngineOf, *, purge: Purge = False
) -> MemoryReceipt:
    """Delete a memory with its versions; one that the scope does not have counts as nothing."""
    return await engine.memory.forget(MemorySelection(ids=(memory,)), **whose.told, purge=purge)


add_routes(router, MEMORY_OPERATIONS)
