"""What tasks need of an engine, be it in this process or on a server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from conspectus.model.filter import Filter
from conspectus.model.query import Query
from conspectus.model.records import Collection, Document, NewDocument, Receipt, Source, SourceKind, Written
from conspectus.model.reports import Page
from conspectus.model.results import Retrieval
from conspectus.ports import CountTokens


class TaskEngine(Protocol):
    """The methods of Engine and of RemoteEngine that tasks are made of."""

    async def source(self, name: str, *, collection: str = ..., kind: SourceKind = ...) -> Source:
        """The source of that name, made if it is new."""
        ...

    async def find_source(self, source: str, *, collection: str | None = ...) -> Source:
        """The source of that name."""
        ...

    async def find_collection(self, name: str) -> Collection:
        """The collection of that id."""
        ...

    async def add(
        self, documents: Iterable[NewDocument], *, source: str = ..., collection: str = ...
    ) -> list[Written]:
        """Store documents."""
        ...

    async def settle(self, *, collection: str = ...) -> int:
        """Wait until everything can be found by meaning."""
        ...

    async def get(self, document: str) -> Document:
        """A document's fields."""
        ...

    async def text(self, document: str) -> str:
        """A document's text."""
        ...

    async def texts(self, documents: Sequence[str]) -> Mapping[str, str]:
        """The texts of documents by their ids."""
        ...

    async def list(
        self, *, collection: str = ..., where: Filter = ..., after: str | None = ..., limit: int = ...
    ) -> Page:
        """A page of documents."""
        ...

    async def count(self, *, collection: str = ..., where: Filter = ...) -> int:
        """How many documents match."""
        ...

    async def delete(self, documents: str) -> Receipt:
        """Delete a document with its children."""
        ...

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question."""
        ...

    def counter(self, tokenizer: str = ...) -> CountTokens:
        """What counts tokens."""
        ...
