"""Folders of Markdown files as a wiki: the identity of pages, and the changes since a cursor.

A page is identified by the `id` of its front matter, else by the key that its path had in the last cursor. A
path that vanished and one that appeared with the same content are one page that moved. The first folder is
the space, that of files at the top is `.`; the page above a page is the nearest `index.md` of its space.

Hidden files, links out of the folder and everything else that `LocalFiles` leaves out are left out here.
Every listing reads every file, so that nothing depends on clocks; only changed files are parsed and fetched.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml
from watchfiles import Change, awatch

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
        """The id that the page's front matter gave."""
        return self.key.removeprefix(GIVEN) if self.key.startswith(GIVEN) else None


@dataclass(frozen=True, slots=True)
class PageIndexState:
    """A parsed cursor: the rows by path, their present and past spaces, and the connector's own mark."""

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
        """The state; empty if there is no readable cursor."""
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
    """The space that a path is in."""
    return clean(path.partition("/")[0]) if "/" in path else TOP


def identify(stored: Mapping[str, Row], files: Sequence[File], moves: Mapping[str, str]) -> dict[str, str]:
    """The key of each path; `moves` are new paths with the old ones that the caller knows they had."""
    names = _Names(stored, {each.path for each in files})
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


BATCH = 500
DEBOUNCE = 1_600


class MarkdownFolder:
    """The `Connector` port over a folder."""

    def __init__(self, root: Path, *, files: LocalFiles | None = None, batch: int = BATCH) -> None:
        self._root = root.absolute()
        self._files = files or LocalFiles()
        self._batch = batch
        self._paths: dict[str, str] = {}

    async def changes(self, cursor: str | None) -> AsyncIterator[Listing]:
        """Batches of what changed since the cursor; everything from none, or from one that is not ours.

        Raises FetchFailed if the folder, or a folder in it, cannot be listed: nothing counts as gone then.
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
        """The page as it is now. Raises NotFound where it is gone, UnreadableFile or TooLarge."""
        path = self._paths.get(entry.key)
        if path is None:
            raise NotFound("page", entry.key)
        return await asyncio.to_thread(self._page, path)

    async def watch(
        self, *, debounce: int = DEBOUNCE, stop: asyncio.Event | None = None
    ) -> AsyncIterator[None]:
        """Yields when something changed, once for all that changed within `debounce` milliseconds.

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
        """Do nothing: nothing is held."""

    def _listed(self, stored: Mapping[str, Row]) -> dict[str, File]:
        if not self._root.is_dir():
            raise FetchFailed(str(self._root), "is not a folder", passing=True)
        files: dict[str, File] = {}
        for found in self._files.discover([self._root]):
            if found.path.is_dir():
                raise FetchFailed(str(found.path), "cannot be listed", passing=True)
            if is_page(found.name) and (file := self._file(found, stored.get(found.name))):
                files[found.name] = file
        return files

    def _file(self, found: FoundFile, stored: Row | None) -> File | None:
        """The entry of a file in a listing; an unreadable file is listed too, and its fetch fails."""
        try:
            text = self._text(found)
        except (InvalidInput, UnreadableFile) as fault:
            content = content_hash(f"{fault.code} {found.size}")[:32]
            return File(found.name, content, None if stored is None else stored.id)
        except NotFound:
            return None
        content = content_hash(text)[:32]
        if stored is not None and stored.content == content:
            return File(found.name, content, stored.id, PurePosixPath(found.name).stem)
        return File(found.name, content, page_id(text), read_page(text, found.name).title)

    def _page(self, path: str) -> NewDocument:
        whole = self._root / path
        inside = whole.resolve().is_relative_to(self._root.resolve())
        if not inside or not whole.exists():
            raise NotFound("page", path)
        return read_page(self._text(FoundFile(whole, path, 0)), path)

    def _text(self, found: FoundFile) -> str:
        try:
            documents = self._files.parse(found).documents
        except UnreadableFile:
            if found.path.exists():
                raise
            raise NotFound("page", found.name) from None
        return documents[0].text if documents else ""

    def _concerns(self, change: Change, path: str) -> bool:
        """Whether a change may be one of a page or of a folder with pages."""
        inside = Path(path).relative_to(self._root) if Path(path).is_relative_to(self._root) else Path()
        return not any(part.startswith(".") for part in inside.parts)


BLOCK = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MAX_BLOCK_LENGTH = 65_536
MAX_ID_LENGTH = 200
DEEPEST = 10


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """The fields of the front matter and the text behind it; no fields where there is none."""
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
    """The identity that the front matter gives the page, if it gives one."""
    named = split_front_matter(text)[0].get("id")
    usable = isinstance(named, str) and 0 < len(named.strip()) <= MAX_ID_LENGTH
    return str(named).strip() if usable else None


def read_page(text: str, path: str) -> NewDocument:
    """A Markdown file as a document: front matter becomes title and metadata, the rest the text."""
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
    """A list in any case: `one, two` is as good as `[one, two]`."""
    if not isinstance(value, str):
        return value
    return [tag.strip() for tag in value.split(",") if tag.strip()]


class _Strings(yaml.BaseLoader):
    """Mappings, lists and strings, a few levels deep, without anchors and aliases."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node; what could be far larger than its text is refused."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not taken")
        self._depth += 1
        if self._depth > DEEPEST:
            raise yaml.YAMLError("is nested too deeply")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node
