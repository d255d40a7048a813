"""What the index says of itself, kept in Milvus beside the rows: one small row makes all others count.

Rows carry the version that brought them. A question sees those up to the version of the state, without
those that it replaced, so replacing the state is the one moment at which everything new is there.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from conspectus.errors import CollectionGone, StorageTooNew
from conspectus.index.milvus.filters import EVERY, either
from conspectus.index.milvus.rows import notes_layout
from conspectus.index.milvus.server import MilvusServer, Row

FORMAT = 1
_STATE = "state"
_IDS_IN_A_NOTE = 3_000
_NOTES_AT_ONCE = 50
_RECENT = 16
_RANDOM_BITS = 20
VERSION_STEP = 1 << _RANDOM_BITS
"""What lies between two versions that follow each other, about."""


@dataclass(frozen=True, slots=True)
class State:
    """A version of the index, which describes all that can be seen.

    `generation` names the collections of rows (none yet: empty). Rows of all versions up to `settled` count,
    and those of the `recent` ones, so that a request of a writer that gave up, or died, may come late: its
    version is in neither, and its rows are swept before versions settle beyond it. `average` is the mean
    length that weights were made with, `last` the largest chunk id ever, `blocks` the versions of the
    statistics of terms with the parts of each, `replaced` how many rows went since the generation was built
    with `built` of them, and `dead` in how many notes those are listed that this version replaced and may
    not have deleted yet. In Milvus Lite facts are a text.
    """

    identity: str
    generation: str = ""
    version: int = 0
    settled: int = 0
    recent: tuple[int, ...] = ()
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
    def shown(self) -> str:
        """The expression of the rows that count, those not deleted yet among them."""
        listed = ",".join(map(str, self.recent))
        return (
            f"(version <= {self.settled} or version in [{listed}])"
            if listed
            else f"version <= {self.settled}"
        )

    @property
    def unfinished(self) -> str:
        """The expression of rows that no version counts."""
        return f"version > {self.settled} and not ({self.shown})"

    @property
    def due_for_sweeping(self) -> bool:
        """Whether it is time to look for what came late."""
        return (self.version >> _RANDOM_BITS) % (_RECENT // 2) == 0

    def next_version(self) -> int:
        """A version that no other attempt to follow this one has."""
        return ((self.version >> _RANDOM_BITS) + 1) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)

    def followed_by(self, version: int) -> "State":
        """The state with one more version."""
        recent = (*self.recent, version)
        settled, recent = (recent[0], recent[1:]) if len(recent) > _RECENT else (self.settled, recent)
        return replace(self, version=version, settled=settled, recent=recent)

    def all_settled(self) -> "State":
        """The state of a generation that is only now made known, in which nothing can come late."""
        return replace(self, settled=self.version, recent=())

    def same_rows(self, other: "State") -> bool:
        """Whether both show the same rows."""
        return (self.generation, self.version) == (other.generation, other.version)


@dataclass(frozen=True, slots=True)
class Note:
    """A row of the collection of notes."""

    kind: str
    generation: str
    version: int
    number: str
    body: str
    path: str = ""

    @property
    def key(self) -> str:
        """Its key in Milvus."""
        return note_key(self.kind, self.generation, self.version, self.number)

    def row(self) -> Row:
        """The note as Milvus takes it."""
        fields: dict[str, Any] = {"key": self.key, "kind": self.kind, "generation": self.generation}
        fields |= {"version": self.version, "path": self.path, "body": self.body}
        return fields | {"place": [1.0, 0.0]}


def note_key(kind: str, generation: str, version: int, number: str) -> str:
    """The key of a note."""
    return f"{kind}.{generation}.{version}.{number}"


class Notes:
    """The collection that holds the state and what belongs to it."""

    def __init__(self, server: MilvusServer, name: str, identity: str) -> None:
        self.server = server
        self.name = name
        self._identity = identity
        self._dead: tuple[State | None, str] = (None, EVERY)

    async def read(self) -> State:
        """The state as it is now; an empty one where there is none, or one of another analysis."""
        try:
            rows = await self.server.query(self.name, f'key == "{_STATE}"', ["body"])
        except CollectionGone:
            rows = []
        content = json.loads(rows[0]["body"]) if rows else {}
        if content.pop("format", FORMAT) > FORMAT:
            raise StorageTooNew(f"{self.server.address}/{self.name}", "a later format")
        if content.get("identity") != self._identity:
            return State(self._identity)
        content["recent"] = tuple(content["recent"])
        content["blocks"] = tuple((version, parts) for version, parts in content["blocks"])
        return State(**content)

    async def write(self, state: State) -> None:
        """Replace the state; everything that it names must be there."""
        body = json.dumps({"format": FORMAT, **asdict(state)})
        note = {**Note(_STATE, state.generation, state.version, "", body).row(), "key": _STATE}
        await self.server.upsert(self.name, [note])

    async def ensure(self) -> None:
        """Make the collection if there is none."""
        await self.server.create(self.name, *notes_layout())

    async def put(self, notes: Sequence[Note]) -> None:
        """Add notes."""
        for start in range(0, len(notes), _NOTES_AT_ONCE):
            await self.server.upsert(
                self.name, [note.row() for note in notes[start : start + _NOTES_AT_ONCE]]
            )

    async def bodies(self, keys: Sequence[str]) -> list[str] | None:
        """The bodies of notes in the order asked; None if one is missing."""
        found: dict[str, str] = {}
        for start in range(0, len(keys), _NOTES_AT_ONCE):
            listed = ",".join(f'"{key}"' for key in keys[start : start + _NOTES_AT_ONCE])
            rows = await self.server.query(self.name, f"key in [{listed}]", ["key", "body"])
            found |= {row["key"]: row["body"] for row in rows}
        return [found[key] for key in keys] if found.keys() >= set(keys) else None

    async def drop(self, keys: Iterable[str]) -> None:
        """Delete notes."""
        listed = ",".join(f'"{key}"' for key in keys)
        if listed:
            await self.server.delete(self.name, f"key in [{listed}]")

    async def drop_others(self, generation: str) -> None:
        """Delete all notes but the state and those of a generation."""
        await self.server.delete(self.name, f'key != "{_STATE}" and generation != "{generation}"')

    async def bury(self, state: State, chunks: Sequence[int]) -> State:
        """The state with the list of chunks whose older rows are dead, which is written first."""
        pieces = [chunks[start : start + _IDS_IN_A_NOTE] for start in range(0, len(chunks), _IDS_IN_A_NOTE)]
        await self.put(
            [
                Note("dead", state.generation, state.version, str(number), json.dumps(piece))
                for number, piece in enumerate(pieces)
            ]
        )
        return replace(state, dead=len(pieces))

    async def visible(self, state: State) -> str | None:
        """The expression of the rows that a state shows; None if it is no longer the current one."""
        if self._dead[0] != state:
            dead = await self.dead(state)
            if dead is None:
                return None
            hidden = f" and not (version < {state.version} and {either(dead)})" if dead else ""
            self._dead = state, f"{state.shown}{hidden}"
        return self._dead[1]

    async def dead(self, state: State) -> list[int] | None:
        """The chunks whose rows of older versions are dead; None if the list is gone."""
        bodies = await self.bodies(dead_keys(state))
        return None if bodies is None else [number for body in bodies for number in json.loads(body)]


def dead_keys(state: State) -> list[str]:
    """The keys of the notes that list dead rows."""
    return [note_key("dead", state.generation, state.version, str(number)) for number in range(state.dead)]
