"""Conspectus for agents made with Pydantic AI: tools, and the history of a conversation.

    async with conspectus.open("notes") as engine:
        history = ConspectusHistory("monday", engine, user="ann")
        agent = Agent(model, toolsets=[ConspectusToolset(engine, scope=Scope("ann"))])
        result = await agent.run("Where were we?", message_history=await history.messages())
        await history.add(result.new_messages())

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from conspectus.bridge.engine_access import AnyEngineOrPath, Work, access_to
from conspectus.bridge.engine_user import EngineUser, blocking_and_async
from conspectus.engine.any_engine import AnyEngine
from conspectus.errors import InvalidInput, MissingExtra
from conspectus.integrations.chat_messages import Conversation, Item, nothing_yet
from conspectus.model.filter import EVERYTHING, Filter
from conspectus.model.memory import NewMemory, Scope

try:
    from pydantic_ai import FunctionToolset, ModelRetry
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        TextPart,
        UserPromptPart,
    )
    from pydantic_core import PydanticSerializationError
except ImportError as missing:
    raise MissingExtra("pydantic-ai", "pydantic-ai-slim") from missing

NOTHING = "Nothing was found."
T = TypeVar("T")
ROLES = {"tool-return": "tool", "retry-prompt": "tool", "system-prompt": "system"}
"""The roles of requests by their last part; those of others are the user's."""


class ConspectusToolset(EngineUser, FunctionToolset[Any]):
    """Tools of an agent: `context` finds documents; with a `scope`, `recall` and `remember` are its memory.

    Each answer has at most `max_tokens` tokens. What the tools may see is decided here, not by the model.
    """

    def __init__(
        self,
        engine: AnyEngineOrPath = None,
        *,
        collection: str = "default",
        filter: Filter = EVERYTHING,
        scope: Scope | None = None,
        max_tokens: int = 2_000,
    ) -> None:
        self._access = access_to(engine)
        self._collection = collection
        self._filter = filter
        self._scope = scope or Scope()
        self._max_tokens = max_tokens
        memory = [] if scope is None else [self.recall, self.remember]
        super().__init__([self.context, *memory], id="conspectus")

    async def context(self, query: str) -> str:
        """Search the documents, and return the passages that answer a query, with their sources."""

        async def work(engine: AnyEngine) -> str:
            window = await engine.search.window(
                query, self._max_tokens, collection=self._collection, filter=self._filter
            )
            return window.text

        return await self._answer(work) or NOTHING

    async def recall(self, query: str) -> str:
        """Search what was remembered and said before, also in other conversations."""

        async def work(engine: AnyEngine) -> str:
            with nothing_yet():
                return (await engine.memory.window(query, self._max_tokens, scope=self._scope, recent=0)).text
            return ""

        return await self._answer(work) or NOTHING

    async def remember(self, text: str) -> str:
        """Remember an instruction, a preference or a fact for later conversations."""

        async def work(engine: AnyEngine) -> str:
            await engine.memory.add(NewMemory(text, kind="note", origin="agent"), scope=self._scope)
            return "Remembered."

        return await self._answer(work)

    async def _answer(self, work: Work[str]) -> str:
        """Run a tool. What is wrong with its argument is said to the model, which may try again."""
        try:
            return await self._access.run(work)
        except InvalidInput as wrong:
            raise ModelRetry(str(wrong)) from wrong


class ConspectusHistory(Conversation):
    """The messages of a conversation, stored as memories in the order of time.

    Messages can be found later, also from other conversations of the same user. Without an `agent`, messages
    of all agents in the conversation are read, and new ones belong to no agent.
    """

    form = "pydantic_ai"

    async def _messages(self, engine: AnyEngine, limit: int | None = None) -> list[ModelMessage]:
        """Return the last `limit` messages in the order of time (None: all)."""
        return [_message(memory) for memory in await self._turns.newest(engine, limit)]

    async def _add(self, engine: AnyEngine, messages: Sequence[ModelMessage]) -> None:
        """Append messages, all or none. Raises InvalidInput for one that is not JSON."""
        all_messages = list(messages)
        await self._turns.add(engine, _items(all_messages), roles=list(map(_role, all_messages)))

    messages_sync, messages = blocking_and_async(_messages)
    add_sync, add = blocking_and_async(_add)
    clear_sync, clear = blocking_and_async(Conversation._clear)


def _role(message: ModelMessage) -> str:
    if isinstance(message, ModelResponse):
        return "assistant"
    if message.parts:
        return ROLES.get(message.parts[-1].part_kind, "user")
    return "user"


def _items(messages: list[ModelMessage]) -> list[Item]:
    """Return messages as JSON. A system prompt gets another name, as it is not what was said."""
    try:
        items: list[Item] = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    except PydanticSerializationError as fault:
        raise InvalidInput("message", f"is not JSON: {fault}") from fault
    for part in (part for item in items for part in item["parts"]):
        if part["part_kind"] == "system-prompt":
            part["instruction"] = part.pop("content")
    return items


def _message(item: Item) -> ModelMessage:
    if "parts" not in item:
        content = item["content"]
        is_answer = item["role"] == "assistant"
        if is_answer:
            return ModelResponse([TextPart(content)])
        return ModelRequest([UserPromptPart(content)])
    for part in item["parts"]:
        if "instruction" in part:
            part["content"] = part.pop("instruction")
    return ModelMessagesTypeAdapter.validate_python([item])[0]
