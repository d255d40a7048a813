"""What adapters for other programs need of an engine, be it in this process or on a server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from conspectus.model.filter import Filter
from conspectus.model.memory import (
    ConversationSummary,
    MemoryClass,
    MemoryPage,
    MemoryQuery,
    MemoryReceipt,
    MemorySelection,
    MemoryWindow,
    MemoryWritten,
    NewMemory,
    Scope,
)
from conspectus.model.query import Budget, Query
from conspectus.model.records import Collection, Document, NewDocument, Receipt, Source, SourceKind, Written
from conspectus.model.reports import Page
from conspectus.model.results import ContextWindow, Retrieval
from conspectus.ports import CountTokens


class AdapterEngine(Protocol):
    """The methods of Engine and of RemoteEngine that adapters are made of."""

    async def collection(
        self, name: str = ..., *, words_only: bool = ..., language: str | None = ...
    ) -> Collection:
        """The collection of that name, made if it is new."""
        ...

    async def find_collection(self, name: str) -> Collection:
        """The collection of that name."""
        ...

    async def create_collection(self, name: str, *, embedder: str | None = ...) -> Collection:
        """Create a collection."""
        ...

    async def source(self, name: str, *, collection: str = ..., kind: SourceKind = ...) -> Source:
        """The source of that name, made if it is new."""
        ...

    async def find_source(self, source: str, *, collection: str | None = ...) -> Source:
        """The source of that id or name."""
        ...

    async def add(
        self, documents: Iterable[NewDocument], *, source: str = ..., collection: str = ..., wait: bool = ...
    ) -> list[Written]:
        """Store documents."""
        ...

    async def get(self, document: str) -> Document:
        """A document's fields."""
        ...

    async def texts(self, documents: Sequence[str]) -> Mapping[str, str]:
        """The texts of documents by their ids."""
        ...

    async def delete(self, documents: Iterable[str]) -> Receipt:
        """Delete documents."""
        ...

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question."""
        ...

    async def window(self, /, query: str | Query, budget: int | Budget, **fields: Any) -> ContextWindow:
        """The right context for a question."""
        ...

    async def remember(
        self, memories: Iterable[NewMemory], *, scope: Scope, collection: str = ...
    ) -> list[MemoryWritten]:
        """Keep memories."""
        ...

    async def memories(
        self,
        *,
        scope: Scope,
        collection: str = ...,
        kind: MemoryClass | None = ...,
        after: str | None = ...,
        limit: int = ...,
        newest_first: bool = ...,
    ) -> MemoryPage:
        """A page of memories in the order of time."""
        ...

    async def memory_window(self, question: MemoryQuery, budget: int | Budget) -> MemoryWindow:
        """Context from memory."""
        ...

    async def update_memory(
        self, /, memory: str, *, scope: Scope, collection: str = ..., **changes: Any
    ) -> Written:
        """Change fields of a memory."""
        ...

    async def forget(self, what: MemorySelection, *, scope: Scope, collection: str = ...) -> MemoryReceipt:
        """Delete memories."""
        ...

    async def conversations(self, *, scope: Scope, collection: str = ...) -> Sequence[ConversationSummary]:
        """The conversations of a scope."""
        ...

    def counter(self, tokenizer: str = ...) -> CountTokens:
        """What counts tokens."""
        ...

    async def list(
        self, *, collection: str = ..., where: Filter = ..., after: str | None = ..., limit: int = ...
    ) -> Page:
        """A page of documents."""
        ...
