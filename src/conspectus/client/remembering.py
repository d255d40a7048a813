"""Memories of agents on a server: remembered, recalled, shown and changed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Unpack
from urllib.parse import quote

from conspectus.client.encode import budget_json, encoded, metadata_json
from conspectus.client.graphing import Graphing
from conspectus.client.request import Request, ask, get, path_of, work
from conspectus.errors import InvalidInput
from conspectus.ingest.pipeline import batches
from conspectus.memory.scopes import checked
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.filter_json import filter_to_json
from conspectus.model.memory import (
    MEMORY,
    Memory,
    MemoryClass,
    MemoryPage,
    MemoryQuery,
    MemoryRetrieval,
    MemoryWindow,
    MemoryWritten,
    NewMemory,
    Paging,
    RecentMemory,
    Scope,
)
from conspectus.model.query import Budget
from conspectus.model.records import Json, Written
from conspectus.ports import Progress
from conspectus.text.vectors import unit

FIELDS: Final = NewMemory.__dataclass_fields__.keys() - {"key", "vector"}


class Remembering(Graphing):
    """What agents are to know again."""

    async def remember(
        self,
        memories: str | NewMemory | Iterable[str | NewMemory],
        *,
        scope: Scope,
        collection: str = MEMORY,
        wait: bool = False,
        progress: Progress | None = None,
    ) -> list[MemoryWritten]:
        """Store memories in their order, word for word: found by their words when this returns.

        By meaning they are found when they are embedded (`wait=True`: on return). One with the key of a
        stored one is a new version of it. What says nearly the same as another is linked to it, not dropped.
        A fact becomes an edge of the scope's graph, and ends the one that it contradicts. They are sent in
        batches of at most 500, each a transaction. Raises InvalidInput or TooLarge; the batch at fault is
        not written.
        """
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
            await self.settle(collection=collection, progress=progress)
        return done

    async def recall(self, question: MemoryQuery) -> MemoryRetrieval:
        """The memories that answer a question, best first, each with the parts of its score."""
        return await self._channel.one(MemoryRetrieval, ask("/memories/recall", _question_json(question)))

    async def memory_window(
        self, question: MemoryQuery, budget: int | Budget, *, renderer: str = "text"
    ) -> MemoryWindow:
        """Standing notes, what answers a question, and the last turns, never over the budget."""
        body = {**_question_json(question), "budget": budget_json(budget), "renderer": encoded(renderer)}
        return await self._channel.one(MemoryWindow, ask("/memories/context", body))

    async def recent_memories(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        turns: int | None = None,
        tokens: int | None = None,
        tokenizer: str = "o200k_base",
    ) -> list[RecentMemory]:
        """The turns that were stored last, oldest first: so many at most, of so many tokens at most.

        What is not given is as the settings say. One larger than all of the tokens is cut, with a mark.
        """
        told = {**scope_query(scope, collection), "turns": turns, "tokens": tokens, "tokenizer": tokenizer}
        return await self._channel.several(RecentMemory, get("/memories/recent", **told))

    async def memory(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> Memory:
        """A memory of a scope. Raises NotFound, for one of another scope too."""
        return await self._channel.one(Memory, get(_path(memory), **scope_query(scope, collection)))

    async def memory_versions(self, memory: str, *, scope: Scope, collection: str = MEMORY) -> list[Memory]:
        """All that a memory ever said, oldest first, as it is now last. Raises NotFound."""
        request = get(_path(memory, "versions"), **scope_query(scope, collection))
        return await self._channel.several(Memory, request)

    async def memories(
        self,
        *,
        scope: Scope,
        collection: str = MEMORY,
        kind: MemoryClass | None = None,
        entity: str | None = None,
        **paging: Unpack[Paging],
    ) -> MemoryPage:
        """A page of the memories of a scope that match, in the order in which they were said."""
        told: dict[str, object] = {**scope_query(scope, collection), "kind": kind, "entity": entity, **paging}
        told["where"] = json.dumps(filter_to_json(paging.get("where", EVERYTHING)))
        return await self._channel.one(MemoryPage, get("/memories", **told))

    async def count_memories(
        self, *, scope: Scope, collection: str = MEMORY, where: Filter = EVERYTHING
    ) -> int:
        """How many memories of a scope match."""
        body: Json = {**scope_json(scope, collection), "where": filter_to_json(where)}
        return await self._channel.member(int, "count", ask("/memories/count", body))

    async def update_memory(
        self,
        /,
        memory: str,
        *,
        scope: Scope,
        collection: str = MEMORY,
        expected: str | None = None,
        **changes: Any,
    ) -> Written:
        """Change any fields of a memory but its key; it keeps its id, and what it was is kept as a version.

        With `expected`, the fingerprint that the caller read, raises Changed if it is another one by now.
        """
        if unknown := changes.keys() - FIELDS:
            raise InvalidInput(min(unknown), "is not a field that can be changed")
        headers = {} if expected is None else {"If-Match": f'"{quote(expected)}"'}
        query = get("", **scope_query(scope, collection)).query
        request = Request(
            "PATCH", _path(memory), _fields_json(changes), query=query, headers=headers, writes=True
        )
        return await self._channel.one(Written, request)

    async def _remember(self, batch: Sequence[NewMemory], where: Mapping[str, Json]) -> list[MemoryWritten]:
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
