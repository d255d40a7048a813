"""The API of a video context manager over the engine."""

from conspectus.facades.video.context_manager import (
    ContextEmbedder,
    ContextManager,
    ContextStore,
    ContextWindow,
    Document,
    EngineContextStore,
    GeminiEmbeddings,
    InMemoryContextStore,
    MilvusContextStore,
    RetrievalResult,
    SummarizationFunction,
)

__all__ = [
    "ContextEmbedder",
    "ContextManager",
    "ContextStore",
    "ContextWindow",
    "Document",
    "EngineContextStore",
    "GeminiEmbeddings",
    "InMemoryContextStore",
    "MilvusContextStore",
    "RetrievalResult",
    "SummarizationFunction",
]
