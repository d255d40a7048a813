"""A small server of notes in this process, with a password, and the connector that reads it.

It is honest: it answers each request by what its own users have set, and knows nothing of Conspectus.
"""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

from conspectus.connectors import (
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
ENTRY_POINTS = "[conspectus.connectors]\nnotes = tests.support.note_server:NoteServers\n"


@dataclass
class Note:
    """A note in a notebook."""

    notebook: str
    text: str
    revision: int = 1


@dataclass
class NoteServer:
    """The server: its notes, and the password of those who read them."""

    running: ClassVar[dict[str, "NoteServer"]] = {}

    name: str
    password: str
    notes: dict[str, Note] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Keys of notes whose error page repeats the request."""

    @contextmanager
    def run(self) -> Iterator["NoteServer"]:
        """Answer requests until the end of the block."""
        self.running[self.name] = self
        try:
            yield self
        finally:
            del self.running[self.name]

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

    def _authenticate(self, password: str) -> None:
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
        return NoteConnector(options)


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


def install_note_connector(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the connector in a folder of packages, as pip would."""
    metadata = folder / "notes_of_tests-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder))
