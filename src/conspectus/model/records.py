"""Collections, sources, documents and chunks: one uniform model for every domain."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, TypedDict, get_args

from conspectus.deferred import dataclass
from conspectus.model.annotations import Example, Length
from conspectus.model.checks import Checked
from conspectus.model.ids import LOCAL, ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.parameters import (
    Fingerprint,
    Identifier,
    Key,
    Label,
    PersonName,
    StoredCollection,
    StoredId,
    StoredKey,
    StoredSource,
    StoredText,
    StoredTitle,
    Text,
    Vector,
    WriterOrigin,
    WriterTrust,
)
from conspectus.model.relations import Statement
from conspectus.model.trust import Origin, Trust

Json: TypeAlias = str | int | float | bool | list["Json"] | dict[str, "Json"] | None
Metadata: TypeAlias = Mapping[str, Json]
Kind = Literal["page", "message", "caption", "task", "memory", "event", "version", "quarantined"]
Status = Literal["pending", "embedded", "error", "unindexable"]
DocumentSort = Literal["added", "-added", "changed", "-changed", "title", "-title", "size", "-size"]
Syntax = Literal["plain", "markdown", "rst", "code"]
ReadBy = Literal["text", "ocr", "speech"]
"""How a text was read: as text, from an image, or from a recording."""
Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, right and bottom in thousandths of a page's width and height."""
SourceKind = Literal[
    "manual", "upload", "web", "api", "wiki", "channel", "tasks", "stream", "memory", "graph"
]
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)


def reading_mark(read_by: ReadBy) -> str:
    """Return what is shown beside a text that was recognized, and may have errors; else nothing."""
    return {"text": "", "ocr": "OCR", "speech": "speech"}[read_by]


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """Vectors can be compared only inside one space: the same model, size and version."""

    model: Annotated[str, Example("minilm")]
    dimensions: int
    version: Annotated[str, Example("1")] = "1"

    @property
    def name(self) -> str:
        """The name of the space, as stores and messages show it."""
        return f"{self.model}/{self.dimensions}/{self.version}"

    @property
    def is_of_callers(self) -> bool:
        """Whether callers give all vectors (`vectors:N`), so that no embedder makes any."""
        return self.model == "vectors"


@dataclass(frozen=True, slots=True)
class Period(Checked):
    """A half-open span of event time [start, end); an instant when both are equal. Both have zones."""

    start: datetime
    end: datetime

    def overlaps(self, start: datetime | None, end: datetime | None) -> bool:
        """Whether an instant is shared with [start, end), where None is open; an instant counts as itself."""
        if end is not None and self.start >= end:
            return False
        return start is None or self.end > start or self.start >= start


@dataclass(frozen=True, slots=True)
class RetrievalDefaults:
    """The options of searches of a collection that leave them at their built-in values.

    Each change has the next `version`; `run` is the run whose options they are.
    """

    version: int
    options: Annotated[Metadata, Example({"retrievers": ["keyword"]})]
    created: datetime
    run: StoredId


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of sources that share a language and an embedding space (None: keyword search only).

    `owner` is the account it belongs to; the names of all but the store's own collections begin with the
    name of that account and a slash. `sequence` is that of the newest change when it was read; `names` says
    that entities are extracted from its chunks, `mirrors` that a connection mirrors permissions in it.
    `retrieval` are the defaults of its searches, if an editor set some.
    """

    id: CollectionId
    name: StoredCollection
    space: EmbeddingSpace | None
    language: Annotated[str | None, Example("english")]
    created: datetime
    owner: UserId = LOCAL
    description: Annotated[str, Example("How we run our servers.")] = ""
    sequence: int = field(default=0, compare=False)
    names: bool = False
    mirrors: bool = False
    retrieval: RetrievalDefaults | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The unit of permission: a folder, a channel, a stream, a session."""

    id: SourceId
    collection: CollectionId
    name: StoredSource
    metadata: Annotated[Metadata, Example({"lang": "en"})] = field(default_factory=dict)
    kind: SourceKind = "manual"


