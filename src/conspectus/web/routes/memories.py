"""Memories: the operations of the table, and by hand what they do not cover."""

from fastapi import Depends

from conspectus.model.memory import MemoryReceipt, MemorySelection
from conspectus.operations import MEMORY_OPERATIONS
from conspectus.web.deps import EngineOf, Purge, Unhurried
from conspectus.web.memories import MEMORIES, MemoryId, OfScope, spelt
from conspectus.web.openapi import Section, problems
from conspectus.web.operation_routes import add_routes
from conspectus.web.operation_schemas import response_model

router = Section("memory", dependencies=[Depends(spelt)])


add_routes(router, MEMORY_OPERATIONS)


@router.delete(
    f"{MEMORIES}/{{memory}}",
    response_model=response_model(MemoryReceipt),
    responses=problems(),
    dependencies=[Unhurried],
)
async def forget_memory(
    memory: MemoryId, scope: OfScope, engine: EngineOf, *, purge: Purge = False
) -> MemoryReceipt:
    """Delete a memory with its versions; one that the scope does not have counts as nothing."""
    return await engine.memory.forget(MemorySelection(ids=(memory,)), **scope.arguments, purge=purge)
