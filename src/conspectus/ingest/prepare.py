"""From a new document to one that is written: checked, cleaned, split, counted, named, and in batches."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from conspectus.deferred import dataclass
from conspectus.errors import (
    TEXT_FAULTS,
    ConspectusError,
    InvalidInput,
    ProviderError,
    TooLarge,
    UnindexableText,
    as_field,
)
from conspectus.ingest.sensitive import Screen, screen_of
from conspectus.model.channels import NewMessage
from conspectus.model.ids import DocumentId, SourceId
from conspectus.model.index import WriteResult, passage
from conspectus.model.memory import NewMemory
from conspectus.model.pages import portions
from conspectus.model.records import (
    Chunk,
    Document,
    DocumentChanges,
    Json,
    Metadata,
    NewDocument,
    Period,
    PreparedChunk,
    PreparedDocument,
    Source,
    TextPosition,
    Written,
)
from conspectus.model.reports import QUARANTINE, Quarantined, as_given, quarantine_pattern
from conspectus.model.streams import NewCaption
from conspectus.model.trust import HIGHEST, Origin, highest_in, least, least_trusted, origin_in
from conspectus.ports import CountTokens, Embedder, Records
from conspectus.ports.jobs import on_behalf_of
from conspectus.settings import Settings
from conspectus.text.attack_patterns import attack_pattern
from conspectus.text.clean import clean
from conspectus.text.hashing import KEY_BYTES, NAME_BYTES, content_hash, fitting, stable_id
from conspectus.text.positions import checked, combined, headings_in, path_of, place_at
from conspectus.text.sections import sections_of
from conspectus.text.split_boundaries import definitions
from conspectus.text.splitter import SplitOptions, TextSpan, split, without_blank_pieces
from conspectus.text.times import canonical, parse_instant
from conspectus.text.vectors import packed, unit

SECTIONS = "cut at sections"
"""Part of the fingerprint of texts with sections: those that were split otherwise are split again."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Everything that preparing a document depends on, except the document."""

    source: Source
    settings: Settings
    count: CountTokens
    now: datetime
    reviewed: bool = False
    """Whether a manager releases the text: attack patterns are not looked for."""
    origin: Origin | None = None
    """The origin that the key of the writer allows."""
    analyse: Callable[[str], object] | None = None
    """Analyzes a passage as the index of the collection does; None where nothing is written."""

    @property
    def screen(self) -> Screen | None:
        """What happens to secrets and personal data in the collection."""
        return screen_of(self.settings.sensitive, self.source.collection)


def describe(new: NewDocument, by: Preparation) -> tuple[Document, bytes | None]:
    """The document's fields without its chunks, and its vector as Records keep it.

    This is cheap, so that unchanged documents cost no splitting.

    Raises InvalidInput for a field that cannot be stored and TooLarge for one over a limit.
    """
    text = clean(new.text)
    if len(text) > by.settings.max_document_characters:
        raise TooLarge("text", size=len(text), limit=by.settings.max_document_characters, unit="characters")
    key = fitting("key", clean(new.key), KEY_BYTES) if new.key is not None else str(uuid4())
    origin = least_trusted(by.origin, new.origin, origin_in(by.source.kind, new.role))
    if new.sequence is not None and not -(2**63) <= new.sequence < 2**63:
        raise InvalidInput("sequence", "does not fit into 64 bits")
    described = Document(
        id=DocumentId(stable_id("document", by.source.id, key)),
        collection=by.source.collection,
        source=by.source.id,
        kind=new.kind,
        key=key,
        title=clean(new.title),
        content_hash=content_hash(text),
        fingerprint="",
        recorded=by.now,
        updated=by.now,
        metadata=storable(new.metadata, by.settings),
        author=_cleaned(new.author),
        role=_cleaned(new.role),
        occurred=period(new.occurred),
        sequence=new.sequence,
        parent=DocumentId(new.parent) if new.parent is not None else None,
        thread=None if new.thread is None else fitting("thread", clean(new.thread), KEY_BYTES),
        syntax=new.syntax,
        characters=len(text),
        origin=origin,
        trust=least(HIGHEST[origin], highest_in(by.source.kind), new.trust),
    )
    pattern = None if by.reviewed else _attack(new, described)
    if pattern is not None:
        return _quarantined(new, described, pattern, by), None
    places = checked(new.places, new.text)
    vector = None if new.vector is None else packed(unit(new.vector)[None])[0]
    has_sections = new.syntax != "plain" or any(position.headings for position in new.places)
    beside = [places, new.spans, vector, has_sections and SECTIONS]
    return replace(described, fingerprint=_fingerprint(described, beside, by)), vector