@dataclass(frozen=True, slots=True)
class TextPosition(Checked):
    """The page and the headings (outermost first) of a text from character `start` on.

    `box` is where a recognized text stands on its page.
    """

    start: int
    page: int | None = None
    headings: tuple[str, ...] = ()
    box: Box | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One stored item. `occurred` is the time of the event, `recorded` and `updated` are times of writes.

    `key` is the caller's own name for it, unique in its source; `sequence` its place in a thread or
    stream; `chunks` how many pieces its text was split into; `fingerprint` changes with any field. `origin`
    says who wrote the text and how, `trust` is its level; `read_by` says how it was read from a file.
    `number` is larger for documents of the collection that were first stored later; 0 until it is stored.
    """

    id: DocumentId
    collection: CollectionId
    source: SourceId
    kind: Kind
    key: StoredKey
    title: StoredTitle
    content_hash: Annotated[str, Example("9b74c9897bac770ffc029102a200c5de")]
    fingerprint: Annotated[str, Example("5d41402abc4b2a76")]
    recorded: datetime
    updated: datetime
    metadata: Annotated[Metadata, Example({"lang": "en"})] = field(default_factory=dict)
    author: PersonName | None = None
    role: Annotated[str | None, Example("user")] = None
    occurred: Period | None = None
    sequence: int | None = None
    parent: DocumentId | None = None
    thread: StoredId | None = None
    syntax: Syntax = "plain"
    status: Status = "pending"
    error: str | None = None
    chunks: int = 0
    characters: int = 0
    origin: Origin = "user"
    trust: Trust = "trusted"
    number: int = field(default=0, compare=False)
    read_by: ReadBy = "text"

    @property
    def time(self) -> datetime:
        """When it happened, or else when it was first stored."""
        return self.occurred.start if self.occurred else self.recorded

    @property
    def assisted(self) -> bool:
        """Whether it is a turn of a conversation with an assistant."""
        return self.role in {"user", "assistant"}

    @property
    def location(self) -> str:
        """The place for display: the path of a page of a connection, otherwise the key.

        A page keeps its key when it moves; the key is its first path.
        """
        path = self.metadata.get("path") if "wiki" in self.metadata else None
        return path if isinstance(path, str) else self.key


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document: text is the document's text[start:end]; tokens counted with o200k_base.

    `page` (from 1) and `heading` (`Part > Chapter > Section`) say where it begins, if that is known.
    `unindexable` is why the text could not be analyzed: keyword search does not find it. `table_header` has
    the header rows of the table that its text is in the middle of, which stand in an earlier chunk. `box` is
    the part of its page that a recognized text was read from.
    """

    id: ChunkId
    document: DocumentId
    position: int
    text: StoredText
    start: int
    end: int
    tokens: int
    content_hash: Annotated[str, Example("9b74c9897bac770ffc029102a200c5de")]
    page: int | None = None
    heading: StoredTitle | None = None
    unindexable: str | None = None
    table_header: StoredText | None = None
    box: Box | None = None

    @property
    def text_with_header(self) -> str:
        """The text as it is indexed and shown: in the middle of a table, below its header rows."""
        return self.text if self.table_header is None else self.table_header + self.text


class DocumentChanges(TypedDict, total=False):
    """The fields of a NewDocument that an update may change."""

    text: str
    title: str
    kind: Kind
    metadata: Mapping[str, object]
    author: str | None
    role: str | None
    occurred: datetime | Period | str | float | None
    sequence: int | None
    parent: str | None
    thread: str | None
    syntax: Syntax
    places: tuple[TextPosition, ...]
    spans: tuple[tuple[int, int], ...]
    vector: tuple[float, ...] | None
    origin: Origin | None
    trust: Trust | None
    read_by: ReadBy


