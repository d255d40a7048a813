"""Readers of the stores of mem0, LangGraph, Chroma and Qdrant."""

import json
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, InvalidInput, UnreadableFile, optional
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.records import NewDocument
from conspectus.ports.imports import ForeignPlace, ForeignReader, ForeignRecord, LeftOut
from conspectus.settings import vendor_variable
from conspectus.sources.folder_ownership import require_own_folder
from conspectus.sources.json_values import as_mapping, load_json, moment_in, moment_of, text_in, word_in

PAGE: Final = 500
TEXT_FIELDS: Final = ("document", "page_content", "text", "content", "memory", "data")
NO_TEXT: Final = "records without text"
WHOLE_VALUE: Final = "values without a text field; the text is the whole value as JSON"
CHROMA_VENDORS: Final = {
    "cohere": "cohere:",
    "google_generative_ai": "google:",
    "ollama": "ollama:",
    "openai": "openai:",
    "sentence_transformer": "",
    "voyageai": "voyageai:",
}
"""What stands before the name of a model in an embedding space, by Chroma's name of its function."""
MEM0_SCOPE: Final = ("user_id", "agent_id", "run_id")
MEM0_DERIVED: Final = ("hash", "text_lemmatized")
MEM0_READ: Final = {
    "id", "data", "memory", "metadata", "created_at", "updated_at", "actor_id", "role", "expiration_date",
    *MEM0_SCOPE, *MEM0_DERIVED,
}  # fmt: skip
TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table'"
ITEMS: Final = "SELECT * FROM store ORDER BY prefix, key"
ITEM_COLUMNS: Final = {"value", "created_at", "updated_at"}
NO_STORE: Final = "is no store of LangGraph: it has no table `store`"
_FAILURES: Final = (ValueError, RuntimeError, OSError, sqlite3.Error)
_LIBRARIES: Final = (
    ("chromadb.errors", "ChromaError"),
    ("qdrant_client.http.exceptions", "ApiException"),
    ("psycopg", "Error"),
)
ReadPlace: TypeAlias = Callable[[ForeignPlace, LeftOut], Iterator[ForeignRecord]]


@dataclass(frozen=True, slots=True)
class Point:
    """An entry of a vector store: its fields, its text if that is not one of them, and one vector."""

    key: str
    fields: Mapping[str, object]
    text: str | None = None
    vector: tuple[float, ...] | None = None


def foreign_reader(kind: str, at: ForeignPlace) -> ForeignReader:
    """Return the reader of a store of `chroma`, `qdrant`, `mem0` or `langgraph`."""
    return partial(_guarded, _READERS[kind], at)


