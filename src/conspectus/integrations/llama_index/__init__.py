"""Conspectus for programs made with LlamaIndex: retriever, vector store, message store, long-term memory.

    with conspectus.open("notes") as engine:
        retriever = ConspectusRetriever(engine, Ask(max_tokens=1_000))
        nodes = retriever.retrieve("When is the meeting?")

The engine is one of `conspectus.open` or `conspectus.connect`, blocking or not, or the path of a store.
"""

from conspectus.errors import MissingExtra
from conspectus.integrations.passages import Ask

try:
    from conspectus.integrations.llama_index.chat_store import ConspectusAsyncChatStore
    from conspectus.integrations.llama_index.memory_block import ConspectusMemoryBlock
    from conspectus.integrations.llama_index.retriever import ConspectusRetriever
    from conspectus.integrations.llama_index.vector_store import ConspectusVectorStore
except ImportError as missing:
    raise MissingExtra("llama-index", "llama-index-core") from missing

__all__ = [
    "Ask",
    "ConspectusAsyncChatStore",
    "ConspectusMemoryBlock",
    "ConspectusRetriever",
    "ConspectusVectorStore",
]
