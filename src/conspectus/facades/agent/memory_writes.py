"""What is remembered, written: stored, changed, forgotten, and kept for so long."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import EllipsisType
from typing import Any, Final, TypeVar, Unpack

from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent.mapping import (
    AgentScope,
    Beside,
    Document,
    MemoryItem,
    Owner,
    divided,
    fact_of,
    instant_of,
    names_of,
    new_memory,
    scope_of,
    worded,
)
from conspectus.facades.agent.memory_reads import TURN, MemoryReads
from conspectus.model.filter import And, Eq, Filter, Not
from conspectus.model.memory import (
    PINNED,
    MemoryReceipt,
    MemorySelection,
    MemoryWritten,
    NewMemory,
    Retention,
    Scope,
)

T = TypeVar("T")
CHANGES: Final = {
    "content": "text",
    "timestamp": "at",
    "role": "role",
    "speaker": "speaker",
    "kind": "kind",
    "pinned": "pinned",
    "valid_from": "valid_from",
    "valid_until": "valid_until",
}
COUNTED: Final[Filter] = And((TURN, Not(Eq((PINNED,), True))))
"""What retention is about."""


class Writing(MemoryReads):
    """Memories are written through to the long term in one transaction, word for word."""

    retention = Retention()

    async def store(self, content: str, **given: Unpack[Beside]) -> str:
        """Remember one text and return its id."""
        return (await self._store([(content, dict(given))]))[0].id

    async def batch_store(self, items: Iterable[Document], **given: Unpack[Beside]) -> list[str]:
        """Remember many, texts or dictionaries with a `content`; their ids in the order given."""
        return [each.id for each in await self._store([worded(each, given) for each in items])]

    async def store_vectors(self, items: Iterable[MemoryItem], **whose: Unpack[AgentScope]) -> list[str]:
        """Remember items with the vectors that they have; those without one are embedded.

        Raises InvalidInput for vectors that are not of the collection's space.
        """
        return await self.batch_store(items, **whose)

    async def update(self, memory_id: str, content: str | None = None, **given: Unpack[Beside]) -> bool:
        """Change a memory, which keeps its id; whether there was one.

        Of the metadata those named are changed, None takes one away. What it was is kept as a version.
        """
        whose, changes = divided(given)
        scope, metadata = scope_of(self.scope, whose), changes.pop("metadata", None)
        stored = await self._find(memory_id, scope)
        if stored is None:
            return False
        if unknown := changes.keys() - CHANGES.keys() - {"entities", "fact"}:
            raise InvalidInput(min(unknown), "is given when a memory is stored, and stays")
        if content is not None:
            changes["content"] = content
        fields: dict[str, Any] = {CHANGES[name]: value for name, value in changes.items() if name in CHANGES}
        if "entities" in changes:
            fields["entities"] = names_of(changes["entities"])
        if changes.get("fact") is not None:
            fields["fact"] = fact_of(changes["fact"])
        if metadata is not None:
            merged = {**stored.metadata, **metadata}
            fields["metadata"] = {name: value for name, value in merged.items() if value is not None}
        self.desk.home.written += 1
        try:
            await self.desk.run(
                lambda engine: engine.memory.update(
                    memory_id, scope=scope, collection=self.desk.collection, **fields
                )
            )
        except NotFound:
            return False
        return True

    async def batch_update(self, changes: Iterable[Mapping[str, Any]], **whose: Unpack[AgentScope]) -> int:
        """Change many: dictionaries with an `id` and what `update` takes; how many there were."""
        done = 0
        for each in changes:
            if not isinstance(each.get("id"), str):
                raise InvalidInput("id", "says which memory a change is for")
            done += await self.update(each["id"], **{**whose, **{k: v for k, v in each.items() if k != "id"}})
        return done

    async def batch_delete(self, memory_ids: Iterable[str], **whose: Unpack[AgentScope]) -> int:
        """Delete many, pinned ones too, and say how many there were."""
        ids = tuple(memory_ids)
        scope = scope_of(self.scope, whose)
        return (await self._forget(MemorySelection(ids=ids), scope)).memories if ids else 0

    async def forget(
        self,
        memory_id: str | EllipsisType = ...,
        *,
        days_old: float | EllipsisType = ...,
        before: datetime | str | EllipsisType = ...,
        pinned: bool = False,
        **whose: Unpack[AgentScope],
    ) -> int:
        """Delete one memory, or those older than so many days, or all of a conversation or user.

        How many there were: 0 for an id that is unknown to the scope. By age pinned ones stay, unless
        `pinned` says otherwise. Raises ValueError for a negative age, and InvalidInput where nothing is said,
        also where None is given for an id or an age: that must not come to mean everything.
        """
        scope = scope_of(self.scope, whose)
        if memory_id is not ...:
            what = MemorySelection(ids=(_said("memory_id", memory_id),))
        elif days_old is not ...:
            what = MemorySelection(older_than_days=_age(days_old), pinned=pinned)
        elif before is not ...:
            what = MemorySelection(before=instant_of(_said("before", before)), pinned=pinned)
        elif any(each is not None for each in whose.values()):
            what = MemorySelection(everything=True, pinned=True)
        else:
            raise InvalidInput("forget", "say what: an id, a conversation, a user or an age; clear() is all")
        return (await self._forget(what, scope)).memories

    async def delete_conversation(self, conversation_id: str, **owner: Unpack[Owner]) -> int:
        """Delete a conversation with everything in it, and say how many memories there were."""
        return await self.forget(conversation_id=_said("conversation_id", conversation_id), **owner)

    async def clear(self, **whose: Unpack[AgentScope]) -> int:
        """Delete everything of the scope, and nothing else; how many memories there were."""
        what = MemorySelection(everything=True, pinned=True)
        return (await self._forget(what, scope_of(self.scope, whose))).memories

    async def prune(self, *, preview: bool = False, **whose: Unpack[AgentScope]) -> list[str]:
        """Delete what the retention of this context does not keep, and say which; pinned ones stay.

        With `preview` nothing is deleted. `retention_days` is an age, `max_memories` a number for all
        conversations of the scope together, of which the oldest go first; standing notes do not count.
        """
        scope = scope_of(self.scope, whose)
        gone: list[str] = []
        if self.retention.days is not None:
            what = MemorySelection(older_than_days=self.retention.days)
            gone += (await self._forget(what, scope, preview=preview)).ids
        if self.retention.most is not None:
            over = await self._beyond(scope, self.retention.most, frozenset(gone if preview else ()))
            if over and not preview:
                await self._forget(MemorySelection(ids=tuple(over)), scope)
            gone += over
        return gone

    async def _beyond(self, scope: Scope, most: int, gone: frozenset[str]) -> list[str]:
        """The ids of the oldest turns that are more than so many, not counting those that are gone."""
        excess = await self._count_where(scope, COUNTED) - len(gone) - most
        over: list[str] = []
        if excess <= 0:
            return over
        async for each in self._walk(scope, COUNTED):
            if each.id not in gone:
                over.append(each.id)
            if len(over) == excess:
                break
        return over

    async def _forget(self, what: MemorySelection, scope: Scope, *, preview: bool = False) -> MemoryReceipt:
        return await self.desk.run(
            lambda engine: engine.memory.forget(
                what, scope=scope, collection=self.desk.collection, preview=preview
            )
        )

    async def _store(self, items: list[tuple[str, dict[str, Any]]]) -> list[MemoryWritten]:
        """Store in order; neighbours of one scope go together."""
        done: list[MemoryWritten] = []
        for scope, batch in _runs(self.scope, items):
            done += await self._remember(batch, scope)
            await self._keep_to_retention(scope)
        return done

    async def _remember(self, batch: list[NewMemory], scope: Scope) -> Sequence[MemoryWritten]:
        self.desk.home.written += 1
        return await self.desk.run(
            lambda engine: engine.memory.remember(batch, scope=scope, collection=self.desk.collection)
        )

    async def _keep_to_retention(self, scope: Scope) -> None:
        if self.retention != Retention():
            await self.prune(user_id=scope.user, agent_id=scope.agent, conversation_id=None)


def _runs(default: Scope, items: list[tuple[str, dict[str, Any]]]) -> list[tuple[Scope, list[NewMemory]]]:
    runs: list[tuple[Scope, list[NewMemory]]] = []
    for content, given in items:
        whose, beside = divided(given)
        scope = scope_of(default, whose)
        if not runs or runs[-1][0] != scope:
            runs.append((scope, []))
        runs[-1][1].append(new_memory(content, beside, scope))
    return runs


def _said(name: str, value: T) -> T:
    """What is given, if anything is: None must not come to mean everything. Raises InvalidInput."""
    if value is None:
        raise InvalidInput(name, "is None; leave it out, or say what")
    return value


def _age(days: float) -> float:
    if _said("days_old", days) < 0:
        raise ValueError("days_old must not be negative")
    return days
