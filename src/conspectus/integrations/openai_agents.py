"""Conspectus as the session of agents made with OpenAI's Agents SDK.

    async with conspectus.open("notes") as engine:
        session = ConspectusSession("support-17", engine, user="ann")
        result = await Runner.run(agent, "Where were we?", session=session)

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from typing import Any, TypeVar, cast

from conspectus.bridge.engine_access import AnyEngineOrPath, Closed, Work, access_to
from conspectus.errors import MissingExtra
from conspectus.integrations.chat_messages import Item, Turns
from conspectus.model.memory import MEMORY, Scope

try:
    from agents import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError as missing:
    raise MissingExtra("openai-agents", "openai-agents") from missing

FORM = "openai_agents"
T = TypeVar("T")


class ConspectusSession(SessionABC):
    """Items of a conversation, stored as memories: messages, tool calls and their results.

    Messages can be found later, also from other conversations of the same user. Without an `agent`, items of
    all agents in the conversation are read, and new ones belong to no agent: agents that hand over to each
    other share a session. After closing, it raises Closed, which is a RuntimeError.
    """

    def __init__(
        self,
        session_id: str,
        engine: AnyEngineOrPath = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        collection: str = MEMORY,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._closed = False
        self._access = access_to(engine)
        self._turns = Turns(Scope(user, agent, session_id), FORM, collection)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last `limit` items in the order of time (None: the limit of the settings, or all)."""
        maximum = resolve_session_limit(limit, self.session_settings)
        items = await self._run(lambda engine: self._turns.newest(engine, maximum))
        return [cast(TResponseInputItem, item) for item in items]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items. Raises InvalidInput for one that is not JSON; then none is stored."""
        new_items = [cast(Item, item) for item in items]
        roles = [_role(item) for item in new_items]
        await self._run(lambda engine: self._turns.add(engine, new_items, roles=roles))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item."""
        return cast(TResponseInputItem | None, await self._run(self._turns.pop))

    async def clear_session(self) -> None:
        """Delete all items. Notes of the conversation are kept."""
        await self._run(self._turns.clear)

    def close(self) -> None:
        """Close the store that was opened at a path. An engine that was passed in stays open."""
        self._closed = True
        self._access.close()

    async def _run(self, work: Work[T]) -> T:
        if self._closed:
            raise Closed("session")
        return await self._access.run(work)


def _role(item: Item) -> str:
    """Return the role of an item. Items without one belong to a tool, or to the model that calls it."""
    kind = str(item.get("type", ""))
    return str(item.get("role") or ("tool" if kind.endswith("_output") else "assistant"))
