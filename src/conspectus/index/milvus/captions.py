"""A Milvus collection of captions in the column layout of a video context."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from pymilvus import CollectionSchema, DataType, FieldSchema, MilvusClient
from pymilvus.milvus_client.index import IndexParams

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, TooLarge
from conspectus.index.milvus.connection import MAX_RESULTS, MAX_TEXT_LENGTH, MilvusServer, Row

COLUMNS: Final = ("stream_id", "chunk_idx", "start_time", "end_time")
"""Metadata fields with a column of their own."""
METADATA: Final = "metadata_json"
"""The column or dynamic field for all metadata as they were given, if the collection has one."""
CREATED: Final = "created_at"
MAX_WORD_LENGTH: Final = 64
"""Maximum bytes of an id, a stream or a time."""
ROWS_PER_UPSERT: Final = 500
_REQUIRED_FIELDS: Final = frozenset({"id", "text", "embedding", *COLUMNS})


@dataclass(frozen=True, slots=True)
class StoredCaption:
    """A stored caption. `embedding` is None if it has none or it was not requested."""

    id: str
    text: str
    metadata: Mapping[str, Any]
    created: datetime | None
    embedding: tuple[float, ...] | None = None


class MilvusCaptions:
    """Reads and writes captions. The first write creates the collection."""

    def __init__(self, server: MilvusServer, name: str, dimensions: int) -> None:
        self._server = server
        self._name = name
        self._dimensions = dimensions

    async def add(
        self,
        texts: Sequence[str],
        metadatas: Sequence[Mapping[str, Any]],
        embeddings: Sequence[Sequence[float] | None],
    ) -> list[str]:
        """Store captions and return their ids in order. Raises InvalidInput before anything is written."""
        existing_extra = await self._extra_fields()
        extra = {METADATA, CREATED} if existing_extra is None else existing_extra
        rows = [self._row(*caption, extra) for caption in zip(texts, metadatas, embeddings, strict=True)]
        if existing_extra is None:
            await self._server.create(self._name, _schema(self._dimensions), _indexes())
        for start in range(0, len(rows), ROWS_PER_UPSERT):
            await self._server.upsert(self._name, rows[start : start + ROWS_PER_UPSERT])
        return [str(row["id"]) for row in rows]

    async def get(self, id: str) -> StoredCaption | None:
        """Return the caption with its embedding; None if it does not exist."""
        rows = await self._with_id(id)
        return _caption_of_row(rows[0]) if rows else None

    async def all(self, stream: str | None = None) -> list[StoredCaption]:
        """Return all captions, or those of a stream, in any order."""
        if await self._extra_fields() is None:
            return []
        return [
            _caption_of_row(row)
            for row in await self._server.query_all(self._name, _in_stream(stream), ["*"])
        ]

    async def search(
        self, vector: Sequence[float], limit: int, stream: str | None = None
    ) -> list[tuple[StoredCaption, float]]:
        """Return the captions most similar to a vector with cosines, then those without an embedding."""
        self._require_size(vector)
        if await self._extra_fields() is None:
            return []
        query = {
            "data": [list(vector)],
            "anns_field": "embedding",
            "limit": min(limit, MAX_RESULTS),
            "search_params": {"metric_type": "COSINE"},
        }
        hits = await self._server.search(self._name, _in_stream(stream), ["*", "embedding"], query)
        return [(_caption_of_row(hit), float(hit["distance"])) for hit in hits]

    async def embed(self, id: str, vector: Sequence[float]) -> bool:
        """Set the embedding of a caption. Returns whether the caption exists."""
        self._require_size(vector)
        rows = await self._with_id(id)
        await self._server.upsert(self._name, [{**row, "embedding": list(vector)} for row in rows])
        return bool(rows)

    async def delete(self, id: str) -> bool:
        """Delete a caption. Returns whether it existed."""
        exists = bool(await self._with_id(id))
        if exists:
            await self._server.delete(self._name, _has_id(id))
        return exists

    async def clear(self, stream: str | None = None) -> int:
        """Delete all captions, or those of a stream. Returns their number."""
        if await self._extra_fields() is None:
            return 0
        count = len(await self._server.query_all(self._name, _in_stream(stream), ["id"]))
        await self._server.delete(self._name, _in_stream(stream))
        return count

    async def close(self) -> None:
        """Close the connection."""
        await self._server.close()

    async def _extra_fields(self) -> set[str] | None:
        """Return those of METADATA and CREATED that the collection has; None without a collection.

        Raises InvalidInput if it is not a collection of captions, or has vectors of another size.
        """
        description = await self._server.describe(self._name)
        if description is None:
            return None
        fields = {field["name"]: field["params"] for field in description["fields"]}
        if missing := sorted(_REQUIRED_FIELDS - fields.keys()):
            raise InvalidInput(
                "collection_name",
                f"{self._name!r} is not a collection of captions; it lacks {', '.join(missing)}",
            )
        size = int(fields["embedding"]["dim"])
        if size != self._dimensions:
            raise InvalidInput(
                "embedding_dim", f"is {self._dimensions}; the vectors of {self._name!r} have {size} numbers"
            )
        extra = {METADATA, CREATED}
        return extra if description.get("enable_dynamic_field") else extra & fields.keys()

    async def _with_id(self, id: str) -> list[Row]:
        if await self._extra_fields() is None:
            return []
        return await self._server.query(self._name, _has_id(id), ["*", "embedding"])

    def _row(
        self, text: str, metadata: Mapping[str, Any], embedding: Sequence[float] | None, extra: set[str]
    ) -> dict[str, Any]:
        if embedding is not None:
            self._require_size(embedding)
        if METADATA not in extra and (other := sorted(metadata.keys() - set(COLUMNS))):
            reason = f"has no column in {self._name!r}, which takes {', '.join(COLUMNS)} only"
            raise InvalidInput(f"metadata.{other[0]}", reason)
        index = metadata.get("chunk_idx")
        row = {
            "id": str(uuid4()),
            "text": _require_length("text", text, MAX_TEXT_LENGTH),
            "embedding": [0.0] * self._dimensions if embedding is None else list(embedding),
            "chunk_idx": index if isinstance(index, int) and -(2**63) <= index < 2**63 else 0,
        }
        for name in ("stream_id", "start_time", "end_time"):
            value = metadata.get(name)
            row[name] = _require_length(
                f"metadata.{name}", "" if value is None else str(value), MAX_WORD_LENGTH
            )
        extra_texts = {
            METADATA: json.dumps(metadata, ensure_ascii=False),
            CREATED: datetime.now(UTC).isoformat(),
        }
        return row | {
            name: _require_length("metadata", extra_texts[name], MAX_TEXT_LENGTH) for name in sorted(extra)
        }

    def _require_size(self, vector: Sequence[float]) -> None:
        if len(vector) != self._dimensions:
            raise InvalidInput("embedding", f"has {len(vector)} numbers, not {self._dimensions}")


def _caption_of_row(row: Row) -> StoredCaption:
    metadata_json, created, vector = row.get(METADATA), row.get(CREATED), row.get("embedding") or ()
    metadata = (
        json.loads(metadata_json)
        if isinstance(metadata_json, str) and metadata_json
        else {name: row[name] for name in COLUMNS}
    )
    embedding = tuple(map(float, vector)) if any(vector) else None
    return StoredCaption(str(row["id"]), str(row["text"]), metadata, _instant(created), embedding)


def _instant(written: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def _require_length(field: str, text: str, maximum: int) -> str:
    size = len(text.encode("utf-8", "replace"))
    if size > maximum:
        raise TooLarge(field, size=size, limit=maximum, unit="bytes")
    return text


def _in_stream(stream: str | None) -> str:
    return 'id != ""' if stream is None else f"stream_id == {_quote(stream)}"


def _has_id(id: str) -> str:
    return f"id == {_quote(id)}"


def _quote(text: str) -> str:
    """Return a text as a string literal of an expression, escaped."""
    return json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)


def _schema(dimensions: int) -> CollectionSchema:
    times = [FieldSchema(name, DataType.VARCHAR, max_length=MAX_WORD_LENGTH) for name in COLUMNS[2:]]
    fields = [
        FieldSchema("id", DataType.VARCHAR, max_length=MAX_WORD_LENGTH, is_primary=True),
        FieldSchema("text", DataType.VARCHAR, max_length=MAX_TEXT_LENGTH),
        FieldSchema("embedding", DataType.FLOAT_VECTOR, dim=dimensions),
        FieldSchema("stream_id", DataType.VARCHAR, max_length=MAX_WORD_LENGTH),
        FieldSchema("chunk_idx", DataType.INT64),
    ]
    return CollectionSchema([*fields, *times], enable_dynamic_field=True)


def _indexes() -> IndexParams:
    indexes = MilvusClient.prepare_index_params()
    indexes.add_index("embedding", index_type="IVF_FLAT", metric_type="COSINE", params={"nlist": 128})
    return indexes
