"""A server of notes as the kit for connectors asks for it: pages by name, permissions, and a switch."""

from dataclasses import dataclass, field

from tests.support.note_server import GuardedConnector, NoteOptions, NoteServer

PASSWORD = "hunter2-correct-horse"


@dataclass
class NoteOffice:
    """A running server of notes, whose users know notes by notebook and title. Its groups may be nested."""

    notes: NoteServer
    kind: str = "guarded"
    options: dict[str, str | bool] = field(default_factory=lambda: {"server": "office"})
    credentials: dict[str, str] = field(default_factory=lambda: {"password": PASSWORD})
    people: tuple[str, ...] = ("ann", "ben", "cy", "dee")
    groups: tuple[str, ...] = ("group:a", "group:b", "group:c")
    created: int = 0

    @property
    def requests(self) -> int:
        return self.notes.requests

    def stop_after(self, requests: int | None) -> None:
        self.notes.answers_before_failure = requests

    async def put(self, space: str, name: str, text: str) -> None:
        key = self._find(space, name)
        if key is None:
            self.created += 1
            self.notes.put(f"note{self.created}", space, text, set(), name)
        else:
            self.notes.put(key, space, text, set(self.notes.notes[key].viewers), name)

    async def delete(self, space: str, name: str) -> None:
        self.notes.delete(self._require(space, name))

    async def move(self, space: str, name: str, *, to_space: str, to_name: str) -> None:
        key = self._require(space, name)
        note = self.notes.notes[key]
        self.notes.put(key, to_space, note.text, set(note.viewers), to_name)

    async def remove_space(self, space: str) -> None:
        for key in [key for key, note in self.notes.notes.items() if note.notebook == space]:
            self.notes.delete(key)

    def connect(self) -> GuardedConnector:
        return GuardedConnector(NoteOptions("office", PASSWORD))

    async def share(self, space: str, name: str, viewers: frozenset[str]) -> None:
        self.notes.share(self._require(space, name), set(viewers))

    async def set_members(self, group: str, members: frozenset[str]) -> None:
        self.notes.set_group(group, set(members))

    async def may_read(self, person: str, space: str, name: str) -> bool:
        return self.notes.may_read(person, self._require(space, name))

    def _find(self, space: str, name: str) -> str | None:
        notes = self.notes.notes.items()
        return next((key for key, note in notes if (note.notebook, note.title) == (space, name)), None)

    def _require(self, space: str, name: str) -> str:
        key = self._find(space, name)
        assert key is not None, (space, name)
        return key
