"""An agent's memory and its knowledge graph.

    with AgentContext("memory", user_id="ada") as context:
        context.store("Ada likes tea.", conversation_id="monday")
        print(context.retrieve("What does Ada drink?")[0]["content"])

Storing, finding and forgetting are the engine's: here are the words of agents' programs, blocking and (with
`Async` before their names) for an event loop.
"""

from conspectus.faces.agent_blocking import (
    AgentContext,
    AgentMemory,
    ContextGraph,
    ContextRetriever,
    EntityLinker,
)
from conspectus.faces.agent_context import AsyncAgentContext
from conspectus.faces.agent_linker import AsyncEntityLinker
from conspectus.faces.agent_links import AsyncContextGraph
from conspectus.faces.agent_memory import AsyncAgentMemory
from conspectus.faces.agent_retriever import AsyncContextRetriever
from conspectus.faces.agent_words import MemoryItem

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
