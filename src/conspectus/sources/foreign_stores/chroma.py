"""Reader of Chroma: its collections as documents."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any, Final

from conspectus.errors import UnreadableFile, optional
from conspectus.model.records import NewDocument
from conspectus.ports.imports import ForeignPlace, ForeignRecord, LeftOut
from conspectus.sources.folder_ownership import require_own_folder
from conspectus.sources.foreign_stores.points import (
    PAGE_POINTS,
    WITHOUT_TEXT,
    Point,
    choose_names,
    open_sqlite,
)
from conspectus.sources.json_values import as_mapping, text_in

CHROMA_VENDORS: Final = {
    "cohere": "cohere:",
    "google_generative_ai": "google:",
    "ollama": "ollama:",
    "openai": "openai:",
    "sentence_transformer": "",
    "voyageai": "voyageai:",
}
"""What stands before the name of a model in an embedding space, by Chroma's name of its function."""


def read_chroma(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the collections of a folder as documents, a source for each."""
    with open_chroma_collections(at.place, at.names) as collections:
        for collection in collections:
            yield from _documents_of(collection, left)


def _documents_of(collection: Any, left: LeftOut) -> Iterator[ForeignRecord]:
    if collection.metadata:
        left.field("metadata of a collection", len(collection.metadata))
    function = as_mapping(as_mapping(collection.configuration_json).get("embedding_function"))
    prefix = CHROMA_VENDORS.get(text_in(function, "name"))
    name = text_in(function.get("config"), "model_name")
    model = f"{prefix}{name}" if prefix is not None and name else None
    for point in chroma_points(collection, left):
        if point.text is None or not point.text.strip():
            left.skip(WITHOUT_TEXT, point.key)
            continue
        new = NewDocument(point.text, key=point.key, metadata=dict(point.fields), vector=point.vector)
        yield ForeignRecord(f"chroma/{collection.name}", new, model=model)


@contextmanager
def open_chroma_collections(folder: str, names: Sequence[str] = ()) -> Iterator[list[Any]]:
    """Yield collections of a copy of the folder, as Chroma changes what it opens."""
    if not (Path(folder) / "chroma.sqlite3").is_file():
        raise UnreadableFile(folder, "is no folder of Chroma: it has no chroma.sqlite3")
    require_own_folder(folder)
    chroma = optional("chromadb", "", "chromadb")
    settings = optional("chromadb.config", "", "chromadb").Settings(anonymized_telemetry=False)
    with TemporaryDirectory(prefix="conspectus-", ignore_cleanup_errors=True) as copy:
        copytree(folder, copy, ignore=ignore_patterns("chroma.sqlite3*"), dirs_exist_ok=True)
        database = Path(copy) / "chroma.sqlite3"
        with (
            open_sqlite(f"{folder}/chroma.sqlite3") as original,
            closing(sqlite3.connect(database)) as copied,
        ):
            original.backup(copied)
        client = chroma.PersistentClient(copy, settings=settings)
        collections = {collection.name: collection for collection in client.list_collections()}
        yield [collections[name] for name in choose_names(collections, names)]


def chroma_points(collection: Any, left: LeftOut) -> Iterator[Point]:
    """Yield the entries of a collection."""
    parts = ("documents", "metadatas", "embeddings", "uris")
    for start in range(0, collection.count(), PAGE_POINTS):
        page = collection.get(limit=PAGE_POINTS, offset=start, include=list(parts))
        columns = [[None] * len(page["ids"]) if page[part] is None else page[part] for part in parts]
        for key, text, fields, vector, uri in zip(page["ids"], *columns, strict=True):
            metadata = {
                name: content
                for name, content in (fields or {}).items()
                if _is_json_or_counted(name, content, left)
            }
            beside = {} if uri is None else {"uri": uri}
            numbers = None if vector is None else tuple(map(float, vector))
            yield Point(str(key), beside | metadata, text, numbers)


def _is_json_or_counted(name: str, value: object, left: LeftOut) -> bool:
    is_json = isinstance(value, str | int | float | bool | list | dict | None)
    if not is_json:
        left.field(f"{type(value).__name__} in {name}")
    return is_json
