"""A small server of notes in this process, with a password, and the connectors that read it.

It is honest: it answers each request by what its own users have set, and knows nothing of Conspectus.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

from conspectus.connectors import (
    EVERYONE,
    AccessListing,
    Checked,
    ConnectionSite,
    ConnectorEntry,
    Example,
    Length,
    Listing,
    NewDocument,
    Secret,
)
from conspectus.errors import FetchFailed, NotFound

METADATA = "Metadata-Version: 2.1\nName: notes-of-tests\nVersion: 1.0\n"
ENTRY_POINTS = (
    "[conspectus.connectors]\nnotes = tests.support.note_server:NoteServers\n"
    "guarded = tests.support.note_server:GuardedServers\n"
    "verified = tests.support.note_server:VerifiedServers\n"
)


@dataclass
class Note:
    """A note in a notebook: its viewers are people, groups, or everyone at the server."""

    notebook: str
    text: str
    revision: int = 1
    viewers: frozenset[str] = frozenset()
    title: str = ""
    changed: int = 0
    guarded: int = 0
    """The numbers of the changes that changed the note, and its viewers, last."""


@dataclass
class NoteServer:
    """The server: its notes and groups, and the password of those who read them."""

    running: ClassVar[dict[str, "NoteServer"]] = {}

    name: str
    password: str
    notes: dict[str, Note] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Keys of notes whose error page repeats the request."""
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    people: set[str] = field(default_factory=set)
    changes: int = 0
    deleted: dict[str, int] = field(default_factory=dict)
    emptied: dict[str, int] = field(default_factory=dict)
    """The change that took the last note of a notebook."""
    regrouped: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    mirrors: bool = False
    """Whether the plain connector mirrors permissions too, as after an update of its package."""
    delay_seconds: float = 0.0
    """How long the answer to a question of a person takes."""
    questions: list[tuple[str, str]] = field(default_factory=list)
    """The people and notes of the questions that were answered."""
    answers_before_failure: int | None = None
    """So many requests are still answered, and no later one; None: all."""

    @contextmanager
    def run(self) -> Iterator["NoteServer"]:
        """Answer requests until the end of the block."""
        self.running[self.name] = self
        try:
            yield self
        finally:
            del self.running[self.name]

    def put(self, key: str, notebook: str, text: str, viewers: set[str], title: str = "") -> None:
        """Make a note, or change its text, place and viewers."""
        self.changes += 1
        former = self.notes.get(key)
        revision = 1 if former is None else former.revision + 1
        note = Note(notebook, text, revision, frozenset(viewers), title or key, self.changes, self.changes)
        self.notes[key] = note
        if former is not None:
            self._note_emptied(former.notebook)

    def share(self, key: str, viewers: set[str]) -> None:
        """Change who may read a note, and nothing else."""
        self.changes += 1
        self.notes[key].viewers, self.notes[key].guarded = frozenset(viewers), self.changes

    def delete(self, key: str) -> None:
        """Delete a note."""
        self.changes += 1
        notebook = self.notes.pop(key).notebook
        self.deleted[key] = self.changes
        self._note_emptied(notebook)

    def _note_emptied(self, notebook: str) -> None:
        if all(note.notebook != notebook for note in self.notes.values()):
            self.emptied[notebook] = self.changes

    def set_group(self, group: str, members: set[str]) -> None:
        """Change the members of a group."""
        self.changes += 1
        self.groups[group], self.regrouped[group] = frozenset(members), self.changes

    def may_read(self, person: str, key: str) -> bool:
        """Answer the question of a person for a note."""
        if person not in self.people or key not in self.notes:
            return False
        return any(self._includes(viewer, person, set()) for viewer in self.notes[key].viewers)

    def _includes(self, viewer: str, person: str, visited: set[str]) -> bool:
        if viewer in {person, EVERYONE}:
            return True
        if viewer in visited:
            return False
        members = self.groups.get(viewer, frozenset())
        return any(self._includes(member, person, visited | {viewer}) for member in members)

    def list_notes(self, password: str) -> dict[str, Note]:
        """Answer a request for the list of notes."""
        self._authenticate(password)
        return dict(self.notes)

    def read_note(self, password: str, key: str) -> str:
        """Answer a request for the text of a note."""
        self._authenticate(password)
        if key in self.broken:
            raise FetchFailed(f"notes://{self.name}/{key}", f"500 for password={password}", status=500)
        if key not in self.notes:
            raise NotFound("note", key)
        return self.notes[key].text

    async def answer_question(self, password: str, person: str, key: str) -> bool:
        """Answer whether a person may open a note."""
        self._authenticate(password)
        await asyncio.sleep(self.delay_seconds)
        self.questions.append((person, key))
        return self.may_read(person, key)

    def _authenticate(self, password: str) -> None:
        self.requests += 1
        if self.answers_before_failure == 0:
            raise FetchFailed(f"notes://{self.name}", "does not answer", passing=True)
        if self.answers_before_failure is not None:
            self.answers_before_failure -= 1
        if password != self.password:
            raise FetchFailed(f"notes://{self.name}", f"{password!r} is wrong", status=401)


