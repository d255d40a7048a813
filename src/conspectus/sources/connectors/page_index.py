"""Identities of pages, and what changed since a cursor."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath

from conspectus.deferred import dataclass
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

INDEX_FILE = "index.md"
PAGE_SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
TOP_SPACE = "."
STATED_ID = "id:"
CURSOR_VERSION = 1


@dataclass(frozen=True, slots=True)
class Row:
    """The entry of a path in a cursor."""

    key: str
    revision: str

    @property
    def content(self) -> str:
        """The part of the revision that depends on the content alone."""
        return self.revision.partition("-")[0]

    @property
    def id(self) -> str | None:
        """The id in the page's front matter."""
        return self.key.removeprefix(STATED_ID) if self.key.startswith(STATED_ID) else None


@dataclass(frozen=True, slots=True)
class PageIndexState:
    """A decoded cursor: rows by path, their current and former spaces, and the mark of the connector."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    spaces: frozenset[str] = frozenset()
    mark: str = ""

    def cursor(self) -> str:
        """Encode the cursor."""
        rows = {path: [row.key, row.revision] for path, row in self.rows.items()}
        state = {"version": CURSOR_VERSION, "mark": self.mark, "spaces": sorted(self.spaces), "pages": rows}
        return json.dumps(state, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "PageIndexState | None":
        """Decode a cursor. Returns None if it is missing or unreadable."""
        try:
            state = json.loads(cursor or "")
            if state["version"] != CURSOR_VERSION:
                return None
            rows = {path: Row(str(key), str(revision)) for path, (key, revision) in state["pages"].items()}
            return cls(rows, frozenset(map(str, state["spaces"])), str(state["mark"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class File:
    """A file of a listing: its content hash, and its own id and title, if known."""

    path: str
    content: str
    id: str | None = None
    title: str = ""


def is_page(path: str) -> bool:
    """Return whether the name is that of a Markdown file."""
    return PurePosixPath(path).suffix.lower() in PAGE_SUFFIXES


def space_of(path: str) -> str:
    """Return the space of a path."""
    return clean(path.partition("/")[0]) if "/" in path else TOP_SPACE


def identify(stored: Mapping[str, Row], files: Sequence[File], moves: Mapping[str, str]) -> dict[str, str]:
    """Return the key of each path. `moves` are new paths with their stored old ones."""
    page_keys = _PageKeys(stored, {file.path for file in files})
    for file in sorted(files, key=lambda file: (not page_keys.had_id(file), file.path)):
        page_keys.claim_stated_id(file)
    for file in files:
        page_keys.claim_stored_key(file)
    for path, old in moves.items():
        page_keys.inherit(path, old)
    for by_name in (True, False):
        for file in files:
            page_keys.inherit(file.path, page_keys.find_removed(file, by_name=by_name))
    for file in files:
        page_keys.invent_key(file.path)
    return page_keys.by_path


class _PageKeys:
    """The keys assigned so far, each to one path."""

    def __init__(self, stored: Mapping[str, Row], present: set[str]) -> None:
        self.by_path: dict[str, str] = {}
        self._stored = stored
        self._present = present
        self._claimed: set[str] = set()
        self._used = {row.key for row in stored.values()}
        self._removed: dict[tuple[str, str], list[str]] = {}
        for path in sorted(stored.keys() - present, reverse=True):
            for name in (PurePosixPath(path).name, ""):
                self._removed.setdefault((stored[path].content, name), []).append(path)

    def had_id(self, file: File) -> bool:
        """Return whether a file had this id before, so that a copy of the file does not take it over."""
        return file.path in self._stored and self._stored[file.path].id == clean(file.id or "")

    def claim(self, path: str, key: str) -> None:
        """Assign a key that is free to a path that has none."""
        if path in self._present and path not in self.by_path and key not in self._claimed:
            self.by_path[path] = key
            self._claimed.add(key)

    def claim_stated_id(self, file: File) -> None:
        if file.id is not None:
            self.claim(file.path, f"{STATED_ID}{clean(file.id)}")

    def claim_stored_key(self, file: File) -> None:
        if file.path in self._stored:
            self.claim(file.path, self._stored[file.path].key)

    def inherit(self, path: str, old: str | None) -> None:
        if old is not None and old in self._stored and old not in self._present:
            self.claim(path, self._stored[old].key)

    def find_removed(self, file: File, *, by_name: bool) -> str | None:
        """Return a removed path with this content (and this name) whose key is free."""
        name = PurePosixPath(file.path).name if by_name else ""
        candidates = [] if file.path in self.by_path else self._removed.get((file.content, name), [])
        while candidates:
            old = candidates.pop()
            if self._stored[old].key not in self._claimed:
                return old
        return None

    def invent_key(self, path: str) -> None:
        key, number = f"path:{clean(path)}", 1
        while path not in self.by_path:
            if key not in self._used:
                self.claim(path, key)
            number += 1
            key = f"path:{clean(path)}#{number}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between the files of a cursor and the current files."""

    before: PageIndexState
    files: Mapping[str, File]
    keys: Mapping[str, str]
    mark: str
    not_pages: tuple[str, ...] = ()

    def listings(self, *, everything: bool, size: int) -> Iterator[Listing]:
        """Yield batches of changed pages, or of all pages, parents first.

        Removed pages, and files that are no pages, are in the last batch.

        The cursor of each batch has the current state of listed pages, and the former state of all others.
        """
        rows = {path: self._row(path) for path in self.files}
        changed = [path for path in rows if everything or self.before.rows.get(path) != rows[path]]
        changed.sort(key=lambda path: (path.count("/"), PurePosixPath(path).name != INDEX_FILE, path))
        old = {row.key: path for path, row in self.before.rows.items()}
        spaces = frozenset(map(space_of, rows))
        current = dict(self.before.rows)
        while len(changed) > size:
            some, changed = changed[:size], changed[size:]
            for path in some:
                if old.get(rows[path].key, path) not in rows:
                    current.pop(old[rows[path].key], None)
                current[path] = rows[path]
            yield Listing(
                self._entries(some, rows),
                PageIndexState(current, self.before.spaces | spaces, self.before.mark).cursor(),
            )
        yield Listing(
            self._entries(changed, rows),
            PageIndexState(rows, spaces, self.mark).cursor(),
            gone=tuple(sorted(old.keys() - self.keys.values())),
            spaces_gone=tuple(sorted(self.before.spaces - spaces)),
            complete=everything,
            not_pages=self.not_pages,
        )

    def _entries(self, paths: Sequence[str], rows: Mapping[str, Row]) -> tuple[ConnectorEntry, ...]:
        return tuple(
            ConnectorEntry(
                key=rows[path].key,
                space=space_of(path),
                revision=rows[path].revision,
                title=self.files[path].title,
                parent=self._parent(path),
            )
            for path in paths
        )

    def _row(self, path: str) -> Row:
        location = content_hash(json.dumps([path, self._parent(path)]))
        return Row(self.keys[path], f"{self.files[path].content}-{location[:16]}")

    def _parent(self, path: str) -> str | None:
        """Return the key of the nearest `index.md` above the path, in the same space."""
        here = PurePosixPath(path)
        folders = here.parents[1:] if here.name == INDEX_FILE else here.parents
        for folder in folders:
            index = (folder / INDEX_FILE).as_posix()
            if index in self.keys and space_of(index) == space_of(path):
                return self.keys[index]
        return None
