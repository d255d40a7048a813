"""Memories of agents on a server: remembered, recalled, shown and changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import add
from typing import Any, Final
from urllib.parse import quote

from conspectus.client.documents import RemoteDocuments
from conspectus.client.encode import encoded, metadata_json
from conspectus.client.operations import derived
from conspectus.client.request import Request, get, path_of, work
from conspectus.client.service import RemoteService
from conspectus.engine.memory import MemoryService
from conspectus.errors import InvalidInput
from conspectus.ingest.prepare import batches
from conspectus.memory.jsonl import renumber
from conspectus.memory.scopes import checked
from conspectus.model.memory import (
    MEMORY,
    MemoryWritten,
    NewMemory,
    Scope,
)
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


def _path(memory: str) -> str:
    return path_of("memories", ("memory", memory))


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
