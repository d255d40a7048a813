"""Memories on their way from a server: how long they are kept, what is forgotten, and carried elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import partial
from operator import add
from typing import Final

from conspectus.client.encode import encoded, instant_json
from conspectus.client.remembering import Remembering, scope_json, scope_query
from conspectus.client.request import Request, get, post, remove, work
from conspectus.errors import InvalidInput
from conspectus.memory.jsonl_reader import renumber
from conspectus.model.jobs import Job
from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    MemoryExport,
    MemoryReceipt,
    MemoryStats,
    MemoryWritten,
    Retention,
    RetentionRule,
    Scope,
)
from conspectus.model.memory import MemorySelection as What
from conspectus.model.records import Json
from conspectus.ports import Progress

MOST_LINES: Final = 500
MOST_CHARACTERS: Final = 1_000_000
"""So many lines, of about so many characters, are sent at once."""


class Forgetting(Remembering):
    """Memories on their way out."""

    async def forget(
        self,
        what: What,
        *,
        scope: Scope,
        collection: str = MEMORY,
        preview: bool = False,
        purge: bool = False,
    ) -> MemoryReceipt:
        """Delete memories of a scope with their versions, and say how many; unknown ids count as nothing.

        With `preview` nothing is deleted, and the receipt says what would be. `purge` also waits until no
        file holds them. Raises InvalidInput unless exactly one way of saying which is given.
        """
        told = {each.name: encoded(getattr(what, each.name)) for each in fields(what)}
        told["before"] = instant_json(what.before)
        where = scope_json(scope, collection)
        body: Json = {**where, **told, "preview": preview, "purge": purge}
        return await self._channel.one(MemoryReceipt, work("/memories/forget", body))

    async def retain(self, retention: Retention | None, *, scope: Scope, collection: str = MEMORY) -> None:
        """Keep a retention for a scope, in place of the one that it has; with None, none any more."""
        if retention is None:
            request = remove("/memories/retentions", **scope_query(scope, collection))
        else:
            kept = {"days": encoded(retention.days), "most": encoded(retention.most)}
            body: Json = {**scope_json(scope, collection), **kept}
            request = Request("PUT", "/memories/retentions", body, writes=True)
        await self._channel.answer(request)

    async def retentions(self, *, collection: str = MEMORY) -> list[RetentionRule]:
        """The retentions of a collection, with when each was last carried out."""
        return await self._channel.several(RetentionRule, get("/memories/retentions", collection=collection))

    async def apply_retention(
        self, *, collection: str = MEMORY, scope: Scope | None = None, preview: bool = False
    ) -> MemoryReceipt:
        """Carry out the retentions of a collection, or of one scope; with `preview`, say what would go."""
        body: Json = {
            "collection": encoded(collection),
            "scope": _scope(scope),
            "preview": preview,
        }
        return await self._channel.one(MemoryReceipt, work("/memories/retentions/apply", body))

    async def start_retention(self, *, collection: str = MEMORY) -> Job:
        """Carry out all retentions of a collection by a job; its result is the receipt."""
        body: Json = {"collection": encoded(collection)}
        return await self._channel.one(Job, post("/memories/retentions/start", body))

    async def conversations(self, *, scope: Scope, collection: str = MEMORY) -> list[ConversationSummary]:
        """The conversations of a scope in numbers."""
        request = get("/memories/conversations", **scope_query(scope, collection))
        return await self._channel.several(ConversationSummary, request)

    async def memory_stats(self, *, scope: Scope, collection: str = MEMORY) -> MemoryStats:
        """A scope in numbers."""
        return await self._channel.one(MemoryStats, get("/memories/stats", **scope_query(scope, collection)))

    async def export_memories(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        after: str | None = None,
        limit: int | None = None,
    ) -> MemoryExport:
        """A page of the memories of a scope as lines of JSON, complete, and the cursor of the rest."""
        told = {**scope_query(scope, collection), "after": after, "limit": limit}
        return await self._channel.one(MemoryExport, get("/memories/export", **told))

    async def import_memories(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = MEMORY,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> list[MemoryWritten]:
        """Take in lines of an export, where they say or into a scope; again changes nothing.

        They are sent in batches. Raises InvalidInput or TooLarge with the number of the line at fault, of
        whose batch nothing is written.
        """
        where: dict[str, Json] = {"collection": encoded(collection), "scope": _scope(scope)}
        done: list[MemoryWritten] = []
        before = 0
        for batch in _batches(lines.split("\n") if isinstance(lines, str) else lines):
            body: Json = {**where, "lines": [encoded(each) for each in batch]}
            try:
                done += await self._channel.several(MemoryWritten, work("/memories/import", body))
            except InvalidInput as fault:
                renumber(fault, partial(add, before))
                raise
            before += len(batch)
            if progress is not None:
                progress("importing", len(done), 0)
        return done


def _scope(scope: Scope | None) -> Json:
    if scope is None:
        return None
    told = scope_json(scope, MEMORY)
    del told["collection"]
    return told


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == MOST_LINES or size + len(line) > MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch
