"""Folders of Markdown files as a wiki: identities of pages, and changes since a cursor.

A page is identified by the `id` of its front matter, else by the key of its path in the last cursor. A path
that disappeared and a new path with the same content are one page that was moved. The top-level folder is the
space; files at the top level are in the space `.`. The parent of a page is the nearest `index.md` of its
space.

Hidden files, links out of the folder and everything else that `LocalFiles` skips are skipped. Every listing
reads every file, so that it does not depend on clocks; only changed files are parsed and fetched.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath

import yaml
from watchfiles import Change, awatch

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput, NotFound, UnreadableFile
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import Json, NewDocument
from conspectus.ports import FoundFile
from conspectus.sources.files.html import markdown_title
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.parsers import TITLE_LENGTH
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

INDEX = "index.md"
SUFFIXES = frozenset({".md", ".markdown", ".mdx"})
TOP = "."
GIVEN = "id:"
VERSION = 1


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
        return self.key.removeprefix(GIVEN) if self.key.startswith(GIVEN) else None


@dataclass(frozen=True, slots=True)
class PageIndexState:
    """A decoded cursor: rows by path, their current and former spaces, and the mark of the connector."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    spaces: frozenset[str] = frozenset()
    mark: str = ""

    def cursor(self) -> str:
        """Encode the cursor."""
        rows = {path: [row.key, row.revision] for path, row in self.rows.items()}
        state = {"version": VERSION, "mark": self.mark, "spaces": sorted(self.spaces), "pages": rows}
        return json.dumps(state, separators=(",", ":"))

    @classmethod
    def read(cls, cursor: str | None) -> "PageIndexState | None":
        """Decode a cursor. Returns an empty state if it is missing or unreadable."""
        try:
            state = json.loads(cursor or "")
            if state["version"] != VERSION:
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
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def space_of(path: str) -> str:
    """Return the space of a path."""
    return clean(path.partition("/")[0]) if "/" in path else TOP


def identify(stored: Mapping[str, Row], files: Sequence[File], moves: Mapping[str, str]) -> dict[str, str]:
    """Return the key of each path. `moves` are new paths with their stored old ones."""
    names = _Names(stored, {file.path for file in files})
    for file in sorted(files, key=lambda file: (not names.holds(file), file.path)):
        names.claim_stated(file)
    for file in files:
        names.claim_stored(file)
    for path, old in moves.items():
        names.inherit(path, old)
    for by_name in (True, False):
        for file in files:
            names.inherit(file.path, names.vanished_like(file, by_name=by_name))
    for file in files:
        names.invent(file.path)
    return names.keys


