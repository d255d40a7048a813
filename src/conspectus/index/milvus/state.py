"""State of the Milvus index: versions, and the notes that store them."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from conspectus.deferred import dataclass
from conspectus.errors import IndexReplaced, StorageBusy, StorageTooNew
from conspectus.index.milvus.connection import MilvusServer, Row
from conspectus.index.milvus.filter_expressions import EVERY, either, match_keys
from conspectus.index.milvus.rows import NOTES, collection_name

FORMAT = 5
_STATE = "state"
_IDS_IN_A_NOTE = 3_000
_NOTES_AT_ONCE = 50
_ATTEMPTS = 20
_KEPT_STATES = 8
_RANDOM_BITS = 20
VERSION_STEP = 1 << _RANDOM_BITS
"""Approximate distance between consecutive versions."""


@dataclass(frozen=True, slots=True)
class MilvusState:
    """A version of the index, which defines the visible rows.

    `generation` names the collections of rows (empty before the first build). Rows of all versions up to this
    one are visible, except those of `void` versions, which were begun and never committed. `average` is the
    mean length used for the stored weights, `last` the largest chunk id ever used, and `blocks` the versions
    of the term statistics with the number of parts of each. `replaced` rows were removed since the generation
    was built with `built` rows. `dead` is the number of notes that list replaced rows which may not be
    deleted yet. In Milvus Lite, facts are stored as text.
    """

    identity: str
    generation: str = ""
    version: int = 0
    void: tuple[int, ...] = ()
    applied: int = 0
    average: float = 1.0
    total: int = 0
    length: int = 0
    vectors: int = 0
    threads: int = 0
    odd: int = 0
    last: int = -1
    replaced: int = 0
    built: int = 0
    facts_as_text: bool = False
    blocks: tuple[tuple[int, int], ...] = ()
    dead: int = 0

    @property
    def where_committed(self) -> str:
        """The expression of all rows of the state, including dead rows that are not deleted yet."""
        if not self.void:
            return f"version <= {self.version}"
        return f"(version <= {self.version} and not ({versions(self.void)}))"

    def same_rows(self, other: "MilvusState") -> bool:
        """Return whether both states have the same rows."""
        return (self.generation, self.version) == (other.generation, other.version)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The next version, announced: its base state, and the failed attempts before it."""

    before: MilvusState
    version: int
    void: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """A row of the notes collection of a generation."""

    kind: str
    generation: str
    version: int
    number: str
    body: str
    path: str = ""

    @property
    def key(self) -> str:
        """The primary key in Milvus."""
        return note_key(self.kind, self.version, self.number)

    def row(self) -> Row:
        """Return the note as a Milvus row."""
        fields: dict[str, Any] = {"key": self.key, "kind": self.kind, "version": self.version}
        return fields | {"path": self.path, "body": self.body, "place": [1.0, 0.0]}


def versions(numbers: Sequence[int]) -> str:
    """Return the expression of rows with these versions."""
    return f"version in [{','.join(map(str, numbers))}]"


