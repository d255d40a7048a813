"""A folder of Markdown files as a wiki: the first level of folders are its spaces.

Hidden files, links out of the folder and everything else that `LocalFiles` leaves out are left out here.
Every listing reads every file, so that nothing depends on clocks; only what changed is parsed and fetched.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath

import yaml
from watchfiles import Change, awatch

from conspectus.errors import FetchFailed, InvalidInput, NotFound, UnreadableFile
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import Json, NewDocument
from conspectus.ports import FoundFile
from conspectus.sources.connectors.page_identity import (
    Difference,
    File,
    PageIndexState,
    Row,
    identify,
    is_page,
)
from conspectus.sources.files.html import markdown_title
from conspectus.sources.files.local_files import LocalFiles
from conspectus.sources.files.parsers import TITLE_LENGTH
from conspectus.text.hashing import content_hash

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
        known = before or PageIndexState()
        files = await asyncio.to_thread(self._listed, known.rows)
        keys = identify(known.rows, list(files.values()), {})
        self._paths = {key: path for path, key in keys.items()}
        difference = Difference(known, files, keys, mark="")
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
        """Nothing is held."""

    def _listed(self, known: Mapping[str, Row]) -> dict[str, File]:
        if not self._root.is_dir():
            raise FetchFailed(str(self._root), "is not a folder", passing=True)
        files: dict[str, File] = {}
        for found in self._files.discover([self._root]):
            if found.path.is_dir():
                raise FetchFailed(str(found.path), "cannot be listed", passing=True)
            if is_page(found.name) and (file := self._file(found, known.get(found.name))):
                files[found.name] = file
        return files

    def _file(self, found: FoundFile, known: Row | None) -> File | None:
        """What a listing says of a file; one that cannot be read is listed, so that its fetch says why."""
        try:
            text = self._text(found)
        except (InvalidInput, UnreadableFile) as fault:
            content = content_hash(f"{fault.code} {found.size}")[:32]
            return File(found.name, content, None if known is None else known.id)
        except NotFound:
            return None
        content = content_hash(text)[:32]
        if known is not None and known.content == content:
            return File(found.name, content, known.id, PurePosixPath(found.name).stem)
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
LONGEST_BLOCK = 65_536
LONGEST_ID = 200
DEEPEST = 10


def split_front_matter(text: str) -> tuple[Mapping[str, Json], str]:
    """The fields of the front matter and the text behind it; no fields where there is none."""
    block = BLOCK.match(text[:LONGEST_BLOCK])
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
    usable = isinstance(named, str) and 0 < len(named.strip()) <= LONGEST_ID
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
    """Mappings, lists and strings, a few levels deep, each written out where it stands."""

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
