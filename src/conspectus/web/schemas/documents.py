"""Bodies of queries, collections, sources and documents."""

from typing import Annotated, Any

from pydantic import Field

from conspectus.engine.collections import CollectionService
from conspectus.engine.search import SearchService
from conspectus.model import parameters
from conspectus.model.ids import EXAMPLE_ID
from conspectus.model.records import (
    Kind,
    NewDocument,
    Period,
    ReadBy,
    SourceKind,
    Syntax,
    TextPosition,
)
from conspectus.model.trust import Origin, Trust
from conspectus.operations.declared import declared, facts_of
from conspectus.web.schemas.base import (
    Finite,
    Identifier,
    Instant,
    Int64,
    JsonObject,
    Label,
    Name,
    Question,
    RequestModel,
    Span,
    Where,
)

MAX_CHUNKS = 1_000_000
"""Most ids of a list when it is parsed; the settings limit how many are accepted."""


class RerankBody(RequestModel):
    """Chunks found before, by their ids, to put into the order of a reranker."""

    query: Question
    chunks: list[Int64] = Field(
        max_length=MAX_CHUNKS, description="Ids of chunks, best first.", examples=[[17, 4]]
    )
    limit: Annotated[int, declared(SearchService.rerank, "limit")] = 5


class CollectionBody(RequestModel):
    """A collection to make; with `get`, the one of that name is returned if there is one."""

    name: Annotated[str, declared(CollectionService.create, "name")]
    embedder: Annotated[str | None, declared(CollectionService.create, "embedder")] = None
    dimensions: Annotated[int | None, declared(CollectionService.create, "dimensions")] = None
    language: Annotated[str | None, declared(CollectionService.create, "language")] = None
    description: Annotated[str, declared(CollectionService.create, "description")] = ""
    get: bool = Field(False, description="Return the collection of that name if it exists already.")


class SourceBody(RequestModel):
    """A source to get, or to create if it is new; `metadata`, if given, replaces that of the source."""

    name: Annotated[str, declared(CollectionService.get_or_create_source, "name")]
    metadata: Annotated[JsonObject | None, declared(CollectionService.get_or_create_source, "metadata")] = (
        None
    )
    kind: Annotated[SourceKind, declared(CollectionService.get_or_create_source, "kind")] = "manual"


class PeriodBody(RequestModel):
    """A half-open span of time."""

    start: Instant
    end: Instant


PageShare = Annotated[int, Field(ge=0, le=1_000)]


class PlaceBody(RequestModel):
    """The page and the headings (outermost first) of a text from character `start` on.

    `box` is where a recognized text stands on its page: left, top, right and bottom in thousandths of it.
    """

    start: int = Field(ge=0, le=2**31)
    page: int | None = Field(None, ge=0, le=2**31)
    headings: list[Label] = Field(default=[], max_length=100)
    box: tuple[PageShare, PageShare, PageShare, PageShare] | None = None


class DocumentFields(RequestModel):
    """The fields of a document that can be changed later."""

    title: Annotated[str, declared(NewDocument, "title")] = ""
    kind: Annotated[Kind, declared(NewDocument, "kind")] = "page"
    metadata: Annotated[JsonObject, declared(NewDocument, "metadata")] = {}
    author: Annotated[str | None, declared(NewDocument, "author")] = None
    role: Annotated[str | None, declared(NewDocument, "role")] = None
    occurred: Annotated[
        PeriodBody | Annotated[str, Field(max_length=100)] | Finite | None, declared(NewDocument, "occurred")
    ] = None
    sequence: Annotated[Int64 | None, declared(NewDocument, "sequence")] = None
    parent: Annotated[str | None, declared(NewDocument, "parent")] = None
    thread: Annotated[str | None, declared(NewDocument, "thread")] = None
    syntax: Annotated[Syntax, declared(NewDocument, "syntax")] = "plain"
    places: Annotated[list[PlaceBody], declared(NewDocument, "places")] = []
    spans: Annotated[list[Span], declared(NewDocument, "spans")] = []
    vector: Annotated[list[Finite] | None, declared(NewDocument, "vector")] = None
    origin: Annotated[Origin | None, declared(NewDocument, "origin")] = None
    trust: Annotated[Trust | None, declared(NewDocument, "trust")] = None
    read_by: Annotated[ReadBy, declared(NewDocument, "read_by")] = "text"

    def named_fields(self) -> dict[str, Any]:
        """Return the fields that the client named, as the engine takes them."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if isinstance(self.occurred, PeriodBody):
            fields["occurred"] = Period(self.occurred.start, self.occurred.end)
        if "places" in fields:
            fields["places"] = tuple(
                TextPosition(at.start, at.page, tuple(at.headings), at.box) for at in self.places
            )
        if "spans" in fields:
            fields["spans"] = tuple(self.spans)
        if self.vector is not None:
            fields["vector"] = tuple(self.vector)
        return fields


class DocumentBody(DocumentFields):
    """A document to store. With a `key`, it replaces the stored one of that key in its source."""

    text: Annotated[str, declared(NewDocument, "text")]
    key: Annotated[str | None, declared(NewDocument, "key")] = None
    if_match: Annotated[str | None, declared(NewDocument, "if_match")] = None

    def document(self) -> NewDocument:
        """Return the document as the engine takes it."""
        return NewDocument(**self.named_fields())


class DocumentsBody(RequestModel):
    """Documents to store in one source, in order."""

    documents: list[DocumentBody] = Field(max_length=parameters.MAX_LIST, description="Documents to store.")
    source: Name = Field("default", description="The source, made if it is new.")
    wait: Annotated[bool, Field(**facts_of(parameters.Wait))] = False


class DocumentsOfSource(RequestModel):
    """Documents to store in the source of the path, in order."""

    documents: list[DocumentBody] = Field(max_length=parameters.MAX_LIST, description="Documents to store.")
    wait: Annotated[bool, Field(**facts_of(parameters.Wait))] = False


class DocumentChange(DocumentFields):
    """The fields of a document to change; those that are not named stay. Metadata are replaced whole."""

    text: Annotated[str, declared(NewDocument, "text")] = ""


class DeletionBody(RequestModel):
    """Documents of a collection to delete: by `ids`, or all that match `filter`; exactly one of the two."""

    ids: list[Identifier] | None = Field(
        None, max_length=1_000, description="Ids of documents.", examples=[[EXAMPLE_ID]]
    )
    filter: Where | None = None
    purge: Annotated[bool, Field(**facts_of(parameters.Purge))] = False
