"""What is remembered, read in order: items, conversations, and numbers. All of it within a scope."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent.mapping import (
    AgentScope,
    Instant,
    MemoryItem,
    Owner,
    Told,
    instant_of,
    item_of,
    scope_of,
    shown,
)
from conspectus.facades.agent.session import AgentSession, AsyncPart
from conspectus.graph.name_keys import key_of
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Overlaps
from conspectus.model.memory import CLASS, OWN, Memory, MemoryPage, Scope
from conspectus.model.pages import pages
from conspectus.model.streams import ENTITIES

PAGE: Final = 500
TURN: Final[Filter] = Eq((CLASS,), "turn")


class MemoryReads(AsyncPart):
    """Memories of a scope: what a call does not say of whose they are is what this was made with."""

    def __init__(
        self, desk: AgentSession, scope: Scope, *, token_limit: int, short_term_limit: int, tokenizer: str
    ) -> None:
        self.desk = desk
        self.scope = scope
        self.token_limit = token_limit
        self.short_term_limit = short_term_limit
        self.tokenizer = tokenizer

    async def short_term(self, **whose: Unpack[AgentScope]) -> Sequence[MemoryItem]:
        """The last turns, oldest first: so many as the two limits allow.

        Of one that is larger than all tokens there is the whole text; only a window shows it cut.
        """
        return await self._short_term(scope_of(self.scope, whose))

    async def _short_term(self, scope: Scope) -> Sequence[MemoryItem]:
        found = await self.desk.run(
            lambda engine: engine.memory.list_recent(
                **self._at(scope),
                limit=self.short_term_limit,
                max_tokens=self.token_limit,
                tokenizer=self.tokenizer,
            )
        )
        return [item_of(each.memory) for each in found]

    async def get(self, memory_id: str, **whose: Unpack[AgentScope]) -> dict[str, Any] | None:
        """A memory; None where the scope has none of that id."""
        found = await self._find(memory_id, scope_of(self.scope, whose))
        return None if found is None else shown(found)

    async def exists(self, memory_id: str, **whose: Unpack[AgentScope]) -> bool:
        """Whether the scope has a memory of that id."""
        return await self._find(memory_id, scope_of(self.scope, whose)) is not None

    async def versions(self, memory_id: str, **whose: Unpack[AgentScope]) -> Told:
        """What a memory was before it was changed, oldest first, and what it is; none for an unknown id."""
        scope = scope_of(self.scope, whose)
        if await self._find(memory_id, scope) is None:
            return []
        found = await self.desk.run(lambda engine: engine.memory.list_versions(memory_id, **self._at(scope)))
        return [
            {**shown(each), "known_from": each.known_from, "known_until": each.known_until} for each in found
        ]

    async def count(self, metadata: Mapping[str, Any] | None = None, **whose: Unpack[AgentScope]) -> int:
        """How many memories there are, or how many have these values in their metadata."""
        return await self._count_where(scope_of(self.scope, whose), tagged(metadata))

    async def list(
        self,
        limit: int | None = 100,
        offset: int = 0,
        *,
        metadata: Mapping[str, Any] | None = None,
        newest_first: bool = False,
        **whose: Unpack[AgentScope],
    ) -> Told:
        """Memories in the order of time, those with these metadata; `limit` None is all of them."""
        walk = self._walk(scope_of(self.scope, whose), tagged(metadata), newest_first=newest_first)
        return [shown(each) async for each in _part(walk, limit, offset)]

    async def get_recent(self, limit: int = 10, **whose: Unpack[AgentScope]) -> Told:
        """What was said last, the latest first."""
        return await self.list(limit, newest_first=True, **whose)

    async def get_by_date(
        self, start: Instant | None = None, end: Instant | None = None, **whose: Unpack[AgentScope]
    ) -> Told:
        """What was said from `start` until before `end`. A time without a zone is in UTC."""
        between = Overlaps(instant_of(start), instant_of(end))
        if between.start is not None and between.end is not None and between.end < between.start:
            raise InvalidInput("end", "is before start")
        return [shown(each) async for each in self._walk(scope_of(self.scope, whose), between)]

    async def find_by_entity(self, entity: str, **whose: Unpack[AgentScope]) -> Told:
        """Memories that were stored with that name among their entities, however it is spelt."""
        where = In((ENTITIES,), (entity, key_of(entity)))
        return [shown(each) async for each in self._walk(scope_of(self.scope, whose), where)]

    async def conversation(
        self,
        conversation_id: str,
        reverse: bool = False,
        *,
        include_metadata: bool = True,
        limit: int | None = None,
        offset: int = 0,
        **owner: Unpack[Owner],
    ) -> Told:
        """A conversation in the order of time, or against it: all of it, if no `limit` is given."""
        scope = scope_of(self.scope, {**owner, "conversation_id": conversation_id})
        walk = self._walk(scope, EVERYTHING, newest_first=reverse)
        told = [shown(each) async for each in _part(walk, limit, offset)]
        if not include_metadata:
            for each in told:
                del each["metadata"]
        return told

    async def get_conversation_history(
        self, conversation_id: str | None = None, max_items: int | None = None, **owner: Unpack[Owner]
    ) -> Told:
        """What was said in a conversation, in order; of `max_items` the last ones.

        Without one it is that of the context, or what was said in any.
        """
        scope = self.scope.conversation if conversation_id is None else conversation_id
        told = await self.list(max_items, newest_first=True, conversation_id=scope, **owner)
        return told[::-1]

    async def list_conversations(self, **whose: Unpack[AgentScope]) -> Told:
        """The conversations, with how many memories each has, and when it began and went on last."""
        scope = scope_of(self.scope, whose)
        found = await self.desk.run(lambda engine: engine.memory.list_conversations(**self._at(scope)))
        return [
            {
                "conversation_id": each.scope.conversation,
                "agent_id": each.scope.agent,
                "user_id": each.scope.user,
                "count": each.memories,
                "first": each.first,
                "last": each.last,
            }
            for each in found
        ]

    async def conversation_summary(self, conversation_id: str, **owner: Unpack[Owner]) -> dict[str, Any]:
        """A conversation in numbers: memories, who spoke how often, tokens, first and last time."""
        scope = scope_of(self.scope, {**owner, "conversation_id": conversation_id})
        numbers = await self._numbers(scope)
        speakers: dict[str, int] = {}
        async for each in self._walk(scope, EVERYTHING):
            name = each.document.author or each.document.role or "unknown"
            speakers[name] = speakers.get(name, 0) + 1
        return {"conversation_id": conversation_id, **numbers, "speakers": speakers}

    async def stats(self, **whose: Unpack[AgentScope]) -> dict[str, Any]:
        """A scope in numbers."""
        scope = scope_of(self.scope, whose)
        return {
            **await self._numbers(scope),
            "short_term": len(await self.short_term(**whose)),
            "short_term_limit": self.short_term_limit,
            "token_limit": self.token_limit,
        }

    def _at(self, scope: Scope) -> dict[str, Any]:
        return {"scope": scope, "collection": self.desk.collection}

    async def _numbers(self, scope: Scope) -> dict[str, Any]:
        found = await self.desk.run(lambda engine: engine.memory.stats(**self._at(scope)))
        return {name: getattr(found, name) for name in found.__dataclass_fields__}

    async def _count_where(self, scope: Scope, where: Filter) -> int:
        return await self.desk.run(lambda engine: engine.memory.count(**self._at(scope), filter=where))

    async def _find(self, memory_id: str, scope: Scope) -> Memory | None:
        try:
            return await self.desk.run(lambda engine: engine.memory.get(memory_id, **self._at(scope)))
        except NotFound:
            return None

    async def _walk(
        self, scope: Scope, where: Filter, *, newest_first: bool = False
    ) -> AsyncIterator[Memory]:
        """Every memory that matches, in the order of time."""

        async def read(after: str | None = None) -> MemoryPage:
            return await self.desk.run(
                lambda engine: engine.memory.list(
                    **self._at(scope),
                    filter=where,
                    after=after,
                    limit=PAGE,
                    newest_first=newest_first,
                )
            )

        async for page in pages(read):
            for each in page.memories:
                yield each


def tagged(metadata: Mapping[str, Any] | None) -> Filter:
    """What has these values in the metadata that callers give; None is where there is none."""
    parts: list[Filter] = []
    for name, value in (metadata or {}).items():
        if value is not None and not isinstance(value, str | int | float | bool | datetime):
            raise InvalidInput(f"metadata.{name}", "must be a string, a number, true or false")
        path = (OWN, name)
        parts.append(Not(Exists(path)) if value is None else Eq(path, value))
    return And(tuple(parts))


async def _part(walk: AsyncIterator[Memory], limit: int | None, offset: int) -> AsyncIterator[Memory]:
    """Some of them: `limit` after the first `offset`."""
    for name, number in (("limit", limit), ("offset", offset)):
        if number is not None and number < 0:
            raise InvalidInput(name, "must be 0 or more")
    place = 0
    async for each in walk:
        if limit is not None and place >= offset + limit:
            return
        if place >= offset:
            yield each
        place += 1
