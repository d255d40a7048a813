"""Memory and knowledge graph of an agent.

    with AgentContext("memory", user_id="ada") as context:
        context.store("Ada likes tea.", conversation_id="monday")
        print(context.retrieve("What does Ada drink?")[0]["content"])

The engine stores, searches and deletes. This package offers the API of agent programs, blocking and, with the
prefix `Async`, for an event loop.
"""

from conspectus.facades.agent.blocking import (
    AgentContext,
    AgentMemory,
    ContextGraph,
    ContextRetriever,
    EntityLinker,
)
from conspectus.facades.agent.context import AsyncAgentContext
from conspectus.facades.agent.context_graph import AsyncContextGraph
from conspectus.facades.agent.linker import AsyncEntityLinker
from conspectus.facades.agent.memory import AsyncAgentMemory
from conspectus.facades.agent.memory_items import MemoryItem
from conspectus.facades.agent.retriever import AsyncContextRetriever

__all__ = [
    "AgentContext",
    "AgentMemory",
    "AsyncAgentContext",
    "AsyncAgentMemory",
    "AsyncContextGraph",
    "AsyncContextRetriever",
    "AsyncEntityLinker",
    "ContextGraph",
    "ContextRetriever",
    "EntityLinker",
    "MemoryItem",
]