def _guarded(read: ReadPlace, at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Raise what the library of a store raises as UnreadableFile, without the password of a URL."""
    try:
        yield from read(at, left)
    except ConspectusError:
        raise
    except _failures() as fault:
        named = "database" if "@" in at.place else at.place
        raise UnreadableFile(named, f"{type(fault).__name__}: {fault}") from fault


def _failures() -> tuple[type[Exception], ...]:
    """Return what the libraries that are loaded raise."""
    loaded = ((sys.modules.get(module), name) for module, name in _LIBRARIES)
    return (*_FAILURES, *(getattr(module, name) for module, name in loaded if module is not None))


def _read_chroma(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the collections of a folder as documents, a source for each."""
    with _chroma_collections(at.place, at.names) as collections:
        for collection in collections:
            yield from _chroma_documents(collection, left)


def _chroma_documents(collection: Any, left: LeftOut) -> Iterator[ForeignRecord]:
    if collection.metadata:
        left.field("metadata of a collection", len(collection.metadata))
    function = as_mapping(as_mapping(collection.configuration_json).get("embedding_function"))
    prefix = CHROMA_VENDORS.get(text_in(function, "name"))
    name = text_in(function.get("config"), "model_name")
    model = f"{prefix}{name}" if prefix is not None and name else None
    for point in _chroma_points(collection, left):
        if point.text is None or not point.text.strip():
            left.skip(NO_TEXT, point.key)
            continue
        new = NewDocument(point.text, key=point.key, metadata=dict(point.fields), vector=point.vector)
        yield ForeignRecord(f"chroma/{collection.name}", new, model=model)


def _read_qdrant(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the collections of a local folder or a server as documents, a source for each."""
    with closing(_qdrant_client(at.place)) as client:
        for name in _qdrant_collections(client, at.names):
            points = _qdrant_points(client, name, left)
            yield from _qdrant_documents(f"qdrant/{name}", points, at.text_fields or TEXT_FIELDS, left)


def _qdrant_documents(
    source: str, points: Iterable[Point], names: Sequence[str], left: LeftOut
) -> Iterator[ForeignRecord]:
    for point in points:
        _, text, others = _text_in(point.fields, names)
        if not text:
            left.skip(NO_TEXT, point.key)
            continue
        # LangChain keeps the fields of a document in one of the payload.
        inner = others.pop("metadata") if isinstance(others.get("metadata"), dict) else {}
        metadata = {**as_mapping(inner), **others}
        yield ForeignRecord(source, NewDocument(text, key=point.key, metadata=metadata, vector=point.vector))


def _read_mem0(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the memories of a vector store, with former texts from the history database."""
    history = {} if at.history is None else _mem0_history(at.history, left)
    if at.history is None:
        left.remark("no --history; former texts are not imported")
    with _mem0_store(at.place, at.names[0] if at.names else "mem0", left) as (points, entities):
        for point in points:
            former = history.pop(point.key, [])
            record = mem0_record(point, left, former=former, entities=entities.get(point.key, ()))
            if record is not None:
                yield record
    for key in history:
        left.skip("memories that were deleted in mem0", key)


def mem0_record(
    point: Point,
    left: LeftOut,
    *,
    former: Sequence[tuple[datetime, str]] = (),
    entities: Sequence[str] = (),
) -> ForeignRecord | None:
    """Return the memory of a payload or an exported entry of mem0; None, counted, without text."""
    fields = point.fields
    text = text_in(fields, "data", "memory")
    if not text:
        left.skip(NO_TEXT, point.key)
        return None
    scope = mem0_scope(fields)
    if scope is None:
        left.skip("memories whose user, agent or run is no name", point.key)
        return None
    for name in MEM0_DERIVED:
        if fields.get(name) is not None:
            left.field(name)
    created = moment_in(fields, "created_at")
    updated = moment_in(fields, "updated_at") or created
    metadata = {
        name: content for name, content in fields.items() if name not in MEM0_READ and content is not None
    }
    expires = moment_in(fields, "expiration_date")
    new = NewMemory(
        text,
        key=point.key,
        role=text_in(fields, "role") or None,
        speaker=text_in(fields, "actor_id") or None,
        at=created,
        # It is hidden from the day after on.
        valid_until=None if expires is None else expires + timedelta(days=1),
        entities=tuple(entities),
        metadata={**as_mapping(fields.get("metadata")), **metadata},
        vector=point.vector,
    )
    earlier = tuple(state for state in former if updated is not None and state[0] < updated)
    return ForeignRecord(scope, new, created, updated, earlier)


def mem0_scope(fields: Mapping[str, object]) -> Scope | None:
    """Return the scope of a memory of mem0, also where it is a number; None if it is something else."""
    names = {name: word_in(fields, name) or None for name in MEM0_SCOPE}
    stated = [name for name in MEM0_SCOPE if fields.get(name) is not None and fields[name] != ""]
    return None if any(names[name] is None for name in stated) else Scope(*names.values())


def _read_langgraph(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the items of a store in SQLite or PostgreSQL as memories."""
    opened = _postgres_items if at.place.startswith(("postgresql://", "postgres://")) else _sqlite_items
    with opened(at.place) as items:
        for item in items:
            scope = _scope_in(str(item.row["prefix"]), at.namespace)
            if scope is None:
                left.skip("items in other namespaces than --namespace says", item.key)
            elif not _has_expired(item, left):
                yield from _langgraph_record(item, scope, at.text_fields or TEXT_FIELDS, left)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of LangGraph: its row, and a function that returns its vectors by the fields they are of."""

    row: Mapping[str, Any]
    vectors: Callable[[], Mapping[str, tuple[float, ...]]]

    @property
    def key(self) -> str:
        """Its namespace and its key."""
        return f"{self.row['prefix']}/{self.row['key']}"


def _has_expired(item: Item, left: LeftOut) -> bool:
    expires = _moment(item.row.get("expires_at"))
    if expires is None:
        return False
    if expires < datetime.now(UTC):
        left.skip("items that have expired", item.key)
        return True
    left.field("expires_at")
    return False


def _langgraph_record(
    item: Item, scope: Scope, names: Sequence[str], left: LeftOut
) -> Iterator[ForeignRecord]:
    """Yield an item as a memory: its text is a field, one in an object, or the whole value as JSON."""
    row = item.row
    if missing := ITEM_COLUMNS - row.keys():
        raise ValueError(f"the table `store` has no {', '.join(sorted(missing))}")
    stored = row["value"]
    value = load_json(stored) if isinstance(stored, str | bytes) else stored
    if not isinstance(value, dict):
        left.skip("values that are no JSON objects", item.key)
        return
    field, text, others = _text_in(value, names)
    if not text:
        left.remark(WHOLE_VALUE)
        field, text, others = "$", json.dumps(value, ensure_ascii=False, sort_keys=True), {}
    try:
        vectors = item.vectors()
    except ValueError:
        vectors = {}
        left.field("vectors that cannot be read")
    if len(vectors) > (field in vectors):
        left.field("vectors of other fields than the text", len(vectors) - (field in vectors))
    created, updated = _moment(row["created_at"]), _moment(row["updated_at"])
    metadata = {**others, "namespace": str(row["prefix"]).split(".")}
    new = NewMemory(text, key=item.key, at=created, metadata=metadata, vector=vectors.get(field))
    yield ForeignRecord(scope, new, created, updated)


def _text_in(fields: Mapping[str, object], names: Sequence[str]) -> tuple[str, str, dict[str, object]]:
    """Return the first of these fields with a text, also one level deeper, that text, and other fields."""
    for name in names:
        others = {field: value for field, value in fields.items() if field != name}
        if text := text_in(fields, name):
            return name, text, others
        inner = as_mapping(fields.get(name))
        for deeper in names:
            if text := text_in(inner, deeper):
                rest = {field: value for field, value in inner.items() if field != deeper}
                return f"{name}.{deeper}", text, others | rest
    return "", "", dict(fields)


def _scope_in(prefix: str, pattern: str | None) -> Scope | None:
    """Return the scope that a namespace names by the pattern; None if it does not match."""
    if pattern is None:
        return Scope()
    parts, places = prefix.split("."), pattern.split(".")
    scope: dict[str, str] = {}
    for part, pattern_part in zip(parts, places, strict=False):
        name = pattern_part.removeprefix("{").removesuffix("}")
        if pattern_part == f"{{{name}}}" and name in Scope.__dataclass_fields__:
            scope[name] = part
        elif pattern_part not in {part, "*"}:
            return None
    return Scope(**scope) if len(parts) == len(places) else None


def _moment(value: object) -> datetime | None:
    return moment_of(value.isoformat() if isinstance(value, datetime) else value)


@contextmanager
def _sqlite_items(path: str) -> Iterator[Iterator[Item]]:
    with _sqlite(path) as database:
        tables = {name for (name,) in database.execute(TABLES)}
        if "store" not in tables:
            raise UnreadableFile(path, NO_STORE)
        statement = "SELECT field_name, embedding FROM store_vectors WHERE prefix = ? AND key = ?"

        def vectors(row: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
            parameters = (row["prefix"], row["key"])
            rows = database.execute(statement, parameters) if "store_vectors" in tables else ()
            return {
                name: tuple(np.frombuffer(embedding, "<f4").tolist()) for name, embedding in rows if embedding
            }

        cursor = database.execute(ITEMS)
        columns = [column[0] for column in cursor.description]
        rows = (dict(zip(columns, row, strict=True)) for row in cursor)
        yield (Item(row, partial(vectors, row)) for row in rows)


@contextmanager
def _postgres_items(url: str) -> Iterator[Iterator[Item]]:
    driver = optional("psycopg", "postgresql", "psycopg")
    as_dict = optional("psycopg.rows", "postgresql", "psycopg").dict_row
    with driver.connect(url) as connection:
        tables = connection.execute("SELECT to_regclass('store'), to_regclass('store_vectors')").fetchone()
        if tables[0] is None:
            raise UnreadableFile("database", NO_STORE)
        statement = "SELECT field_name, embedding::text FROM store_vectors WHERE prefix = %s AND key = %s"

        def vectors(row: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
            rows = connection.execute(statement, (row["prefix"], row["key"])) if tables[1] is not None else ()
            return {name: tuple(json.loads(embedding)) for name, embedding in rows if embedding}

        with connection.cursor("conspectus_import", row_factory=as_dict) as cursor:
            yield (Item(row, partial(vectors, row)) for row in cursor.execute(ITEMS))


@contextmanager
def _sqlite(path: str) -> Iterator[sqlite3.Connection]:
    """A database that is only read. Raises UnreadableFile if there is none."""
    if not Path(path).is_file():
        raise UnreadableFile(path, "is no file")
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as database:
        yield database


@contextmanager
def _chroma_collections(folder: str, names: Sequence[str] = ()) -> Iterator[list[Any]]:
    """Yield collections of a copy of the folder, as Chroma changes what it opens."""
    if not (Path(folder) / "chroma.sqlite3").is_file():
        raise UnreadableFile(folder, "is no folder of Chroma: it has no chroma.sqlite3")
    require_own_folder(folder)
    chroma = optional("chromadb", "", "chromadb")
    settings = optional("chromadb.config", "", "chromadb").Settings(anonymized_telemetry=False)
    with TemporaryDirectory(prefix="conspectus-", ignore_cleanup_errors=True) as copy:
        copytree(folder, copy, ignore=ignore_patterns("chroma.sqlite3*"), dirs_exist_ok=True)
        database = Path(copy) / "chroma.sqlite3"
        with _sqlite(f"{folder}/chroma.sqlite3") as original, closing(sqlite3.connect(database)) as copied:
            original.backup(copied)
        client = chroma.PersistentClient(copy, settings=settings)
        collections = {collection.name: collection for collection in client.list_collections()}
        yield [collections[name] for name in _chosen(collections, names)]


def _chosen(existing: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return these of the known names, or all. Raises InvalidInput for one that is not known."""
    sorted_names = sorted(existing)
    if missing := [name for name in names if name not in sorted_names]:
        raise InvalidInput(
            "name", f"there is no {missing[0]!r}, only: {', '.join(sorted_names) or 'nothing'}"
        )
    return list(names) or sorted_names


def _chroma_points(collection: Any, left: LeftOut) -> Iterator[Point]:
    parts = ("documents", "metadatas", "embeddings", "uris")
    for start in range(0, collection.count(), PAGE):
        page = collection.get(limit=PAGE, offset=start, include=list(parts))
        columns = [[None] * len(page["ids"]) if page[part] is None else page[part] for part in parts]
        for key, text, fields, vector, uri in zip(page["ids"], *columns, strict=True):
            metadata = {
                name: content for name, content in (fields or {}).items() if _is_json(name, content, left)
            }
            beside = {} if uri is None else {"uri": uri}
            numbers = None if vector is None else tuple(map(float, vector))
            yield Point(str(key), beside | metadata, text, numbers)


def _is_json(name: str, value: object, left: LeftOut) -> bool:
    is_json = isinstance(value, str | int | float | bool | list | dict | None)
    if not is_json:
        left.field(f"{type(value).__name__} in {name}")
    return is_json


def _qdrant_client(address: str) -> Any:
    is_server = address.startswith(("http://", "https://"))
    if not is_server and not (Path(address) / "meta.json").is_file():
        raise UnreadableFile(address, "is no local folder of Qdrant: it has no meta.json")
    if not is_server:
        require_own_folder(address)
    qdrant = optional("qdrant_client", "", "qdrant-client")
    if is_server:
        return qdrant.QdrantClient(url=address, api_key=vendor_variable("QDRANT_API_KEY"))
    return qdrant.QdrantClient(path=address)


def _qdrant_collections(client: Any, names: Sequence[str] = ()) -> list[str]:
    return _chosen((collection.name for collection in client.get_collections().collections), names)


def _qdrant_points(client: Any, name: str, left: LeftOut) -> Iterator[Point]:
    after = None
    while True:
        page, after = client.scroll(name, limit=PAGE, offset=after, with_payload=True, with_vectors=True)
        for point in page:
            yield Point(str(point.id), point.payload or {}, vector=_dense(point.vector, left))
        if after is None:
            return


def _dense(vectors: object, left: LeftOut) -> tuple[float, ...] | None:
    """Return the one dense vector of a point. Others have no place."""
    named = vectors if isinstance(vectors, dict) else {"": vectors}
    dense = {name: vector for name, vector in named.items() if isinstance(vector, list) and _is_row(vector)}
    for name, vector in named.items():
        if vector is not None and name not in dense:
            left.field(f"vector {name!r} that is not dense")
    if len(dense) > 1 and "" not in dense:
        left.field("several named vectors", len(dense))
        return None
    row = dense.get("") or next(iter(dense.values()), None)
    return None if row is None else tuple(map(float, row))


def _is_row(values: list[object]) -> bool:
    return bool(values) and all(isinstance(number, int | float) for number in values)


@contextmanager
def _mem0_store(
    address: str, name: str, left: LeftOut
) -> Iterator[tuple[Iterator[Point], Mapping[str, Sequence[str]]]]:
    """Yield the memories of mem0 in Qdrant or Chroma, and the entities of each by its id."""
    named = f"{name}_entities"
    if (Path(address) / "chroma.sqlite3").is_file():
        with _chroma_collections(address) as collections:
            by_name = {collection.name: collection for collection in collections}
            _chosen(by_name, (name,))
            others = _chroma_points(by_name[named], LeftOut()) if named in by_name else ()
            yield _chroma_points(by_name[name], left), _mem0_entities(others)
        return
    with closing(_qdrant_client(address)) as client:
        collection_names = _qdrant_collections(client)
        _chosen(collection_names, (name,))
        entities = (
            _mem0_entities(_qdrant_points(client, named, LeftOut())) if named in collection_names else {}
        )
        yield _qdrant_points(client, name, left), entities


def _mem0_entities(points: Iterable[Point]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for point in points:
        memories = point.fields.get("linked_memory_ids")
        text = text_in(point.fields, "data")
        for memory in memories if text and isinstance(memories, list) else ():
            named.setdefault(str(memory), []).append(text)
    return named


def _mem0_history(path: str, left: LeftOut) -> dict[str, list[tuple[datetime, str]]]:
    """Return the texts of each memory with the time from which each held, oldest first."""
    statement = "SELECT memory_id, new_memory, COALESCE(updated_at, created_at) FROM history ORDER BY rowid"
    states_by_memory: dict[str, list[tuple[datetime, str]]] = {}
    with _sqlite(path) as database:
        tables = {name for (name,) in database.execute(TABLES)}
        if "history" not in tables:
            raise UnreadableFile(path, "is no history of mem0: it has no table `history`")
        for key, text, written in database.execute(statement):
            since = moment_of(written)
            states = states_by_memory.setdefault(key, [])
            if text and since is not None:
                states.append((since, text))
        if "messages" in tables:
            [(count,)] = database.execute("SELECT COUNT(*) FROM messages")
            if count:
                left.skip("recent messages, which mem0 keeps for its own prompts", "messages", count)
    return {key: sorted(states, key=lambda state: state[0]) for key, states in states_by_memory.items()}


_READERS: Final[Mapping[str, ReadPlace]] = {
    "chroma": _read_chroma,
    "langgraph": _read_langgraph,
    "mem0": _read_mem0,
    "qdrant": _read_qdrant,
}