def version_after(version: int) -> int:
    """Return a version number that no concurrent attempt has."""
    return (version // VERSION_STEP + 1) * VERSION_STEP + secrets.randbelow(VERSION_STEP)


def note_key(kind: str, version: int, number: str) -> str:
    """Return the key of a note."""
    return f"{kind}.{version}.{number}"


class Notes:
    """Stores the states of an index, and the lists that belong to them.

    Milvus has neither transactions nor conditional writes, so a state never replaces another: each is a row
    of its own, and the highest version is current. A writer announces its version before it reads the current
    one. A writer that lost its lock cannot do harm: its version is lower, and the next writer marks it as
    void.
    """

    def __init__(self, server: MilvusServer, name: str, identity: str) -> None:
        self.server = server
        self.name = name
        self._identity = identity
        self._visible: tuple[MilvusState | None, str] = (None, EVERY)

    def collection(self, generation: str) -> str:
        """Return the name of the notes collection of a generation."""
        return collection_name(self.name, generation, NOTES)

    async def read(self) -> MilvusState:
        """Return the current state; an empty one if there is none, or it has another analyzer."""
        try:
            return self._latest(await self._states(self.name))
        except IndexReplaced:
            return MilvusState(self._identity)

    async def write(self, state: MilvusState) -> None:
        """Write a state. Everything that it refers to must be written already."""
        body = json.dumps({"format": FORMAT, **asdict(state)})
        await self.put(state.generation, [Note(_STATE, state.generation, state.version, "", body)])

    async def begin(self, state: MilvusState) -> Attempt:
        """Announce the next version of a generation. Raises StorageBusy if other writers always interfere."""
        generation, version = state.generation, version_after(state.version)
        for _ in range(_ATTEMPTS):
            await self.put(generation, [Note(_STATE, generation, version, "", "")])
            rows = await self._states(self.collection(generation))
            others = [row["version"] for row in rows if row["version"] != version]
            last = max(others, default=0)
            if last // VERSION_STEP < version // VERSION_STEP:
                before = self._latest(rows)
                return Attempt(before, version, tuple(other for other in others if other > before.version))
            await self.drop(generation, [note_key(_STATE, version, "")])
            version = version_after(last)
        raise StorageBusy("another process is changing the index; try again")

    async def is_latest(self, state: MilvusState) -> bool:
        """Return whether no other version was begun since, so that replaced rows may be deleted."""
        rows = await self._states(self.collection(state.generation))
        versions = sorted(row["version"] for row in rows)
        if versions[-1:] != [state.version]:
            return False
        if len(versions) > _KEPT_STATES:
            await self.drop(state.generation, [note_key(_STATE, version, "") for version in versions[:-1]])
        return True

    async def put(self, generation: str, notes: Sequence[Note]) -> None:
        """Add notes."""
        for start in range(0, len(notes), _NOTES_AT_ONCE):
            rows = [note.row() for note in notes[start : start + _NOTES_AT_ONCE]]
            await self.server.upsert(self.collection(generation), rows)

    async def find(self, generation: str, where: str, fields: Sequence[str]) -> list[Row]:
        """Return the notes that an expression selects."""
        return await self.server.query(self.collection(generation), where, fields)

    async def read_between(
        self, generation: str, where: str, fields: Sequence[str], *, versions: tuple[int, int]
    ) -> list[Row]:
        """Return all notes that an expression selects, from the first version up to and without the last."""
        collection = self.collection(generation)
        return await self.server.query_by_halves(collection, where, fields, along="version", span=versions)

    async def bodies(self, generation: str, keys: Sequence[str]) -> list[str] | None:
        """Return the bodies of notes in the order of the keys; None if one is missing."""
        bodies: dict[str, str] = {}
        for start in range(0, len(keys), _NOTES_AT_ONCE):
            listed = match_keys(keys[start : start + _NOTES_AT_ONCE])
            rows = await self.find(generation, listed, ["key", "body"])
            bodies |= {row["key"]: row["body"] for row in rows}
        return [bodies[key] for key in keys] if bodies.keys() >= set(keys) else None

    async def drop(self, generation: str, keys: Sequence[str]) -> None:
        """Delete notes."""
        if keys:
            await self.server.delete(self.collection(generation), match_keys(keys))

    async def bury(self, state: MilvusState, chunks: Sequence[int]) -> MilvusState:
        """Return the state with the list of chunks whose older rows are dead. The list is written first."""
        pieces = [chunks[start : start + _IDS_IN_A_NOTE] for start in range(0, len(chunks), _IDS_IN_A_NOTE)]
        notes = [
            Note("dead", state.generation, state.version, str(number), json.dumps(piece))
            for number, piece in enumerate(pieces)
        ]
        await self.put(state.generation, notes)
        return replace(state, dead=len(pieces))

    async def visible(self, state: MilvusState) -> str:
        """Return the expression of the visible rows of a state. Raises IndexReplaced if it is not current."""
        if self._visible[0] != state:
            dead = await self.dead(state)
            if dead is None:
                raise IndexReplaced(f"a later version of {self.name} is current")
            hidden = f" and not (version < {state.version} and {either(dead)})" if dead else ""
            self._visible = state, f"{state.where_committed}{hidden}"
        return self._visible[1]

    async def dead(self, state: MilvusState) -> list[int] | None:
        """Return the chunks whose rows of older versions are dead; None if the list is gone."""
        bodies = await self.bodies(state.generation, dead_keys(state))
        return None if bodies is None else [number for body in bodies for number in json.loads(body)]

    async def _states(self, collection: str) -> list[Row]:
        return await self.server.query(collection, f'kind == "{_STATE}"', ["version", "body"])

    def _latest(self, rows: Sequence[Row]) -> MilvusState:
        written = [(row["version"], row["body"]) for row in rows if row["body"]]
        content = json.loads(max(written)[1]) if written else {}
        if content.pop("format", FORMAT) > FORMAT:
            raise StorageTooNew(f"{self.server.address}/{self.name}", "a later format")
        if content.get("identity") != self._identity:
            return MilvusState(self._identity)
        content["void"] = tuple(content["void"])
        content["blocks"] = tuple((version, parts) for version, parts in content["blocks"])
        return MilvusState(**content)


def dead_keys(state: MilvusState) -> list[str]:
    """Return the keys of the notes that list dead rows."""
    return [note_key("dead", state.version, str(number)) for number in range(state.dead)]
