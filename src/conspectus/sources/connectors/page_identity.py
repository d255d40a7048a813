"""Which page is which: the identity of files, kept across moves, and what changed since a cursor.

A page is known by the `id` of its front matter, else by the key that its path had in the last cursor. A path
that vanished and one that appeared with the same content are one page that moved. The first folder is the
space, that of files at the top is `.`; the page above a page is the nearest `index.md` of its space.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

INDEX = "index.md"
SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
TOP = "."
GIVEN = "id:"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Row:
    """What a cursor remembers of a path."""

    key: str
    revision: str

    @property
    def content(self) -> str:
        """The part of the revision that stands for the content alone."""
        return self.revision.partition("-")[0]

    @property
    def id(self) -> str | None:
        """The id that the page's front matter gave."""
        return self.key.removeprefix(GIVEN) if self.key.startswith(GIVEN) else None


@dataclass(frozen=True, slots=True)
class PageIndexState:
    """A cursor, read: the rows by path, the spaces they stand or stood in, and the connector's own mark."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    spaces: frozenset[str] = frozenset()
    mark: str = ""

    def cursor(self) -> str:
        """As text."""
        rows = {path: [row.key, row.revision] for path, row in self.rows.items()}
        whole = {"version": VERSION, "mark": self.mark, "spaces": sorted(self.spaces), "pages": rows}
        return json.dumps(whole, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "PageIndexState | None":
        """The state; nothing where there is no cursor, or none that can be read."""
        try:
            given = json.loads(cursor or "")
            if given["version"] != VERSION:
                return None
            rows = {path: Row(str(key), str(revision)) for path, (key, revision) in given["pages"].items()}
            return cls(rows, frozenset(map(str, given["spaces"])), str(given["mark"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


@dataclass(frozen=True, slots=True)
class File:
    """A file of a listing: a name for its content, and the id and title that it gives itself, if known."""

    path: str
    content: str
    id: str | None = None
    title: str = ""


def is_page(path: str) -> bool:
    """Whether the name says that it is Markdown."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def space_of(path: str) -> str:
    """The space that a path stands in."""
    return clean(path.partition("/")[0]) if "/" in path else TOP


def identify(known: Mapping[str, Row], files: Sequence[File], moves: Mapping[str, str]) -> dict[str, str]:
    """The key of each path; `moves` are new paths with the old ones that the caller knows they had."""
    names = _Names(known, {each.path for each in files})
    for each in sorted(files, key=lambda each: (not names.holds(each), each.path)):
        names.claim_given(each)
    for each in files:
        names.claim_held(each)
    for path, old in moves.items():
        names.inherit(path, old)
    for by_name in (True, False):
        for each in files:
            names.inherit(each.path, names.vanished_like(each, by_name=by_name))
    for each in files:
        names.invent(each.path)
    return names.keys


class _Names:
    """Keys as they are given out, each to one path."""

    def __init__(self, known: Mapping[str, Row], present: set[str]) -> None:
        self.keys: dict[str, str] = {}
        self._known = known
        self._present = present
        self._taken: set[str] = set()
        self._used = {row.key for row in known.values()}
        self._vanished: dict[tuple[str, str], list[str]] = {}
        for path in sorted(known.keys() - present, reverse=True):
            for name in (PurePosixPath(path).name, ""):
                self._vanished.setdefault((known[path].content, name), []).append(path)

    def holds(self, file: File) -> bool:
        """Whether the id that a file gives was its own before, so that a copy does not take it away."""
        return file.path in self._known and self._known[file.path].id == clean(file.id or "")

    def claim(self, path: str, key: str) -> None:
        if path in self._present and path not in self.keys and key not in self._taken:
            self.keys[path] = key
            self._taken.add(key)

    def claim_given(self, file: File) -> None:
        if file.id is not None:
            self.claim(file.path, f"{GIVEN}{clean(file.id)}")

    def claim_held(self, file: File) -> None:
        if file.path in self._known:
            self.claim(file.path, self._known[file.path].key)

    def inherit(self, path: str, old: str | None) -> None:
        if old is not None and old in self._known and old not in self._present:
            self.claim(path, self._known[old].key)

    def vanished_like(self, file: File, *, by_name: bool) -> str | None:
        """A path that is gone, had this content (and this name) and whose key is free."""
        name = PurePosixPath(file.path).name if by_name else ""
        alike = [] if file.path in self.keys else self._vanished.get((file.content, name), [])
        while alike:
            old = alike.pop()
            if self._known[old].key not in self._taken:
                return old
        return None

    def invent(self, path: str) -> None:
        key, number = f"path:{clean(path)}", 1
        while path not in self.keys:
            if key not in self._used:
                self.claim(path, key)
            number += 1
            key = f"path:{clean(path)}#{number}"


@dataclass(frozen=True, slots=True)
class Difference:
    """From what a cursor remembers to the files as they are."""

    before: PageIndexState
    files: Mapping[str, File]
    keys: Mapping[str, str]
    mark: str

    def listings(self, *, everything: bool, size: int) -> Iterator[Listing]:
        """Batches of what changed, or of all there is, parents first; what is gone comes with the last.

        Each cursor remembers what was listed as it is now, and everything else as it was.
        """
        rows = {path: self._row(path) for path in self.files}
        changed = [path for path in rows if everything or self.before.rows.get(path) != rows[path]]
        changed.sort(key=lambda path: (path.count("/"), PurePosixPath(path).name != INDEX, path))
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
        place = content_hash(json.dumps([path, self._parent(path)]))
        return Row(self.keys[path], f"{self.files[path].content}-{place[:16]}")

    def _parent(self, path: str) -> str | None:
        """The key of the nearest `index.md` above, inside the space."""
        here = PurePosixPath(path)
        folders = here.parents[1:] if here.name == INDEX else here.parents
        for folder in folders:
            index = (folder / INDEX).as_posix()
            if index in self.keys and space_of(index) == space_of(path):
                return self.keys[index]
        return None
