"""Memories as JSON lines: taken in as they arrive, and given out as they are read."""

from collections.abc import AsyncGenerator

from fastapi import Depends, Request, Response
from fastapi.responses import StreamingResponse

from conspectus.engine import Engine
from conspectus.model.memory import Scope
from conspectus.web.deps import EngineOf, Unhurried
from conspectus.web.memories import MEMORIES, MemoryScopeQuery, OfScope, spelt
from conspectus.web.memory_import import take_memories
from conspectus.web.ndjson import MEDIA_TYPE, LinesRoute, arriving
from conspectus.web.openapi import Section
from conspectus.web.schemas.memory_answers import ImportedAnswer

router = Section("memory", route_class=LinesRoute, dependencies=[Depends(spelt)])


@router.post(f"{MEMORIES}/import", include_in_schema=False, dependencies=[Unhurried])
async def import_lines(whose: OfScope, request: Request, engine: EngineOf) -> ImportedAnswer:
    """Take in lines, batch by batch; where no scope is named, they go where they say."""
    settings = request.app.state.listeners.settings
    pieces = arriving(request.stream(), settings.request_timeout_seconds)
    scope = None if whose.scope == Scope() else whose.scope
    where = {"collection": whose.collection, "scope": scope}
    return await take_memories(pieces, engine, where, longest=settings.max_request_bytes)


@router.get(f"{MEMORIES}/export", include_in_schema=False, dependencies=[Unhurried])
async def export_lines(whose: OfScope, engine: EngineOf) -> Response:
    """All memories of a scope. What goes wrong with the first of them is answered as such."""
    pages = _pages(engine, whose)
    begun = await anext(pages)

    async def all_of_them() -> AsyncGenerator[bytes, None]:
        yield begun
        async for page in pages:
            yield page

    return StreamingResponse(all_of_them(), media_type=MEDIA_TYPE)


async def _pages(engine: Engine, whose: MemoryScopeQuery) -> AsyncGenerator[bytes, None]:
    after = None
    while True:
        page = await engine.memory.export(**whose.told, after=after)
        yield "".join(f"{each}\n" for each in page.lines).encode("utf-8", "replace")
        after = page.next
        if after is None:
            return