@dataclass(frozen=True, slots=True)
class NewDocument(Checked):
    """A document to be written.

    With a `key`, it replaces the document of that key in its source. Without one it is always new.
    `occurred` is a datetime, a Period, an ISO 8601 text or seconds since 1970. `places` are the positions
    where pages and sections begin, in order. Headings of Markdown and reStructuredText (`rst`) need none.
    `spans` are the chunks to cut the text into: they begin at 0, have no gaps, and end with the text.
    `if_match` is the fingerprint that the caller read: if the stored document has another one, nothing of
    the batch is written. `vector` is an embedding of the collection's model, used for every chunk and scaled
    to length 1. If the same text is written again without one, it keeps its vector. `origin` and `trust` can
    lower the trust level of the document, never raise it.
    """

    text: Annotated[Text, "Text of the document.", Example("The backup runs every night at two.")]
    title: Annotated[Text, "Title.", Example("Backups")] = ""
    kind: Annotated[Kind, "Kind of document."] = "page"
    key: (
        Annotated[Key, "Name that the caller gives it, unique in its source.", Example("backup.md")] | None
    ) = None
    metadata: Annotated[Mapping[str, object], "Metadata as JSON."] = field(default_factory=dict)
    author: Annotated[Label, "Name of the author."] | None = None
    role: Annotated[Label, "Role of the author."] | None = None
    occurred: Annotated[
        datetime | Period | str | float | None,
        "When it happened: a span, an ISO 8601 time, or seconds since 1970.",
    ] = None
    sequence: Annotated[int | None, "Its place in a thread or stream."] = None
    parent: Annotated[Identifier, "Id of the document that it answers or belongs to."] | None = None
    thread: Annotated[Key, "Name of its thread."] | None = None
    syntax: Annotated[Syntax, "Syntax of the text, in which sections are found."] = "plain"
    places: Annotated[tuple[TextPosition, ...], Length(0, 100_000), "Where pages and sections begin."] = ()
    spans: Annotated[
        tuple[tuple[int, int], ...], Length(0, 100_000), "The chunks to cut the text into, without a gap."
    ] = ()
    if_match: Fingerprint | None = None
    vector: Annotated[
        Vector | None, "A vector of the collection's space, if the client has one: it is not embedded then."
    ] = None
    origin: WriterOrigin | None = None
    trust: WriterTrust | None = None
    read_by: Annotated[ReadBy, "How the text was read: as text, by OCR, or from speech."] = "text"


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk that has no identity yet."""

    position: int
    text: str
    start: int
    end: int
    tokens: int
    content_hash: str
    page: int | None = None
    heading: str | None = None
    table_header: str | None = None
    box: Box | None = None

    @property
    def text_with_header(self) -> str:
        """The text as it is indexed: in the middle of a table, below its header rows."""
        return self.text if self.table_header is None else self.table_header + self.text


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of an entity in a text: characters [start, end), the kind of entity, and a confidence.

    `key` is the normalized name: the same for spellings that differ only in case, accents, a leading article
    or a possessive.
    """

    start: int
    end: int
    text: Annotated[str, Example("nightly backup")]
    key: Annotated[str, Example("backup")]
    type: Annotated[str, Example("process")]
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document with its chunks, ready to be written in one transaction.

    `if_match` is the fingerprint that the stored one must still have (None: any, or none stored), `vector` is
    that of every chunk as little-endian float16 (None: what is stored stays). `embedded` are vectors that a
    model made of the chunks, by the name of its space; in a collection of another space they are dropped.
    `mentions` are those of each chunk, a name once; they are dropped if earlier chunks lack theirs.
    `names` are normalized names of a page, `statements` what it states about others, and `editable` the
    sources that its writer may edit.
    """

    document: Document
    chunks: tuple[PreparedChunk, ...]
    if_match: str | None = None
    vector: bytes | None = None
    embedded: tuple[str, tuple[bytes, ...]] | None = None
    mentions: Sequence[Sequence[Mention]] | None = None
    names: tuple[str, ...] = ()
    statements: tuple[Statement, ...] = ()
    editable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did to one document; `quarantined` is the attack pattern that keeps it out of results."""

    id: DocumentId
    outcome: Literal["added", "replaced", "updated", "unchanged"]
    chunks: int
    quarantined: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a deletion: how many of each thing are gone. `answers` are answer records with their texts.

    `purged` says that no file holds any of it, which was checked. With `erasure_pending`, it is deleted, but
    somebody may still read it, so that a file may hold it; the erasure goes on by itself.
    """

    documents: int = 0
    chunks: int = 0
    vectors: int = 0
    purged: bool = False
    erasure_pending: bool = False
    answers: int = 0

    def __add__(self, other: "Receipt") -> "Receipt":
        """Return the receipt of both deletions."""
        return Receipt(
            self.documents + other.documents,
            self.chunks + other.chunks,
            self.vectors + other.vectors,
            self.purged and other.purged,
            self.erasure_pending or other.erasure_pending,
            self.answers + other.answers,
        )


@dataclass(slots=True)
class Erasure:
    """The outcome of a purge, known when its block has ended."""

    purged: bool = False
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the history an index follows: chunks first..last were put or removed at `sequence`."""

    sequence: int
    operation: Literal["put", "remove"]
    first: ChunkId
    last: ChunkId


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with its document (without the text) and its neighbors in thread or stream order."""

    chunk: Chunk
    document: Document
    previous: ChunkId | None = None
    next: ChunkId | None = None


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A thread as far as it was read: the first chunk of each document, in its order.

    `places` says how many documents of the thread stand before each that was read, `total` how many there
    are; documents without text do not count.
    """

    chunks: tuple[StoredChunk, ...] = ()
    places: Mapping[DocumentId, int] = field(default_factory=dict)
    total: int = 0