@dataclass(frozen=True)
class NoteOptions(Checked):
    """How to reach a server of notes."""

    server: Annotated[str, Length(1, 100), "Name of the server.", Example("notes")]
    password: Annotated[str, Length(1, 100), "Password of the reader.", Secret] = field(repr=False)


class NoteServers:
    """The factory of the connector."""

    title = "Notes of tests"
    options = NoteOptions

    def is_local(self, options: NoteOptions) -> bool:
        """Whether it reads files of this machine."""
        return options.server == "local"

    def create(self, options: NoteOptions, site: ConnectionSite) -> "NoteConnector":
        """Create the connector."""
        server = NoteServer.running.get(options.server)
        mirrors = server is not None and server.mirrors
        return GuardedConnector(options) if mirrors else NoteConnector(options)


class NoteConnector:
    """Reads a server of notes."""

    def __init__(self, options: NoteOptions) -> None:
        self._options = options

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """List all notes, each time."""
        notes = self._server().list_notes(self._options.password)
        entries = tuple(
            ConnectorEntry(key, note.notebook, str(note.revision), title=key) for key, note in notes.items()
        )
        yield Listing(entries, json.dumps(sorted(notes)), complete=True)

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Read a note."""
        return NewDocument(self._server().read_note(self._options.password, entry.key))

    async def close(self) -> None:
        """Hold nothing."""

    def _server(self) -> NoteServer:
        if self._options.server not in NoteServer.running:
            raise FetchFailed(f"notes://{self._options.server}", "does not answer", passing=True)
        return NoteServer.running[self._options.server]


class GuardedServers(NoteServers):
    """The factory of the connector that mirrors permissions."""

    title = "Guarded notes of tests"

    def create(self, options: NoteOptions, site: ConnectionSite) -> "GuardedConnector":
        """Create the connector."""
        return GuardedConnector(options)


class GuardedConnector(NoteConnector):
    """Reads a server of notes with its permissions, two notes in a batch. Cursors are numbers of changes."""

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """List what changed, oldest first."""
        server, (since, since_deleted) = self._server(), _read_cursor(cursor)
        notes = server.list_notes(self._options.password)
        changed = sorted(
            (key for key, note in notes.items() if note.changed > since), key=lambda key: notes[key].changed
        )
        while len(changed) > 2:
            batch, changed = changed[:2], changed[2:]
            yield Listing(_entries(batch, notes), f"{notes[batch[-1]].changed}/{since_deleted}")
        deleted = {key for key, change in server.deleted.items() if change > since_deleted}
        gone = tuple(deleted - notes.keys())
        notebooks = {note.notebook for note in notes.values()}
        emptied = {name for name, change in server.emptied.items() if change > since_deleted} - notebooks
        yield Listing(
            _entries(changed, notes),
            f"{server.changes}/{server.changes}",
            gone=gone,
            spaces_gone=tuple(emptied),
            complete=since == 0,
        )

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Read a note."""
        document = await super().fetch(entry)
        note = self._server().notes[entry.key]
        return replace(document, metadata={"path": f"{note.notebook}/{note.title}"})

    async def access(self, cursor: str | None) -> AsyncIterator[AccessListing]:
        """List changed viewers and groups, oldest first."""
        server, (since, _) = self._server(), _read_cursor(cursor)
        notes = server.list_notes(self._options.password)
        viewers = {key: tuple(note.viewers) for key, note in notes.items() if note.guarded > since}
        members = {
            group: tuple(server.groups[group]) for group, change in server.regrouped.items() if change > since
        }
        yield AccessListing(f"{since}/0", members=members)
        yield AccessListing(f"{server.changes}/0", viewers, complete=False)


@dataclass(frozen=True)
class VerifiedNoteOptions(NoteOptions):
    """How to reach a server of notes that is asked before a note is shown."""

    verify: Annotated[bool, "Ask the server before a note is shown."] = False


class VerifiedServers(NoteServers):
    """The factory of the connector that mirrors permissions and can verify them."""

    title = "Verified notes of tests"
    options = VerifiedNoteOptions

    def create(self, options: NoteOptions, site: ConnectionSite) -> "VerifyingConnector":
        """Create the connector."""
        return VerifyingConnector(options)


class VerifyingConnector(GuardedConnector):
    """Asks the server of notes, a request for each note."""

    async def list_openable(self, person: str, entries: Sequence[ConnectorEntry]) -> set[str]:
        """Ask what a person may open."""
        server, password = self._server(), self._options.password
        return {entry.key for entry in entries if await server.answer_question(password, person, entry.key)}


def _read_cursor(cursor: str | None) -> tuple[int, int]:
    """Return the change up to which notes are known, and that up to which deletions are."""
    changed, _, deleted = (cursor or "").partition("/")
    return (int(changed), int(deleted)) if changed.isdecimal() and deleted.isdecimal() else (0, 0)


def _entries(keys: list[str], notes: dict[str, Note]) -> tuple[ConnectorEntry, ...]:
    return tuple(
        ConnectorEntry(
            key, notes[key].notebook, str(notes[key].revision), key, viewers=tuple(notes[key].viewers)
        )
        for key in keys
    )


def install_note_connector(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the connector in a folder of packages, as pip would."""
    metadata = folder / "notes_of_tests-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder))
