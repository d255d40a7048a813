"""The API of a video context manager over the engine."""

from conspectus.bootstrap import GeminiEmbeddings
from conspectus.facades.video.context_manager import ContextEmbedder, ContextManager, SummarizationFunction
from conspectus.facades.video.mapping import ContextStore, ContextWindow, Document, RetrievalResult
from conspectus.facades.video.store import EngineContextStore, InMemoryContextStore, MilvusContextStore

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