class _Names:
    """The keys assigned so far, each to one path."""

    def __init__(self, stored: Mapping[str, Row], present: set[str]) -> None:
        self.keys: dict[str, str] = {}
        self._known = stored
        self._present = present
        self._taken: set[str] = set()
        self._used = {row.key for row in stored.values()}
        self._vanished: dict[tuple[str, str], list[str]] = {}
        for path in sorted(stored.keys() - present, reverse=True):
            for name in (PurePosixPath(path).name, ""):
                self._vanished.setdefault((stored[path].content, name), []).append(path)

    def holds(self, file: File) -> bool:
        """Return whether a file had this id before, so that a copy of the file does not take it over."""
        return file.path in self._known and self._known[file.path].id == clean(file.id or "")

    def claim(self, path: str, key: str) -> None:
        if path in self._present and path not in self.keys and key not in self._taken:
            self.keys[path] = key
            self._taken.add(key)

    def claim_stated(self, file: File) -> None:
        if file.id is not None:
            self.claim(file.path, f"{GIVEN}{clean(file.id)}")

    def claim_stored(self, file: File) -> None:
        if file.path in self._known:
            self.claim(file.path, self._known[file.path].key)

    def inherit(self, path: str, old: str | None) -> None:
        if old is not None and old in self._known and old not in self._present:
            self.claim(path, self._known[old].key)

    def vanished_like(self, file: File, *, by_name: bool) -> str | None:
        """Return a removed path with this content (and this name) whose key is free."""
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
    """The difference between the files of a cursor and the current files."""

    before: PageIndexState
    files: Mapping[str, File]
    keys: Mapping[str, str]
    mark: str

    def listings(self, *, everything: bool, size: int) -> Iterator[Listing]:
        """Yield batches of changed pages, or of all pages, parents first. Removed pages are in the last
        batch.

        The cursor of each batch has the current state of listed pages, and the former state of all others.
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
        location = content_hash(json.dumps([path, self._parent(path)]))
        return Row(self.keys[path], f"{self.files[path].content}-{location[:16]}")

    def _parent(self, path: str) -> str | None:
        """Return the key of the nearest `index.md` above the path, in the same space."""
        here = PurePosixPath(path)
        folders = here.parents[1:] if here.name == INDEX else here.parents
        for folder in folders:
            index = (folder / INDEX).as_posix()
            if index in self.keys and space_of(index) == space_of(path):
                return self.keys[index]
        return None


BATCH = 500
DEBOUNCE = 1_600


class MarkdownFolder:
    """The `Connector` port for a folder."""

    def __init__(self, root: Path, *, files: LocalFiles | None = None, batch: int = BATCH) -> None:
        self._root = root.absolute()
        self._files = files or LocalFiles()
        self._batch = batch
        self._paths: dict[str, str] = {}

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Yield batches of the changes since the cursor; everything without a valid cursor.

        Raises FetchFailed if a folder cannot be listed: then nothing counts as removed.
        """
        before = PageIndexState.read(cursor)
        stored = before or PageIndexState()
        files = await asyncio.to_thread(self._listed, stored.rows)
        keys = identify(stored.rows, list(files.values()), {})
        self._paths = {key: path for path, key in keys.items()}
        difference = Difference(stored, files, keys, mark="")
        for listing in difference.listings(everything=before is None, size=self._batch):
            yield listing

    async def fetch(self, entry: ConnectorEntry) -> NewDocument:
        """Return the current page. Raises NotFound if it is gone, UnreadableFile or TooLarge."""
        path = self._paths.get(entry.key)
        if path is None:
            raise NotFound("page", entry.key)
        return await asyncio.to_thread(self._page, path)

    async def watch(
        self, *, debounce: int = DEBOUNCE, stop: asyncio.Event | None = None
    ) -> AsyncIterator[None]:
        """Yield once for all changes within `debounce` milliseconds.

        Raises FetchFailed if the folder is gone.
        """
        try:
            async for _ in awatch(
                self._root, watch_filter=self._concerns, debounce=debounce, stop_event=stop
            ):
                yield
        except FileNotFoundError:
            raise FetchFailed(str(self._root), "is not a folder", passing=True) from None

    async def close(self) -> None:
        """Do nothing: there are no open resources."""

    def _listed(self, stored: Mapping[str, Row]) -> dict[str, File]:
        if not self._root.is_dir():
            raise FetchFailed(str(self._root), "is not a folder", passing=True)
        files: dict[str, File] = {}
        for source_file in self._files.discover([self._root]):
            if source_file.path.is_dir():
                raise FetchFailed(str(source_file.path), "cannot be listed", passing=True)
            if is_page(source_file.name) and (file := self._file(source_file, stored.get(source_file.name))):
                files[source_file.name] = file
        return files

    def _file(self, source_file: FoundFile, stored: Row | None) -> File | None:
        """Return the listing of a file. An unreadable file is listed too, and its fetch fails."""
        try:
            text = self._text(source_file)
        except (InvalidInput, UnreadableFile) as fault:
            content = content_hash(f"{fault.code} {source_file.size}")[:32]
            return File(source_file.name, content, None if stored is None else stored.id)
        except NotFound:
            return None
        content = content_hash(text)[:32]
        if stored is not None and stored.content == content:
            return File(source_file.name, content, stored.id, PurePosixPath(source_file.name).stem)
        return File(source_file.name, content, page_id(text), read_page(text, source_file.name).title)

    def _page(self, path: str) -> NewDocument:
        full_path = self._root / path
        inside = full_path.resolve().is_relative_to(self._root.resolve())
        if not inside or not full_path.exists():
            raise NotFound("page", path)
        return read_page(self._text(FoundFile(full_path, path, 0)), path)

    def _text(self, source_file: FoundFile) -> str:
        try:
            documents = self._files.parse(source_file).documents
        except UnreadableFile:
            if source_file.path.exists():
                raise
            raise NotFound("page", source_file.name) from None
        return documents[0].text if documents else ""

    def _concerns(self, change: Change, path: str) -> bool:
        """Return whether a change may affect a page or a folder with pages."""
        inside = Path(path).relative_to(self._root) if Path(path).is_relative_to(self._root) else Path()
        return not any(part.startswith(".") for part in inside.parts)


BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MAX_BLOCK_LENGTH = 65_536
MAX_ID_LENGTH = 200
DEEPEST = 10


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """Return the fields of the front matter and the text after it; no fields if there is none."""
    block = BLOCK.match(text[:MAX_BLOCK_LENGTH])
    if block is None:
        return {}, text
    try:
        fields = _Strings(block[1]).get_single_data()
    except (yaml.YAMLError, ValueError, OverflowError):
        return {}, text
    if fields is None or fields == "":
        return {}, text[block.end() :]
    return (fields, text[block.end() :]) if isinstance(fields, dict) else ({}, text)


def page_id(text: str) -> str | None:
    """Return the id in the front matter, if there is one."""
    named = split_front_matter(text)[0].get("id")
    usable = isinstance(named, str) and 0 < len(named.strip()) <= MAX_ID_LENGTH
    return str(named).strip() if usable else None


def read_page(text: str, path: str) -> NewDocument:
    """Return a Markdown file as a document: title and metadata from the front matter, and the text."""
    fields, body = split_front_matter(text)
    named = fields.get("title")
    title = named.strip() if isinstance(named, str) else ""
    title = title or markdown_title(body) or PurePosixPath(path).stem
    others = {name: value for name, value in fields.items() if name not in {"id", "title", "tags"}}
    if "tags" in fields:
        others["tags"] = _tags(fields["tags"])
    return NewDocument(
        text=body if body.strip() else "",
        title=title[:TITLE_LENGTH],
        metadata={**others, "path": path},
        syntax="markdown",
    )


def _tags(value: Json) -> Json:
    """Return tags as a list. `one, two` is equivalent to `[one, two]`."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


class _Strings(yaml.BaseLoader):
    """Loads mappings, lists and strings to a limited depth, without anchors and aliases."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node. Raises an error for aliases and deep nesting, which may expand enormously."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.YAMLError("is nested too deeply")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
