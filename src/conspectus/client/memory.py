"""Memories of agents on a server: remembered, recalled, shown and changed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import add
from typing import Any, Final, Unpack
from urllib.parse import quote

from conspectus.client.documents import RemoteDocuments
from conspectus.client.encode import budget_json, encoded, instant_json, metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import Request, ask, get, path_of, work
from conspectus.client.service import RemoteService
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput
from conspectus.ingest.prepare import batches
from conspectus.memory.jsonl import renumber
from conspectus.memory.scopes import checked
from conspectus.model.filter import EVERYTHING, Filter, filter_to_json
from conspectus.model.memory import (
    MEMORY,
    ConversationSummary,
    Memory,
    MemoryClass,
    MemoryExport,
    MemoryPage,
    MemoryQuery,
    MemoryReceipt,
    MemoryRetrieval,
    MemoryStats,
    MemoryWindow,
    MemoryWritten,
    NewMemory,
    Paging,
    RecentMemory,
    Scope,
)
from conspectus.model.memory import MemorySelection as What
from conspectus.model.query import Budget
from conspectus.model.records import Json, Written
from conspectus.ports import Progress
from conspectus.text.vectors import unit

MOST_LINES: Final = 500
MOST_CHARACTERS: Final = 1_000_000
"""So many lines, of about so many characters, are sent at once."""
FIELDS: Final = NewMemory.__dataclass_fields__.keys() - {"key", "vector"}


@derived
class RemoteMemory(RemoteService, MemoryService):
    """Memories on a server."""

    async def remember(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        given = [memories] if isinstance(memories, str | NewMemory) else memories
        where = scope_json(scope, collection)
        done: list[MemoryWritten] = []
        sent = batches(NewMemory(each) if isinstance(each, str) else each for each in given)
        for batch in sent:
            done += await self._remember(batch, where)
            if progress is not None:
                progress("remembering", len(done), 0)
        if not done:
            await self._remember((), where)
        if wait:
            await self._beside(RemoteDocuments).settle(collection=collection, progress=progress)
        return done

    async def recall(self, question: MemoryQuery) -> MemoryRetrieval:
        return await self._channel.one(MemoryRetrieval, ask("/memories/recall", _question_json(question)))

    async def window(
        self, question: MemoryQuery, budget: int | Budget, *, renderer: str = "text"
    ) -> MemoryWindow:
        body = {**_question_json(question), "budget": budget_json(budget), "renderer": encoded(renderer)}
        return await self._channel.one(MemoryWindow, ask("/memories/context", body))

    async def recent(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        turns: int | None = None,
        tokens: int | None = None,
        tokenizer: str = "o200k_base",
    ) -> Sequence[RecentMemory]:
        told = {**scope_query(scope, collection), "turns": turns, "tokens": tokens, "tokenizer": tokenizer}
        return await self._channel.several(RecentMemory, get("/memories/recent", **told))

    async def get(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Memory:
        return await self._channel.one(Memory, get(_path(memory), **scope_query(scope, collection)))

    async def versions(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Sequence[Memory]:
        request = get(_path(memory, "versions"), **scope_query(scope, collection))
        return await self._channel.several(Memory, request)

    async def list(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        kind: MemoryClass | None = None,
        entity: str | None = None,
        **paging: Unpack[Paging],
    ) -> MemoryPage:
        told: dict[str, object] = {**scope_query(scope, collection), "kind": kind, "entity": entity, **paging}
        told["where"] = json.dumps(filter_to_json(paging.get("where", EVERYTHING)))
        return await self._channel.one(MemoryPage, get("/memories", **told))

    async def count(self, *, scope: Scope, collection: str = MEMORY, where: Filter = EVERYTHING) -> int:
        body: Json = {**scope_json(scope, collection), "where": filter_to_json(where)}
        return await self._channel.member(int, "count", ask("/memories/count", body))

    async def update(
        self,
        /,
        memory: str,
        *,
        scope: Scope,
        collection: str = MEMORY,
        expected: str | None = None,
        **changes: Any,
    ) -> Written:
        if unknown := changes.keys() - FIELDS:
            raise InvalidInput(min(unknown), "is not a field that can be changed")
        headers = {} if expected is None else {"If-Match": f'"{quote(expected)}"'}
        query = get("", **scope_query(scope, collection)).query
        request = Request(
            "PATCH", _path(memory), _fields_json(changes), query=query, headers=headers, writes=True
        )
        return await self._channel.one(Written, request)

    async def forget(
        self,
        what: What,
        *,
        scope: Scope,
        collection: str = MEMORY,
        preview: bool = False,
        purge: bool = False,
    ) -> MemoryReceipt:
        told = {each.name: encoded(getattr(what, each.name)) for each in fields(what)}
        told["before"] = instant_json(what.before)
        where = scope_json(scope, collection)
        body: Json = {**where, **told, "preview": preview, "purge": purge}
        return await self._channel.one(MemoryReceipt, work("/memories/forget", body))

    async def conversations(self, *, scope: Scope, collection: str = MEMORY) -> Sequence[ConversationSummary]:
        request = get("/memories/conversations", **scope_query(scope, collection))
        return await self._channel.several(ConversationSummary, request)

    async def stats(self, *, scope: Scope, collection: str = MEMORY) -> MemoryStats:
        return await self._channel.one(MemoryStats, get("/memories/stats", **scope_query(scope, collection)))

    async def export(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        after: str | None = None,
        limit: int | None = None,
    ) -> MemoryExport:
        told = {**scope_query(scope, collection), "after": after, "limit": limit}
        return await self._channel.one(MemoryExport, get("/memories/export", **told))

    async def import_lines(
        self,
        lines: str | Iterable[str],
        *,
        collection: str = MEMORY,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Sequence[MemoryWritten]:
        where: dict[str, Json] = {"collection": encoded(collection), "scope": scope_of(scope)}
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

    async def _remember(
        self, batch: Sequence[NewMemory], where: Mapping[str, Json]
    ) -> Sequence[MemoryWritten]:
        told: list[Json] = [
            _fields_json({each.name: getattr(new, each.name) for each in fields(new)}) for new in batch
        ]
        request = replace(work("/memories", {**where, "memories": told}), noted=True)
        return await self._channel.several(MemoryWritten, request)


def scope_query(scope: Scope, collection: str) -> dict[str, object]:
    """Whose memories, as parameters of an address. Raises InvalidInput."""
    named = checked(scope)
    return {
        "user": named.user,
        "agent": named.agent,
        "conversation": named.conversation,
        "collection": collection,
    }


def scope_json(scope: Scope, collection: str) -> dict[str, Json]:
    """Whose memories, as members of a body. Raises InvalidInput."""
    return {name: encoded(value) for name, value in scope_query(scope, collection).items()}


def _path(memory: str, *parts: str) -> str:
    return path_of("memories", ("memory", memory), *parts)


def _question_json(question: MemoryQuery) -> dict[str, Json]:
    told = {each.name: encoded(getattr(question, each.name)) for each in fields(question)}
    del told["scope"]
    return {**told, **scope_json(question.scope, question.collection)}


def _fields_json(given: Mapping[str, Any]) -> dict[str, Json]:
    """Fields of a memory as the server takes them."""
    told = dict(given)
    if "metadata" in told:
        told["metadata"] = metadata_json(told["metadata"])
    if told.get("vector") is not None:
        unit(told["vector"])
        told["vector"] = [float(number) for number in told["vector"]]
    return {name: encoded(value) for name, value in told.items()}


def scope_of(scope: Scope | None) -> Json:
    """A scope as a member of a body."""
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
