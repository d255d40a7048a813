"""What video contexts need of an engine, be it in this process or on a server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from conspectus.model.filter import Filter
from conspectus.model.query import Query
from conspectus.model.records import Collection, Document, Receipt, Source, Written
from conspectus.model.reports import Page
from conspectus.model.results import Retrieval
from conspectus.model.streams import CaptionPage, CaptionRange, NewCaption, Summary, SummaryRequest


class VideoEngine(Protocol):
    """The methods of Engine and of RemoteEngine that video contexts are made of."""

    async def collection(self, name: str = ..., *, words_only: bool = ...) -> Collection:
        """The collection of that name, made if it is new."""
        ...

    async def create_collection(self, name: str, *, embedder: str | None = ...) -> Collection:
        """Make a collection."""
        ...

    async def find_collection(self, name: str) -> Collection:
        """The collection of that name."""
        ...

    async def reembed(self, embedder: str, *, collection: str = ...) -> int:
        """Move a collection to another space."""
        ...

    async def sources(self, *, collection: str = ...) -> Sequence[Source]:
        """The sources of a collection."""
        ...

    async def delete_source(self, source: str, *, collection: str | None = ...) -> Receipt:
        """Delete a source with all that is in it."""
        ...

    async def add_captions(
        self, captions: Iterable[NewCaption], *, stream: str, collection: str = ...
    ) -> list[Written]:
        """Store captions of a stream."""
        ...

    async def captions(
        self,
        *,
        stream: str,
        collection: str = ...,
        within: CaptionRange = ...,
        after: str | None = ...,
        limit: int = ...,
    ) -> CaptionPage:
        """A page of the captions of a range."""
        ...

    async def get(self, document: str) -> Document:
        """A document's fields."""
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

    async def update(self, /, document: str, **changes: Any) -> Written:
        """Change fields of a document."""
        ...

    async def delete(self, documents: str) -> Receipt:
        """Delete a document."""
        ...

    async def delete_where(self, where: Filter, *, collection: str = ...) -> Receipt:
        """Delete every document that matches."""
        ...

    async def retrieve(self, /, query: str | Query, **fields: Any) -> Retrieval:
        """The best chunks for a question."""
        ...

    async def summarise(self, request: SummaryRequest) -> Summary:
        """What a range of a stream comes to."""
        ...
