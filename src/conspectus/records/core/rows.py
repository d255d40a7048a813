"""Conversion between table rows and the model's dataclasses."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache, partial
from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

from sqlalchemy import case, func

from conspectus.errors import InvalidInput
from conspectus.model.checks import hints
from conspectus.model.ids import ChunkId, CollectionId, DocumentId, SourceId, UserId
from conspectus.model.index import IndexedChunk
from conspectus.model.records import (
    Box,
    Change,
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    Mention,
    Metadata,
    Period,
    PreparedChunk,
    RetrievalDefaults,
    Source,
)
from conspectus.records.tables.core import chunks, collections, documents, sources
from conspectus.text.times import from_microseconds, to_microseconds

Model = TypeVar("Model")

NO_CHUNK = ChunkId(0)
"""Chunk numbers start at 1."""

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
"""A missing position or time sorts first in a thread."""

COLLECTION_COLUMNS = tuple(collections.c)
NAMES_TO = COLLECTION_COLUMNS.index(collections.c.names_to)
"""The position of the last chunk up to which all have their mentions in a row of COLLECTION_COLUMNS."""
SOURCE_COLUMNS = tuple(sources.c[name] for name in ("id", "collection", "name", "metadata", "kind"))
_STATUS = case((documents.c.unindexable.is_not(None), "unindexable"), else_=documents.c.status)
_ERROR = func.coalesce(documents.c.unindexable, documents.c.error)
_REPLACED_COLUMNS = {"status": _STATUS.label("status"), "error": _ERROR.label("error")}
_FIRST_FIELD, _AFTER_LAST_FIELD = 1, 26
"""The columns of the table from `id` to `trust` are the fields of a `Document` in its order."""
DOCUMENT_COLUMNS = (
    documents.c.number,
    *(
        _REPLACED_COLUMNS.get(name, documents.c[name])
        for name in documents.c.keys()[_FIRST_FIELD:_AFTER_LAST_FIELD]
    ),
    documents.c.read_by,
)
"""The columns of a `Document`. A text that cannot be analyzed takes precedence in status and error."""
CHUNK_COLUMNS = tuple(chunks.c)
CHUNK_WIDTH = len(CHUNK_COLUMNS)
CHUNK_DOCUMENT = CHUNK_COLUMNS.index(chunks.c.document)
"""The position of the number of its document in a row of CHUNK_COLUMNS."""
_OPTIONAL_TEXT, _OPTIONAL_NUMBER = {str, type(None)}, {int, type(None)}


def to_moment(number: int | None) -> datetime | None:
    """Return a stored time; None for an open one."""
    return None if number is None else from_microseconds(number)


def period_of(start: int | None, end: int | None) -> Period | None:
    """Return a stored time range; None without one."""
    return None if start is None or end is None else Period(from_microseconds(start), from_microseconds(end))


def to_number(moment: datetime | None) -> int | None:
    """Return a time as it is stored; None for an open one."""
    return None if moment is None else to_microseconds(moment)


def to_box_text(box: Box | None) -> str | None:
    """Return a box as it is stored."""
    return None if box is None else ",".join(map(str, box))


def to_box(stored: str | None) -> Box | None:
    """Return a stored box."""
    if stored is None:
        return None
    left, top, right, bottom = map(int, stored.split(","))
    return left, top, right, bottom


def to_json(metadata: Metadata) -> str:
    """Return metadata as canonical JSON text. Raises InvalidInput."""
    if not metadata:
        return "{}"
    try:
        return json.dumps(dict(metadata), ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("metadata", f"is not JSON: {error}") from error


def to_metadata(stored: str) -> Metadata:
    """Return stored metadata, which `to_json` made."""
    if stored == "{}":
        return {}
    metadata: Metadata = json.loads(stored)
    return metadata


def to_space(model: str | None, dimensions: int | None, version: str | None) -> EmbeddingSpace | None:
    """Return the embedding model of a collection; None for keyword search only."""
    if model is None or dimensions is None or version is None:
        return None
    return EmbeddingSpace(model, dimensions, version)


def space_values(space: EmbeddingSpace | None) -> dict[str, str | int | None]:
    """Return an embedding model as columns of a collection."""
    if space is None:
        return {"model": None, "dimensions": None, "version": None}
    return {"model": space.model, "dimensions": space.dimensions, "version": space.version}


def to_collection(row: Sequence[Any]) -> Collection:
    """Convert a row of COLLECTION_COLUMNS. Raises TypeError for values of a wrong type."""
    id, name, model, dimensions, version, language, created, sequence, owner, description, *marks = row
    mirrors, names_to, retrieval = marks
    has_numbers = type(sequence) is int and type(dimensions) in _OPTIONAL_NUMBER
    has_texts = type(id) is str and {type(model), type(version), type(language)} <= _OPTIONAL_TEXT
    if not has_numbers or not has_texts:
        raise TypeError("a value of a collection has another type than was stored")
    return Collection(
        id=CollectionId(id),
        name=name,
        space=to_space(model, dimensions, version),
        language=language,
        created=from_microseconds(created),
        owner=UserId(owner),
        description=description,
        sequence=sequence,
        names=names_to is not None,
        mirrors=bool(mirrors),
        retrieval=None if retrieval is None else to_retrieval_versions(retrieval)[-1],
    )


def to_retrieval_versions(stored: str) -> list[RetrievalDefaults]:
    """Return the versions of the defaults of a collection, oldest first, at least one."""
    return [
        RetrievalDefaults(**{**version, "created": from_microseconds(version["created"])})
        for version in json.loads(stored)
    ]


def retrieval_versions_value(versions: Sequence[RetrievalDefaults]) -> str | None:
    """Return the versions of the defaults of a collection as a column."""
    if not versions:
        return None
    rows = [{**asdict(version), "created": to_microseconds(version.created)} for version in versions]
    return json.dumps(rows, ensure_ascii=False)


def collection_values(collection: Collection) -> dict[str, object]:
    """Return a collection as a new row."""
    return {
        "id": collection.id,
        "name": collection.name,
        "language": collection.language,
        "created": to_microseconds(collection.created),
        "sequence": 0,
        "owner": collection.owner,
        "description": collection.description,
        **space_values(collection.space),
    }


def to_source(row: Sequence[Any]) -> Source:
    """Convert a row of SOURCE_COLUMNS."""
    id, collection, name, metadata, kind = row
    return Source(SourceId(id), CollectionId(collection), name, to_metadata(metadata), kind)


def to_document(row: Sequence[Any]) -> Document:
    """Convert a row that begins with DOCUMENT_COLUMNS."""
    number, id, collection, source, kind, key, title, content_hash, fingerprint = row[:9]
    recorded, updated, metadata, author, role, start, end = row[9:16]
    sequence, parent, thread, syntax, status, error, chunk_count, characters = row[16:24]
    origin, trust, read_by = row[24:27]
    recorded_at = from_microseconds(recorded)
    return Document(
        id=DocumentId(id),
        collection=CollectionId(collection),
        source=SourceId(source),
        kind=kind,
        key=key,
        title=title,
        content_hash=content_hash,
        fingerprint=fingerprint,
        recorded=recorded_at,
        updated=recorded_at if updated == recorded else from_microseconds(updated),
        metadata=to_metadata(metadata),
        author=author,
        role=role,
        occurred=None if start is None else Period(from_microseconds(start), from_microseconds(end)),
        sequence=sequence,
        parent=parent,
        thread=thread,
        syntax=syntax,
        status=status,
        error=error,
        chunks=chunk_count,
        characters=characters,
        origin=origin,
        trust=trust,
        number=number,
        read_by=read_by,
    )


def document_values(document: Document) -> dict[str, object]:
    """Return the columns of a document that the caller sets."""
    occurred = document.occurred
    start = None if occurred is None else to_microseconds(occurred.start)
    return {
        "id": document.id,
        "collection": document.collection,
        "source": document.source,
        "kind": document.kind,
        "key": document.key,
        "title": document.title,
        "content_hash": document.content_hash,
        "fingerprint": document.fingerprint,
        "recorded": to_microseconds(document.recorded),
        "updated": to_microseconds(document.updated),
        "metadata": to_json(document.metadata),
        "author": document.author,
        "role": document.role,
        "occurred_start": start,
        "occurred_end": None if occurred is None else to_microseconds(occurred.end),
        "sequence": document.sequence,
        "parent": document.parent,
        "thread": document.thread,
        "syntax": document.syntax,
        "characters": document.characters,
        "origin": document.origin,
        "trust": document.trust,
        "read_by": document.read_by,
        "order_sequence": MIN_INT64 if document.sequence is None else document.sequence,
        "order_start": MIN_INT64 if start is None else start,
    }


def chunk_values(chunk: PreparedChunk, number: int, document: int) -> dict[str, object]:
    """Return a new chunk with its numbers as columns."""
    return {
        "id": number,
        "document": document,
        "position": chunk.position,
        "start": chunk.start,
        "end": chunk.end,
        "tokens": chunk.tokens,
        "content_hash": chunk.content_hash,
        "text": chunk.text,
        "page": chunk.page,
        "heading": chunk.heading,
        "table_header": chunk.table_header,
        "box": to_box_text(chunk.box),
    }


def mention_values(mention: Mention, chunk: int, collection: str, source: str) -> dict[str, object]:
    """Return a mention in a chunk as columns."""
    return {
        "chunk": chunk,
        "key": mention.key,
        "surface": mention.text,
        "type": mention.type,
        "start": mention.start,
        "end": mention.end,
        "collection": collection,
        "source": source,
    }


def to_chunk(row: Sequence[Any], document: DocumentId) -> Chunk:
    """Convert a row that begins with CHUNK_COLUMNS."""
    number, _, position, start, end, tokens, content_hash, text, *others, box = row[:CHUNK_WIDTH]
    page, heading, fault, header = others
    span = (position, text, start, end, tokens)
    return Chunk(number, document, *span, content_hash, page, heading, fault, header, to_box(box))


def to_indexed(rows: Sequence[Sequence[Any]], by_number: Mapping[int, Document]) -> list[IndexedChunk]:
    """Convert rows of CHUNK_COLUMNS followed by a vector to indexed chunks."""
    indexed = []
    for row in rows:
        document = by_number[row[CHUNK_DOCUMENT]]
        indexed.append(IndexedChunk(to_chunk(row, document.id), document, row[CHUNK_WIDTH]))
    return indexed


def to_change(row: Sequence[Any], active_space: str | None) -> Change:
    """Convert a row of sequence, operation, first, last, space; other models get a change of no chunk."""
    sequence, operation, first, last, space = row
    if space not in {None, active_space}:
        return Change(sequence, operation, NO_CHUNK, NO_CHUNK)
    return Change(sequence, operation, ChunkId(first), ChunkId(last))


class _Conversion(NamedTuple):
    to_column: Callable[[Any], Any]
    from_column: Callable[[Any], Any]


@cache
def _field_conversions(model_class: Any) -> Mapping[str, _Conversion]:
    """Return the conversions of those fields of a dataclass that are stored in another form."""
    conversions: dict[Any, _Conversion] = {
        datetime: _Conversion(to_microseconds, from_microseconds),
        bool: _Conversion(int, bool),
        tuple: _Conversion(partial(json.dumps, ensure_ascii=False), lambda stored: tuple(json.loads(stored))),
        Mapping: _Conversion(to_json, to_metadata),
    }
    field_conversions = {}
    for name, hint in hints(model_class).items():
        alternatives = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
        for field_class in {get_origin(alternative) or alternative for alternative in alternatives}:
            if field_class in conversions:
                field_conversions[name] = conversions[field_class]
    return field_conversions


def to_columns(model_class: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a dataclass as columns of the same names."""
    columns = dict(fields)
    for name, conversion in _field_conversions(model_class).items():
        if columns.get(name) is not None:
            columns[name] = conversion.to_column(columns[name])
    return columns


def columns_of(model: Any) -> dict[str, Any]:
    """Return a dataclass as columns of the same names."""
    return to_columns(type(model), {name: getattr(model, name) for name in model.__dataclass_fields__})


def to_model(model_class: Callable[..., Model], columns: Any) -> Model:
    """Return a dataclass, given its fields as columns of the same names."""
    fields = dict(columns)
    for name, conversion in _field_conversions(model_class).items():
        if fields.get(name) is not None:
            fields[name] = conversion.from_column(fields[name])
    return model_class(**fields)
