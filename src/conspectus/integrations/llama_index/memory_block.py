"""A long-term memory of LlamaIndex."""

from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory.memory import BaseMemoryBlock

from conspectus.engine.any_engine import AnyEngine
from conspectus.integrations.chat_messages import nothing_yet
from conspectus.integrations.llama_index.components import OfPeople
from conspectus.integrations.llama_index.messages import item_of
from conspectus.model.memory import Scope


class ConspectusMemoryBlock(OfPeople, BaseMemoryBlock[str]):
    """Long-term memory for LlamaIndex's Memory: memories relevant to the last message, within a token limit.

    Messages that Memory flushes from its history are stored in the conversation of its session.
    """

    name: str = "LongTermMemory"
    max_tokens: int = 1_000

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        text = messages[-1].content if messages else None
        if not text:
            return ""
        scope = Scope(self.user, self.agent)

        async def work(engine: AnyEngine) -> str:
            with nothing_yet():
                window = await engine.memory.window(
                    text, self.max_tokens, scope=scope, collection=self.collection, recent=0
                )
                return window.text
            return ""

        return await self._access.run(work)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            sessions.setdefault(message.additional_kwargs.get("session_id"), []).append(message)
        for session, session_messages in sessions.items():
            items, roles = (
                [item_of(message) for message in session_messages],
                [message.role.value for message in session_messages],
            )
            await self._access.run(partial(self._turns(session).add, items=items, roles=roles))