FIELDS = DocumentChanges.__annotations__.keys()
KEPT = (*sorted(FIELDS - {"text", "places", "spans", "vector"}), "key")
"""The fields of a new document that a stored one has, too."""
BY_WRITER = "by_writer"


def _attack(new: NewDocument, described: Document) -> str | None:
    """Return the attack pattern of a document that is not trusted."""
    if new.kind == "quarantined":
        raise InvalidInput("kind", "is set by the store")
    if described.trust == "quarantined":
        return BY_WRITER
    if described.trust == "trusted":
        return None
    return attack_pattern(new.text, *_texts_beside(described))


def _texts_beside(document: Document) -> list[str]:
    """Return the texts that can be in a window beside the text of a document."""
    fields = (document.title, document.key, document.author, document.role)
    return [*filter(None, fields), *strings_in(document.metadata)]


def strings_in(value: Json | Metadata) -> Iterator[str]:
    """Yield all strings in JSON, names of objects included."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, inner in value.items():
                yield name
                yield from strings_in(inner)
        case list():
            for inner in value:
                yield from strings_in(inner)


def refuse_attacks(origin: Origin | None, field: str, *texts: str) -> None:
    """Raise InvalidInput for a text that matches an attack pattern where nothing can be quarantined.

    What a person writes is not examined, as in documents.
    """
    pattern = None if origin in {None, "user"} else attack_pattern(*texts)
    if pattern is not None:
        raise InvalidInput(field, f"matches the attack pattern {pattern}; a person may write it")


def _quarantined(new: NewDocument, described: Document, pattern: str, by: Preparation) -> Document:
    """Return a document without text. Its metadata hold what was given."""
    original: dict[str, Json] = {
        "text": clean(new.text),
        "kind": described.kind,
        "metadata": dict(described.metadata),
        "spans": [list(span) for span in new.spans],
        "places": [[position.start, position.page, list(position.headings)] for position in new.places],
        "trust": "untrusted" if pattern == BY_WRITER else described.trust,
    }
    metadata: Metadata = {QUARANTINE: {"pattern": pattern, "given": original}}
    hidden = replace(described, kind="quarantined", metadata=metadata, trust="quarantined")
    return replace(hidden, fingerprint=_fingerprint(hidden, (), by))


def given_before(document: Document) -> NewDocument:
    """Return what was given for a quarantined document, at the level that it has once it is released."""
    quarantine: Any = document.metadata[QUARANTINE]
    fields = {name: getattr(as_given(document), name) for name in KEPT}
    return NewDocument(
        text=quarantine["given"]["text"],
        spans=tuple((start, end) for start, end in quarantine["given"]["spans"]),
        places=tuple(
            TextPosition(at, page, tuple(names)) for at, page, names in quarantine["given"]["places"]
        ),
        **fields,
    )


def quarantined(document: Document) -> Quarantined:
    """Return a quarantined document for review."""
    new = given_before(document)
    return Quarantined(
        id=document.id,
        source=document.source,
        pattern=quarantine_pattern(document) or "",
        kind=new.kind,
        key=document.key,
        title=new.title,
        text=new.text,
        author=new.author,
        origin=document.origin,
        trust=as_given(document).trust,
        recorded=document.recorded,
        metadata=as_given(document).metadata,
    )


def prepare(
    new: NewDocument,
    document: Document,
    by: Preparation,
    *,
    vector: bytes | None = None,
    if_match: str | None = None,
) -> PreparedDocument:
    """Split the text of a described document; text without any visible character has no chunks.

    `document` and `vector` are what `describe` gave. Raises UnindexableText for a text that a later step
    could not handle, so that it is never stored.
    """
    try:
        return _split(new, document, by, vector=vector, if_match=if_match)
    except TEXT_FAULTS as fault:
        raise UnindexableText(type(fault).__name__) from fault


def _split(
    new: NewDocument,
    document: Document,
    by: Preparation,
    *,
    vector: bytes | None,
    if_match: str | None,
) -> PreparedDocument:
    """Return a document with its chunks, each of which was counted and analyzed."""
    if document.kind == "quarantined":
        return PreparedDocument(document, (), if_match)
    text = clean(new.text)
    places = _places(new, text)
    pieces = _pieces(new, text, places, by)
    if by.analyse is not None:
        for piece in pieces:
            by.analyse(passage(document, piece.text))
    began = [0, *(piece.end for piece in pieces)]
    return PreparedDocument(
        document=document,
        if_match=if_match,
        vector=vector,
        chunks=tuple(
            _chunk(piece, place_at(places, _first_visible(text, piece, began[piece.position])), by.count)
            for piece in pieces
        ),
    )


def own_spans(chunks: Sequence[Chunk], new: NewDocument, by: Preparation) -> tuple[tuple[int, int], ...]:
    """The spans of stored chunks, if they are not those that the text would be split into."""
    stored = tuple((chunk.start, chunk.end) for chunk in chunks)
    text = clean(new.text)
    split_anew = tuple((piece.start, piece.end) for piece in _pieces(new, text, _places(new, text), by))
    return () if stored == split_anew else stored


def _places(new: NewDocument, text: str) -> tuple[TextPosition, ...]:
    return combined(checked(new.places, new.text), tuple(headings_in(text, new.syntax)))


def _pieces(new: NewDocument, text: str, places: Sequence[TextPosition], by: Preparation) -> list[TextSpan]:
    """The pieces that the caller asks for, else those that the splitter finds."""
    if new.spans and len(text) != len(new.text):
        raise InvalidInput("spans", "refer to a text with characters that cannot be stored")
    if new.spans:
        return [
            TextSpan(position, start, end, text[start:end]) for position, (start, end) in enumerate(new.spans)
        ]
    options = SplitOptions(size=by.settings.chunk_size, overlap=by.settings.chunk_overlap, syntax=new.syntax)
    sections = definitions(text) if new.syntax == "code" else sections_of(places)
    return without_blank_pieces(text, split(text, options, sections=sections)) if text.strip() else []


def _first_visible(text: str, piece: TextSpan, after: int) -> int:
    """Where the new text of a chunk begins, after its overlap with those before it."""
    start = max(piece.start, after)
    return piece.end - len(text[start : piece.end].lstrip())


def _chunk(piece: TextSpan, position: TextPosition, count: CountTokens) -> PreparedChunk:
    return PreparedChunk(
        position=piece.position,
        text=piece.text,
        start=piece.start,
        end=piece.end,
        tokens=count(piece.text),
        content_hash=content_hash(piece.text),
        page=position.page,
        heading=path_of(position.headings),
    )


def message_id(source: SourceId, key: str) -> DocumentId:
    """The id that the message of a key has in its channel."""
    return DocumentId(stable_id("document", source, clean(key)))


def named(kind: str, name: str) -> str:
    """The name of a collection or a source, if it can be one. Raises InvalidInput."""
    if not name.strip() or clean(name) != name:
        raise InvalidInput(kind, "a name needs visible characters, all of which can be stored")
    return fitting(kind, name, NAME_BYTES)


def _fingerprint(document: Document, beside: Sequence[object], by: Preparation) -> str:
    """A hash of every field that a caller gives, of how the text is split, and of a given vector."""
    parts: list[object] = [document.content_hash, document.title, document.kind, document.author]
    parts += [document.role, document.sequence, document.parent, document.thread, document.syntax]
    parts += [document.metadata, by.settings.chunk_size, by.settings.chunk_overlap]
    if document.occurred is not None:
        parts += [canonical(document.occurred.start), canonical(document.occurred.end)]
    if (document.origin, document.trust) != ("user", "trusted"):
        parts += [document.origin, document.trust]
    parts += [part.hex() if isinstance(part, bytes) else repr(part) for part in beside if part]
    return content_hash(json.dumps(parts, sort_keys=True))


def period(value: datetime | Period | str | float | None, *, field: str = "occurred") -> Period | None:
    """The event time a caller gave, with zones; an instant is a period without length."""
    if value is None:
        return None
    with as_field(field, was="time"):
        if not isinstance(value, Period):
            instant = parse_instant(value)
            return Period(instant, instant)
        start, end = parse_instant(value.start), parse_instant(value.end)
    if end < start:
        raise InvalidInput(field, "ends before it starts")
    return Period(start, end)


def storable(metadata: Mapping[str, object], settings: Settings) -> Metadata:
    """Metadata as plain JSON with instants as canonical strings. Raises InvalidInput or TooLarge."""
    if not metadata:
        return {}
    _require_few_values(metadata, settings.max_metadata_bytes, settings.max_metadata_depth)
    result = {_name(key): _json(value, settings.max_metadata_depth) for key, value in metadata.items()}
    size = len(json.dumps(result, ensure_ascii=False).encode())
    if size > settings.max_metadata_bytes:
        raise TooLarge("metadata", size=size, limit=settings.max_metadata_bytes)
    return result


def _require_few_values(metadata: Mapping[str, object], limit: int, max_depth: int) -> None:
    """Check, before anything is converted, that the values fit so many bytes of JSON.

    Raises TooLarge, or InvalidInput for metadata that are nested too deeply or contain themselves.
    """
    containers: list[tuple[Mapping[Any, object] | Sequence[object], int]] = [(metadata, max_depth)]
    count = 0
    while containers:
        container, depth = containers.pop()
        inner = list(container.values()) if isinstance(container, Mapping) else container
        count += len(inner)
        if count > limit:
            raise TooLarge("metadata", size=count, limit=limit)
        if inner and depth <= 0:
            raise _too_deep()
        containers += [(value, depth - 1) for value in inner if isinstance(value, Mapping | list | tuple)]


def _too_deep() -> InvalidInput:
    return InvalidInput("metadata", "is nested too deeply; flatten it")


def _json(value: object, depth: int) -> Json:
    if depth <= 0:
        raise _too_deep()
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean(value)
        case float() if math.isfinite(value):
            return value
        case datetime() if value.tzinfo is not None:
            return canonical(value)
        case Mapping():
            return {_name(key): _json(inner, depth - 1) for key, inner in value.items()}
        case list() | tuple():
            return [_json(inner, depth - 1) for inner in value]
        case _:
            raise InvalidInput("metadata", f"{value!r:.80} is neither JSON nor a time with a time zone")


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput("metadata", f"the name {key!r:.80} is not a string")
    return clean(key)


def _cleaned(value: str | None) -> str | None:
    return None if value is None else clean(value)


New = TypeVar("New", NewDocument, NewMessage, NewCaption, NewMemory)

BATCH_DOCUMENTS = 500
BATCH_CHARACTERS = 4_000_000
SHORT = 2_000
"""Texts of fewer characters are prepared faster than they are handed to a thread."""


def batches(documents: Iterable[New]) -> Iterator[list[New]]:
    """The documents in their order, in batches bounded by number and by size of text."""
    return portions(
        documents, lambda document: len(document.text), most=BATCH_DOCUMENTS, room=BATCH_CHARACTERS
    )


Complete: TypeAlias = Callable[[list[PreparedDocument]], Awaitable[list[PreparedDocument]]]
"""Gives documents what is made of their chunks, as far as it can be made now."""


async def write(
    records: Records,
    batch: Sequence[NewDocument],
    by: Preparation,
    *,
    if_match: str | None = None,
    complete: Complete | None = None,
) -> WriteResult:
    """Write a batch in one transaction; documents that are stored just so already cost nothing.

    With `if_match`, every document must be stored with that fingerprint. A few short texts are made
    `complete`. Raises InvalidInput, TooLarge, NotFound or PreconditionFailed, with the document's place as a
    note; then nothing is written.
    """
    screen = by.screen
    if screen is not None:
        batch = await asyncio.to_thread(screen.all, batch)
    is_short = sum(len(document.text) for document in batch) <= SHORT
    described = _describe_all(batch, by) if is_short else await asyncio.to_thread(_describe_all, batch, by)
    # One without a key has a new id.
    keyed = [document.id for new, (document, _) in zip(batch, described, strict=True) if new.key is not None]
    stored = await records.documents(keyed) if keyed else ()
    before = {document.id: document for document in stored}
    described, earlier = _beside_earlier(batch, described, before, by)
    fresh = [
        (new, document, vector)
        for new, (document, vector), version in zip(batch, described, earlier, strict=True)
        if (new.if_match if if_match is None else if_match) is not None
        or version is None
        or version.fingerprint != document.fingerprint
        or version.status == "error"
    ]
    if is_short:
        prepared = _prepare_all(fresh, by, if_match)
    else:
        prepared = await asyncio.to_thread(_prepare_all, fresh, by, if_match)
    if is_short and complete is not None:
        prepared = await complete(prepared)
    result = await records.write(prepared) if prepared else WriteResult(())
    written = {outcome.id: outcome for outcome in result.written}
    done = [
        _reported(written.get(document.id) or _unchanged(document.id, before), document)
        for document, _ in described
    ]
    return replace(result, written=done)


def _beside_earlier(
    batch: Sequence[NewDocument],
    described: Sequence[tuple[Document, bytes | None]],
    stored: Mapping[DocumentId, Document],
    by: Preparation,
) -> tuple[list[tuple[Document, bytes | None]], list[Document | None]]:
    """Describe a batch at most at the levels of earlier versions, and return these as well.

    The earlier version of a document is an earlier one in the batch with its key, or else the stored one.
    """
    latest = dict(stored)
    lowered, earlier = [], []
    for new, description in zip(batch, described, strict=True):
        version = latest.get(description[0].id)
        description = beside_stored(new, description, version, by)
        latest[description[0].id] = description[0]
        lowered.append(description)
        earlier.append(version)
    return lowered, earlier


def beside_stored(
    new: NewDocument, described: tuple[Document, bytes | None], stored: Document | None, by: Preparation
) -> tuple[Document, bytes | None]:
    """Describe a document at most at the level of the stored one of its key.

    It is not quarantined for a text of the stored one that is in results already, and only a review raises
    the level of the stored one or ends its quarantine for the same text.
    """
    if stored is None or by.reviewed:
        return described
    level = as_given(stored).trust
    if is_above(described[0], stored):
        lowest = new.trust if new.trust == "quarantined" else least(new.trust, level)
        new = replace(new, origin=least_trusted(new.origin, stored.origin), trust=lowest)
        described = describe(new, by)
    document = described[0]
    if document.kind != "quarantined" or stored.kind == "quarantined" or new.trust == "quarantined":
        return described
    fresh = set(_texts_beside(as_given(document))) - set(_texts_beside(stored))
    seen = stored.content_hash == document.content_hash and attack_pattern(*fresh) is None
    return describe(new, replace(by, reviewed=True)) if seen else described


def is_above(document: Document, stored: Document) -> bool:
    """Return whether a document would raise the level or the origin of the stored one."""
    levels = (as_given(document).trust, as_given(stored).trust)
    origins = (HIGHEST[document.origin], HIGHEST[stored.origin])
    return any(least(new, old) != new for new, old in (levels, origins))


def _describe_all(batch: Sequence[NewDocument], by: Preparation) -> list[tuple[Document, bytes | None]]:
    described = []
    for number, new in enumerate(batch):
        try:
            described.append(describe(new, by))
        except ConspectusError as fault:
            fault.add_note(f"document {number + 1} of {len(batch)}, key {new.key!r}")
            raise
    return described


def _prepare_all(
    fresh: Sequence[tuple[NewDocument, Document, bytes | None]], by: Preparation, if_match: str | None
) -> list[PreparedDocument]:
    prepared = []
    for new, document, vector in fresh:
        expected = new.if_match if if_match is None else if_match
        try:
            prepared.append(prepare(new, document, by, vector=vector, if_match=expected))
        except ConspectusError as fault:
            fault.add_note(f"document with the key {new.key!r}")
            raise
    return prepared


async def embedded(embedder: Embedder, batch: list[PreparedDocument]) -> list[PreparedDocument]:
    """The batch with vectors; without them where the model fails, as the texts are stored in any case."""
    wanting = [() if document.vector is not None else document.chunks for document in batch]
    texts = [
        passage(document.document, chunk.text)
        for document, chunks in zip(batch, wanting, strict=True)
        for chunk in chunks
    ]
    if not texts:
        return batch
    try:
        with on_behalf_of(None):
            vectors = await embedder.embed_documents(texts)
    except ProviderError:
        return batch
    rows, space = iter(packed(vectors)), embedder.space.name
    vectors_by_document = [
        (space, tuple(islice(rows, len(chunks)))) if chunks else None for chunks in wanting
    ]
    return [
        replace(document, embedded=document_vectors)
        for document, document_vectors in zip(batch, vectors_by_document, strict=True)
    ]


def _reported(written: Written, document: Document) -> Written:
    pattern = quarantine_pattern(document)
    return written if pattern is None else replace(written, quarantined=pattern)


def _unchanged(document: DocumentId, stored: dict[DocumentId, Document]) -> Written:
    return Written(id=document, outcome="unchanged", chunks=stored[document].chunks)
