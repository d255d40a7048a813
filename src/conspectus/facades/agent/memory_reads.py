"""Reads of an agent's memory: items, conversations and statistics, within a scope."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from conspectus.engine import Engine
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, NotFound
from conspectus.facades.agent.arguments import AgentScope, Instant, Owner, RecordList, instant_of, scope_of
from conspectus.facades.agent.json_values import with_iso_times
from conspectus.facades.agent.memory_items import MemoryItem, item_of, memory_dict
from conspectus.facades.agent.parts import AsyncPart
from conspectus.facades.agent.storage import AgentStorage
from conspectus.model.filter import EVERYTHING, And, Eq, Exists, Filter, In, Not, Overlaps
from conspectus.model.memory import CLASS, OWN, Memory, MemoryPage, Scope
from conspectus.model.pages import pages
from conspectus.model.parameters import Vector
from conspectus.model.stream_events import ENTITIES
from conspectus.text.name_keys import key_of

MEMORIES_PER_PAGE: Final = 500
TURNS_ONLY: Final[Filter] = Eq((CLASS,), "turn")


class MemoryReads(AsyncPart):
    """Reads of a scope; keys that a call does not name default to those of the constructor."""

    def __init__(
        self, storage: AgentStorage, scope: Scope, *, token_limit: int, short_term_limit: int, tokenizer: str
    ) -> None:
        self.storage = storage
        self.scope = scope
        self.token_limit = token_limit
        self.short_term_limit = short_term_limit
        self.tokenizer = tokenizer

    async def short_term(self, **scope: Unpack[AgentScope]) -> Sequence[MemoryItem]:
        """Return the last turns within both limits, oldest first.

        A turn that is larger than the token limit is returned whole; only a window truncates it. Turns that
        are embedded have their vectors, except on a server.
        """
        turns = await self._recent_turns(scope_of(self.scope, scope))
        ids = [turn.id for turn in turns]
        vectors = await self.storage.run(lambda engine: _read_vectors(engine, ids))
        return [item_of(turn, vectors.get(turn.id)) for turn in turns]

    async def _recent_turns(self, scope: Scope) -> Sequence[Memory]:
        turns = await self.storage.run(
            lambda engine: engine.memory.list_recent(
                **self._address(scope),
                limit=self.short_term_limit,
                max_tokens=self.token_limit,
                tokenizer=self.tokenizer,
            )
        )
        return [turn.memory for turn in turns]

    async def get(self, memory_id: str, **scope: Unpack[AgentScope]) -> dict[str, Any] | None:
        """Return a memory, or None if the scope has none with that id."""
        memory = await self._find(memory_id, scope_of(self.scope, scope))
        return None if memory is None else memory_dict(memory)

    async def exists(self, memory_id: str, **scope: Unpack[AgentScope]) -> bool:
        """Return whether the scope has a memory with that id."""
        return await self._find(memory_id, scope_of(self.scope, scope)) is not None

    async def versions(self, memory_id: str, **scope_options: Unpack[AgentScope]) -> RecordList:
        """Return the versions of a memory, oldest first, current state last; none for an unknown id."""
        scope = scope_of(self.scope, scope_options)
        if await self._find(memory_id, scope) is None:
            return []
        versions = await self.storage.run(
            lambda engine: engine.memory.list_versions(memory_id, **self._address(scope))
        )
        return [
            with_iso_times(
                {
                    **memory_dict(version),
                    "known_from": version.known_from,
                    "known_until": version.known_until,
                }
            )
            for version in versions
        ]

    async def count(self, metadata: Mapping[str, Any] | None = None, **scope: Unpack[AgentScope]) -> int:
        """Return the number of memories, or of those with these values in their metadata."""
        return await self._count_where(scope_of(self.scope, scope), filter_by_metadata(metadata))

    async def list(
        self,
        limit: int | None = 100,
        offset: int = 0,
        *,
        metadata: Mapping[str, Any] | None = None,
        newest_first: bool = False,
        **scope: Unpack[AgentScope],
    ) -> RecordList:
        """Return memories in the order of time, filtered by metadata. `limit` None returns all."""
        walk = self._walk(
            scope_of(self.scope, scope), filter_by_metadata(metadata), newest_first=newest_first
        )
        return [memory_dict(memory) async for memory in _page(walk, limit, offset)]

    async def get_recent(self, limit: int = 10, **scope: Unpack[AgentScope]) -> RecordList:
        """Return the latest memories, newest first."""
        return await self.list(limit, newest_first=True, **scope)

    async def get_by_date(
        self, start: Instant | None = None, end: Instant | None = None, **scope: Unpack[AgentScope]
    ) -> RecordList:
        """Return memories from `start` until before `end`. The default time zone is UTC."""
        between = Overlaps(instant_of(start), instant_of(end))
        if between.start is not None and between.end is not None and between.end < between.start:
            raise InvalidInput("end", "is before start")
        return [memory_dict(memory) async for memory in self._walk(scope_of(self.scope, scope), between)]

    async def find_by_entity(self, entity: str, **scope: Unpack[AgentScope]) -> RecordList:
        """Return memories with that name among their entities, in any spelling."""
        where = In((ENTITIES,), (entity, key_of(entity)))
        return [memory_dict(memory) async for memory in self._walk(scope_of(self.scope, scope), where)]

    async def conversation(
        self,
        conversation_id: str,
        reverse: bool = False,
        *,
        include_metadata: bool = True,
        limit: int | None = None,
        offset: int = 0,
        **owner: Unpack[Owner],
    ) -> RecordList:
        """Return a conversation in chronological or reverse order; all of it without a `limit`."""
        scope = scope_of(self.scope, {**owner, "conversation_id": conversation_id})
        walk = self._walk(scope, EVERYTHING, newest_first=reverse)
        memories = [memory_dict(memory) async for memory in _page(walk, limit, offset)]
        if not include_metadata:
            for memory in memories:
                del memory["metadata"]
        return memories

    async def get_conversation_history(
        self, conversation_id: str | None = None, max_items: int | None = None, **owner: Unpack[Owner]
    ) -> RecordList:
        """Return a conversation in order, of `max_items` the last ones.

        The default is the conversation of the context, or all conversations.
        """
        scope = self.scope.conversation if conversation_id is None else conversation_id
        memories = await self.list(max_items, newest_first=True, conversation_id=scope, **owner)
        return memories[::-1]

    async def list_conversations(self, **scope_options: Unpack[AgentScope]) -> RecordList:
        """Return the conversations with their numbers of memories, first and last times."""
        scope = scope_of(self.scope, scope_options)
        conversations = await self.storage.run(
            lambda engine: engine.memory.list_conversations(**self._address(scope))
        )
        return [
            with_iso_times(
                {
                    "conversation_id": conversation.scope.conversation,
                    "agent_id": conversation.scope.agent,
                    "user_id": conversation.scope.user,
                    "count": conversation.memories,
                    "first": conversation.first,
                    "last": conversation.last,
                }
            )
            for conversation in conversations
        ]

    async def conversation_summary(self, conversation_id: str, **owner: Unpack[Owner]) -> dict[str, Any]:
        """Return statistics of a conversation: memories, messages by speaker, tokens and times."""
        scope = scope_of(self.scope, {**owner, "conversation_id": conversation_id})
        numbers = await self._numbers(scope)
        speakers: dict[str, int] = {}
        async for memory in self._walk(scope, EVERYTHING):
            name = memory.document.author or memory.document.role or "unknown"
            speakers[name] = speakers.get(name, 0) + 1
        return {"conversation_id": conversation_id, **numbers, "speakers": speakers}

    async def stats(self, **scope_options: Unpack[AgentScope]) -> dict[str, Any]:
        """Return statistics of a scope."""
        scope = scope_of(self.scope, scope_options)
        return {
            **await self._numbers(scope),
            "short_term": len(await self._recent_turns(scope)),
            "short_term_limit": self.short_term_limit,
            "token_limit": self.token_limit,
        }

    def _address(self, scope: Scope) -> dict[str, Any]:
        return {"scope": scope, "collection": self.storage.collection}

    async def _numbers(self, scope: Scope) -> dict[str, Any]:
        statistics = await self.storage.run(lambda engine: engine.memory.stats(**self._address(scope)))
        return with_iso_times({name: getattr(statistics, name) for name in statistics.__dataclass_fields__})

    async def _count_where(self, scope: Scope, where: Filter) -> int:
        return await self.storage.run(
            lambda engine: engine.memory.count(**self._address(scope), filter=where)
        )

    async def _find(self, memory_id: str, scope: Scope) -> Memory | None:
        try:
            return await self.storage.run(lambda engine: engine.memory.get(memory_id, **self._address(scope)))
        except NotFound:
            return None

    async def _walk(
        self, scope: Scope, where: Filter, *, newest_first: bool = False
    ) -> AsyncIterator[Memory]:
        """Yield all memories that match, in the order of time."""

        async def read(after: str | None = None) -> MemoryPage:
            return await self.storage.run(
                lambda engine: engine.memory.list(
                    **self._address(scope),
                    filter=where,
                    after=after,
                    limit=MEMORIES_PER_PAGE,
                    newest_first=newest_first,
                )
            )

        async for page in pages(read):
            for memory in page.memories:
                yield memory


def filter_by_metadata(metadata: Mapping[str, Any] | None) -> Filter:
    """Return a filter for metadata of the caller; None matches a missing key."""
    parts: list[Filter] = []
    for name, value in (metadata or {}).items():
        if value is not None and not isinstance(value, str | int | float | bool | datetime):
            raise InvalidInput(f"metadata.{name}", "must be a string, a number, true or false")
        path = (OWN, name)
        parts.append(Not(Exists(path)) if value is None else Eq(path, value))
    return And(tuple(parts))


async def _read_vectors(engine: AnyEngine, memories: Sequence[str]) -> Mapping[str, Vector]:
    """Return the vectors of memories in one query. A server gives none."""
    return await engine.read_vectors(memories) if memories and isinstance(engine, Engine) else {}


async def _page(walk: AsyncIterator[Memory], limit: int | None, offset: int) -> AsyncIterator[Memory]:
    """Yield `limit` memories after the first `offset`."""
    for name, number in (("limit", limit), ("offset", offset)):
        if number is not None and number < 0:
            raise InvalidInput(name, "must be 0 or more")
    position = 0
    async for memory in walk:
        if limit is not None and position >= offset + limit:
            return
        if position >= offset:
            yield memory
        position += 1
