"""Collections, sources, documents and chunks."""

from typing import Annotated, Any

from pydantic import Field

from conspectus.model.records import Kind, NewDocument, Period, SourceKind, Syntax, TextPosition
from conspectus.model.trust import Origin, Trust
from conspectus.text.vectors import MAX_DIMENSIONS
from conspectus.web.schemas.base import (
    MAX_DESCRIPTION_LENGTH,
    MAX_IDS,
    Finite,
    Identifier,
    Instant,
    Int64,
    JsonObject,
    Label,
    Name,
    RequestModel,
    Span,
    Text,
    Where,
)

MAX_DOCUMENTS = 10_000
MAX_PLACES = 100_000


class CollectionBody(RequestModel):
    """A collection to make; with `get`, the one of that name is returned if there is one."""

    name: Name = Field(examples=["wiki"])
    embedder: Label | None = Field(None, description="As in the settings; `none`: words only.")
    dimensions: int | None = Field(None, ge=1, le=65_536)
    language: Label | None = Field(None, description="A Snowball language, or `none`.", examples=["english"])
    description: str = Field("", max_length=MAX_DESCRIPTION_LENGTH)
    get: bool = Field(False, description="Return the collection of that name if it exists already.")


class SourceBody(RequestModel):
    """A source to get, or to make if it is new; `metadata`, where given, replaces what it has."""

    name: Name = Field(examples=["handbook"])
    metadata: JsonObject | None = None
    kind: SourceKind = "manual"


class PeriodBody(RequestModel):
    """A half-open span of time."""

    start: Instant
    end: Instant


class PlaceBody(RequestModel):
    """The page and the headings (outermost first) of a text from character `start` on."""

    start: int = Field(ge=0, le=2**31)
    page: int | None = Field(None, ge=0, le=2**31)
    headings: list[Label] = Field(default=[], max_length=100)


class DocumentFields(RequestModel):
    """The fields of a document that can be changed later."""

    title: Text = ""
    kind: Kind = "page"
    metadata: JsonObject = Field(default={}, examples=[{"lang": "en"}])
    author: Label | None = None
    role: Label | None = None
    occurred: PeriodBody | Annotated[str, Field(max_length=100)] | Finite | None = Field(
        None, description="When it happened: a span, an ISO 8601 time, or seconds since 1970."
    )
    sequence: Int64 | None = None
    parent: Identifier | None = None
    thread: Label | None = None
    syntax: Syntax = "plain"
    places: list[PlaceBody] = Field(default=[], max_length=MAX_PLACES)
    spans: list[Span] = Field(
        default=[], max_length=MAX_PLACES, description="The chunks to cut the text into, without a gap."
    )
    vector: list[Finite] | None = Field(
        None,
        min_length=1,
        max_length=MAX_DIMENSIONS,
        description="A vector of the collection's space, if the client has one: it is not embedded then.",
    )

    origin: Origin | None = Field(None, description="Who wrote it; can only lower its level.")
    trust: Trust | None = Field(None, description="A lower level than that of its origin.")

    def given(self) -> dict[str, Any]:
        """The fields that the client named, as the engine takes them."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if isinstance(self.occurred, PeriodBody):
            fields["occurred"] = Period(self.occurred.start, self.occurred.end)
        if "places" in fields:
            fields["places"] = tuple(
                TextPosition(at.start, at.page, tuple(at.headings)) for at in self.places
            )
        if "spans" in fields:
            fields["spans"] = tuple(self.spans)
        if self.vector is not None:
            fields["vector"] = tuple(self.vector)
        return fields


class DocumentBody(DocumentFields):
    """A document to store. With a `key`, it replaces the stored one of that key in its source."""

    text: Text = Field(examples=["The backup runs every night at two."])
    key: Label | None = None
    if_match: Label | None = Field(
        None, description="The fingerprint that was read; if it is another one by now, nothing is written."
    )

    def document(self) -> NewDocument:
        """The document as the engine takes it."""
        return NewDocument(**self.given())


class DocumentsBody(RequestModel):
    """Documents to store in one source, in order."""

    documents: list[DocumentBody] = Field(max_length=MAX_DOCUMENTS)
    source: Name = Field("default", description="The source, made if it is new.")
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class DocumentsOfSource(RequestModel):
    """Documents to store in the source of the path, in order."""

    documents: list[DocumentBody] = Field(max_length=MAX_DOCUMENTS)
    wait: bool = Field(False, description="Answer when everything is found by meaning too.")


class DocumentChange(DocumentFields):
    """The fields of a document to change; those that are not named stay. Metadata are replaced whole."""

    text: Text = ""


class DeletionBody(RequestModel):
    """Documents of a collection to delete: by `ids`, or all that match `filter`; exactly one of the two."""

    ids: list[Identifier] | None = Field(None, max_length=MAX_IDS)
    filter: Where | None = None
    purge: bool = Field(False, description="Answer when no file holds them any more.")
