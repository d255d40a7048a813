"""The API of a video context manager over the engine."""

from conspectus.bootstrap import GeminiEmbeddings
from conspectus.facades.video.context_manager import ContextManager
from conspectus.facades.video.context_store import ContextStore, ContextWindow, Document, RetrievalResult
from conspectus.facades.video.embeddings import ContextEmbedder
from conspectus.facades.video.functions import SummarizationFunction
from conspectus.facades.video.milvus_store import MilvusContextStore
from conspectus.facades.video.store import EngineContextStore, InMemoryContextStore

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
