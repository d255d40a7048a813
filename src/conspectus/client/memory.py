"""Memories on a server."""

from collections.abc import Iterable, Sequence
from functools import partial
from operator import add
from typing import Final, Unpack

from conspectus.client.documents import RemoteDocuments
from conspectus.client.operations import derive_client, request_for
from conspectus.client.transport import RemoteService
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput
from conspectus.ingest.batch_writes import batches
from conspectus.memory.jsonl_reader import renumber
from conspectus.memory.scopes import choose_scope, choose_scope_or_all
from conspectus.model.memory import MEMORY, NO_SCOPE, MemoryWritten, NewMemory, Scope, ScopeNames
from conspectus.model.pages import portions
from conspectus.ports import Progress

MAX_LINES_PER_REQUEST: Final = 500
MAX_CHARACTERS_PER_REQUEST: Final = 1_000_000
"""Maximum number of lines, and their approximate total characters, per request."""


@derive_client
class RemoteMemory(RemoteService, MemoryService):
    """Memories on a server."""

    async def add(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope = NO_SCOPE,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
        **names: Unpack[ScopeNames],
    ) -> Sequence[MemoryWritten]:
        scope = choose_scope(scope, names)
        all_memories = [memories] if isinstance(memories, str | NewMemory) else memories
        where = {"scope": scope, "collection": collection, "wait": False}
        sent = batches(NewMemory(memory) if isinstance(memory, str) else memory for memory in all_memories)
        requests = (request_for(MemoryService.add, memories=batch, **where) for batch in sent)
        done = await self._in_batches(MemoryWritten, requests, "remembering", progress)
        if not done:
            await self._channel.answer(request_for(MemoryService.add, memories=(), **where))
        if wait:
            await self._open_sibling(RemoteDocuments).wait_until_embedded(
                collection=collection, progress=progress
            )
        return done

    async def import_lines(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = MEMORY,
        scope: Scope | None = None,
        progress: Progress | None = None,
        **names: Unpack[ScopeNames],
    ) -> Sequence[MemoryWritten]:
        scope = choose_scope_or_all(scope, names)
        where = {"collection": collection, "scope": scope}
        done: list[MemoryWritten] = []
        before = 0
        all_lines = lines.split("\n") if isinstance(lines, str) else lines
        for batch in portions(all_lines, len, most=MAX_LINES_PER_REQUEST, room=MAX_CHARACTERS_PER_REQUEST):
            request = request_for(MemoryService.import_lines, lines=batch, **where)
            try:
                done += await self._channel.several(MemoryWritten, request)
            except InvalidInput as fault:
                renumber(fault, partial(add, before))
                raise
            before += len(batch)
            if progress is not None:
                progress("importing", len(done), 0)
        return done
