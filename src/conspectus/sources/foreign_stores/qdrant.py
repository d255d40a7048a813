"""Reader of Qdrant: its collections as documents."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from conspectus.errors import UnreadableFile, optional
from conspectus.model.records import NewDocument
from conspectus.ports.imports import ForeignPlace, ForeignRecord, LeftOut
from conspectus.settings import vendor_variable
from conspectus.sources.folder_ownership import require_own_folder
from conspectus.sources.foreign_stores.points import (
    PAGE_POINTS,
    TEXT_FIELDS,
    WITHOUT_TEXT,
    Point,
    choose_names,
    find_text,
)
from conspectus.sources.json_values import as_mapping


def read_qdrant(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the collections of a local folder or a server as documents, a source for each."""
    with closing(open_qdrant(at.place)) as client:
        for name in qdrant_collections(client, at.names):
            points = qdrant_points(client, name, left)
            yield from _documents_of(f"qdrant/{name}", points, at.text_fields or TEXT_FIELDS, left)


def _documents_of(
    source: str, points: Iterable[Point], names: Sequence[str], left: LeftOut
) -> Iterator[ForeignRecord]:
    for point in points:
        _, text, others = find_text(point.fields, names)
        if not text:
            left.skip(WITHOUT_TEXT, point.key)
            continue
        # LangChain keeps the fields of a document in one of the payload.
        inner = others.pop("metadata") if isinstance(others.get("metadata"), dict) else {}
        metadata = {**as_mapping(inner), **others}
        yield ForeignRecord(source, NewDocument(text, key=point.key, metadata=metadata, vector=point.vector))


def open_qdrant(address: str) -> Any:
    """Return a client of a server or of a local folder. Raises UnreadableFile if there is none."""
    is_server = address.startswith(("http://", "https://"))
    if not is_server and not (Path(address) / "meta.json").is_file():
        raise UnreadableFile(address, "is no local folder of Qdrant: it has no meta.json")
    if not is_server:
        require_own_folder(address)
    qdrant = optional("qdrant_client", "", "qdrant-client")
    if is_server:
        return qdrant.QdrantClient(url=address, api_key=vendor_variable("QDRANT_API_KEY"))
    return qdrant.QdrantClient(path=address)


def qdrant_collections(client: Any, names: Sequence[str] = ()) -> list[str]:
    """Return the names of all collections, or these. Raises InvalidInput for one that does not exist."""
    return choose_names((collection.name for collection in client.get_collections().collections), names)


def qdrant_points(client: Any, name: str, left: LeftOut) -> Iterator[Point]:
    """Yield the entries of a collection."""
    after = None
    while True:
        page, after = client.scroll(
            name, limit=PAGE_POINTS, offset=after, with_payload=True, with_vectors=True
        )
        for point in page:
            yield Point(str(point.id), point.payload or {}, vector=_dense_vector(point.vector, left))
        if after is None:
            return


def _dense_vector(vectors: object, left: LeftOut) -> tuple[float, ...] | None:
    """Return the one dense vector of a point. Others have no place."""
    named = vectors if isinstance(vectors, dict) else {"": vectors}
    dense = {
        name: vector for name, vector in named.items() if isinstance(vector, list) and _is_vector(vector)
    }
    for name, vector in named.items():
        if vector is not None and name not in dense:
            left.field(f"vector {name!r} that is not dense")
    if len(dense) > 1 and "" not in dense:
        left.field("several named vectors", len(dense))
        return None
    row = dense.get("") or next(iter(dense.values()), None)
    return None if row is None else tuple(map(float, row))


def _is_vector(values: list[object]) -> bool:
    return bool(values) and all(isinstance(number, int | float) for number in values)
