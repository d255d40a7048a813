"""Memories: what is remembered, recalled, shown and changed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import Depends, Query, Response

from conspectus.model.memory import (
    Memory,
    MemoryClass,
    MemoryPage,
    MemoryReceipt,
    MemoryRetrieval,
    MemorySelection,
    MemoryWindow,
    MemoryWritten,
    RecentMemory,
)
from conspectus.model.records import Written
from conspectus.web.deps import (
    After,
    EngineOf,
    IfMatch,
    IfNoneMatch,
    Limit,
    NotingOf,
    Purge,
    Selected,
    Unhurried,
    fingerprint_in,
    quoted,
    unless_held,
)
from conspectus.web.memories import MEMORIES, MemoryId, OfScope, spelt
from conspectus.web.openapi import Section, problems, with_tag
from conspectus.web.schemas.base import INT64, NAME
from conspectus.web.schemas.memories import (
    MemoriesBody,
    MemoryChange,
    MemoryContextBody,
    MemoryCountBody,
    RecallBody,
)
from conspectus.web.schemas.memory_answers import (
    ForgetReceiptAnswer,
    MemoryAnswer,
    MemoryPageAnswer,
    MemoryWindowAnswer,
    RecentMemoryAnswer,
    RecollectionAnswer,
    RememberedAnswer,
)
from conspectus.web.schemas.records import CountAnswer, WrittenAnswer
from conspectus.web.schemas.search import BudgetBody, budget_of

router = Section("memory", dependencies=[Depends(spelt)])
Most = Annotated[int | None, Query(ge=0, lt=INT64)]


@dataclass(frozen=True, slots=True)
class MemoryPartBody:
    """Which memories of a scope, and which page of them."""

    kind: Annotated[MemoryClass | None, Query(description="Only those of this class.")] = None
    entity: Annotated[
        str | None, Query(max_length=NAME, description="Only those that mention this name.")
    ] = None
    after: After = None
    limit: Limit = 100
    newest_first: bool = False


@router.post(
    MEMORIES,
    response_model=list[RememberedAnswer],
    status_code=201,
    responses=problems(),
    dependencies=[Unhurried],
)
async def remember(body: MemoriesBody, engine: EngineOf, noting: NotingOf) -> Sequence[MemoryWritten]:
    """Store memories, word for word; they can be recalled at once."""
    memories, scope = [each.memory() for each in body.memories], body.scope()
    with noting(each.key for each in memories):
        return await engine.memory.remember(memories, scope=scope, collection=body.collection, wait=body.wait)


@router.get(MEMORIES, response_model=MemoryPageAnswer, responses=problems())
async def list_memories(
    whose: OfScope, where: Selected, part: Annotated[MemoryPartBody, Depends()], engine: EngineOf
) -> MemoryPage:
    """A page of memories in the order in which they were said."""
    return await engine.memory.list(**whose.told, where=where, **asdict(part))


@router.post(f"{MEMORIES}/count", response_model=CountAnswer, responses=problems())
async def count_memories(body: MemoryCountBody, engine: EngineOf) -> CountAnswer:
    """How many memories of a scope match."""
    count = await engine.memory.count(scope=body.scope(), collection=body.collection, where=body.chosen())
    return CountAnswer(count=count)


@router.post(f"{MEMORIES}/recall", response_model=RecollectionAnswer, responses=problems())
async def recall(body: RecallBody, engine: EngineOf) -> MemoryRetrieval:
    """The memories that answer a question, best first."""
    return await engine.memory.recall(body.question())


@router.post(f"{MEMORIES}/context", response_model=MemoryWindowAnswer, responses=problems())
async def memory_context(body: MemoryContextBody, engine: EngineOf) -> MemoryWindow:
    """Standing notes, what answers a question, and the last turns, never over the budget."""
    return await engine.memory.window(body.question(), body.allowed(), renderer=body.renderer)


@router.get(f"{MEMORIES}/recent", response_model=list[RecentMemoryAnswer], responses=problems())
async def recent_memories(
    whose: OfScope,
    engine: EngineOf,
    *,
    turns: Most = None,
    tokens: Most = None,
    tokenizer: Annotated[str, Query(min_length=1, max_length=NAME)] = "o200k_base",
) -> Sequence[RecentMemory]:
    """The last turns that fit, oldest first."""
    usable = budget_of(BudgetBody.model_validate({"max_tokens": 0, "tokenizer": tokenizer})).tokenizer
    return await engine.memory.recent(**whose.told, turns=turns, tokens=tokens, tokenizer=usable)


@router.get(f"{MEMORIES}/{{memory}}", response_model=MemoryAnswer, responses=with_tag())
async def get_memory(
    memory: MemoryId, whose: OfScope, engine: EngineOf, if_none_match: IfNoneMatch = None
) -> Response:
    """A memory of the scope, with the fingerprint of its document as ETag."""
    shown = MemoryAnswer.model_validate(await engine.memory.get(memory, **whose.told))
    return unless_held(shown, quoted(shown.document.fingerprint), if_none_match)


@router.get(f"{MEMORIES}/{{memory}}/versions", response_model=list[MemoryAnswer], responses=problems())
async def memory_versions(memory: MemoryId, whose: OfScope, engine: EngineOf) -> Sequence[Memory]:
    """What a memory said before, oldest first, and what it says now."""
    return await engine.memory.versions(memory, **whose.told)


@router.patch(
    f"{MEMORIES}/{{memory}}",
    response_model=WrittenAnswer,
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
    response_model=ForgetReceiptAnswer,
    responses=problems(),
    dependencies=[Unhurried],
)
async def forget_memory(
    memory: MemoryId, whose: OfScope, engine: EngineOf, *, purge: Purge = False
) -> MemoryReceipt:
    """Delete a memory with its versions; one that the scope does not have counts as nothing."""
    return await engine.memory.forget(MemorySelection(ids=(memory,)), **whose.told, purge=purge)
