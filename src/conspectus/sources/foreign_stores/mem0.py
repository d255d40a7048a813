"""Reader of mem0: its memories in Chroma or Qdrant, with former texts and entities."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from conspectus.errors import UnreadableFile
from conspectus.model.memory import NewMemory, Scope
from conspectus.ports.imports import ForeignPlace, ForeignRecord, LeftOut
from conspectus.sources.foreign_stores.chroma import chroma_points, open_chroma_collections
from conspectus.sources.foreign_stores.points import (
    LIST_TABLES,
    WITHOUT_TEXT,
    Point,
    choose_names,
    open_sqlite,
)
from conspectus.sources.foreign_stores.qdrant import open_qdrant, qdrant_collections, qdrant_points
from conspectus.sources.json_values import as_mapping, moment_in, moment_of, text_in, word_in

MEM0_SCOPE: Final = ("user_id", "agent_id", "run_id")
MEM0_DERIVED: Final = ("hash", "text_lemmatized")
MEM0_READ: Final = {
    "id", "data", "memory", "metadata", "created_at", "updated_at", "actor_id", "role", "expiration_date",
    *MEM0_SCOPE, *MEM0_DERIVED,
}  # fmt: skip


def read_mem0(at: ForeignPlace, left: LeftOut) -> Iterator[ForeignRecord]:
    """Read the memories of a vector store, with former texts from the history database."""
    history = {} if at.history is None else _read_history(at.history, left)
    if at.history is None:
        left.remark("no --history; former texts are not imported")
    with _open_points(at.place, at.names[0] if at.names else "mem0", left) as (points, entities):
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
        left.skip(WITHOUT_TEXT, point.key)
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


@contextmanager
def _open_points(
    address: str, name: str, left: LeftOut
) -> Iterator[tuple[Iterator[Point], Mapping[str, Sequence[str]]]]:
    """Yield the memories of mem0 in Qdrant or Chroma, and the entities of each by its id."""
    named = f"{name}_entities"
    if (Path(address) / "chroma.sqlite3").is_file():
        with open_chroma_collections(address) as collections:
            by_name = {collection.name: collection for collection in collections}
            choose_names(by_name, (name,))
            others = chroma_points(by_name[named], LeftOut()) if named in by_name else ()
            yield chroma_points(by_name[name], left), _entities_by_memory(others)
        return
    with closing(open_qdrant(address)) as client:
        collection_names = qdrant_collections(client)
        choose_names(collection_names, (name,))
        entities = (
            _entities_by_memory(qdrant_points(client, named, LeftOut())) if named in collection_names else {}
        )
        yield qdrant_points(client, name, left), entities


def _entities_by_memory(points: Iterable[Point]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for point in points:
        memories = point.fields.get("linked_memory_ids")
        text = text_in(point.fields, "data")
        for memory in memories if text and isinstance(memories, list) else ():
            named.setdefault(str(memory), []).append(text)
    return named


def _read_history(path: str, left: LeftOut) -> dict[str, list[tuple[datetime, str]]]:
    """Return the texts of each memory with the time from which each held, oldest first."""
    statement = "SELECT memory_id, new_memory, COALESCE(updated_at, created_at) FROM history ORDER BY rowid"
    states_by_memory: dict[str, list[tuple[datetime, str]]] = {}
    with open_sqlite(path) as database:
        tables = {name for (name,) in database.execute(LIST_TABLES)}
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
