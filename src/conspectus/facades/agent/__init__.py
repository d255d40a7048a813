"""An agent's memory and its knowledge graph.

    with AgentContext("memory", user_id="ada") as context:
        context.store("Ada likes tea.", conversation_id="monday")
        print(context.retrieve("What does Ada drink?")[0]["content"])

Storing, finding and forgetting are the engine's: here are the words of agents' programs, blocking and (with
`Async` before their names) for an event loop.
"""

from conspectus.facades.agent.blocking import (
    AgentContext,
    AgentMemory,
    ContextGraph,
    ContextRetriever,
    EntityLinker,
)
from conspectus.facades.agent.context import AsyncAgentContext
from conspectus.facades.agent.graph import AsyncContextGraph
from conspectus.facades.agent.linker import AsyncEntityLinker
from conspectus.facades.agent.mapping import MemoryItem
from conspectus.facades.agent.memory import AsyncAgentMemory
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
