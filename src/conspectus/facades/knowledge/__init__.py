"""A knowledge base of many users over the engine."""

from conspectus.facades.knowledge.items import (
    Chunk,
    Collection,
    Document,
    RankedResult,
    SearchResult,
    Source,
)
from conspectus.facades.knowledge.knowledge_base import IngestOptions, KnowledgeBase
from conspectus.facades.knowledge.prompts import cited, with_knowledge

__all__ = [
    "Chunk",
    "Collection",
    "Document",
    "IngestOptions",
    "KnowledgeBase",
    "RankedResult",
    "SearchResult",
    "Source",
    "cited",
    "with_knowledge",
]
