"""Conspectus as the memory service of agents made with Google's Agent Development Kit.

    async with conspectus.open("notes") as engine:
        runner = Runner(…, memory_service=ConspectusMemoryService(engine))

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from collections.abc import Mapping, Sequence

from conspectus.bridge.engine_access import AnyEngineOrPath, access_to
from conspectus.bridge.engine_user import EngineUser
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import MissingExtra
from conspectus.integrations.chat_messages import nothing_yet
from conspectus.model.memory import MEMORY, Memory, MemorySelection, NewMemory, Scope

try:
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai.types import Content, Part
except ImportError as missing:
    raise MissingExtra("google-adk", "google-adk") from missing

ROLES = {"model": "assistant", "assistant": "model"}
"""Roles that have another name on the other side."""


class ConspectusMemoryService(EngineUser, BaseMemoryService):
    """What was said in the sessions of a user, found by keyword and vector search, at most `limit` at once.

    The user of a memory is the user, its agent the app, its conversation the session. An event is stored
    once, however often its session is added; events without a text are not. Explicit memories are notes.
    """

    def __init__(self, engine: AnyEngineOrPath = None, *, collection: str = MEMORY, limit: int = 10) -> None:
        self._access = access_to(engine)
        self._collection = collection
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store events, with the metadata for each."""
        new = [
            NewMemory(
                _text(event.content),
                key=event.id,
                role=_role(event.content),
                speaker=event.author,
                at=event.timestamp,
                metadata=custom_metadata or {},
            )
            for event in events
            if _text(event.content)
        ]
        await self._add(new, Scope(user_id, app_name, session_id))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store memories as notes. One with an id replaces the note of that id."""
        new = [
            NewMemory(
                _text(memory_entry.content),
                key=memory_entry.id,
                speaker=memory_entry.author,
                at=memory_entry.timestamp,
                kind="note",
                metadata={**(custom_metadata or {}), **memory_entry.custom_metadata},
            )
            for memory_entry in memories
            if _text(memory_entry.content)
        ]
        await self._add(new, Scope(user_id, app_name))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the memories of all sessions of a user that match a query, best first."""

        async def work(engine: AnyEngine) -> list[MemoryEntry]:
            scope = Scope(user_id, app_name)
            with nothing_yet():
                retrieval = await engine.memory.recall(
                    query, scope=scope, collection=self._collection, limit=self._limit, recent=0
                )
                return [_entry(hit.memory) for hit in retrieval.memories]
            return []

        return SearchMemoryResponse(memories=await self._access.run(work))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory. Its event is stored again if its session is added again."""
        if not memory_id:
            return
        selection = MemorySelection(ids=(memory_id,))
        scope = Scope(user_id, app_name)

        async def work(engine: AnyEngine) -> None:
            with nothing_yet():
                await engine.memory.forget(selection, scope=scope, collection=self._collection)

        await self._access.run(work)

    async def _add(self, new: Sequence[NewMemory], scope: Scope) -> None:
        if new:
            await self._access.run(
                lambda engine: engine.memory.add(new, scope=scope, collection=self._collection, wait=True)
            )


def _text(content: Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _role(content: Content | None) -> str | None:
    role = None if content is None else content.role
    return ROLES.get(role or "", role)


def _entry(memory: Memory) -> MemoryEntry:
    stored = memory.document
    role = ROLES.get(stored.role or "", stored.role)
    return MemoryEntry(
        id=memory.id,
        content=Content(role=role, parts=[Part(text=memory.text)]),
        author=stored.author,
        timestamp=None if stored.occurred is None else stored.occurred.start.isoformat(),
        custom_metadata=dict(memory.metadata),
    )
