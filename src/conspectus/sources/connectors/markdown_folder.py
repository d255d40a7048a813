"""Folders of Markdown files as a wiki: identities of pages, and changes since a cursor.

A page is identified by the `id` of its front matter, else by the key of its path in the last cursor. A path
that disappeared and a new path with the same content are one page that was moved. The top-level folder is the
space; files at the top level are in the space `.`. The parent of a page is the nearest `index.md` of its
space.

Hidden files, links out of the folder and everything else that `LocalFiles` skips are skipped. Every listing
reads every file, so that it does not depend on clocks; only changed files are parsed and fetched.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar

from watchfiles import Change, awatch

from conspectus.deferred import dataclass
from conspectus.errors import FetchFailed, InvalidInput, NotFound, UnreadableFile
from conspectus.model.annotations import Example, Length
from conspectus.model.checks import Checked
from conspectus.model.connections import ConnectorEntry, Listing
from conspectus.model.records import NewDocument
from conspectus.ports import FoundFile
from conspectus.ports.connectors import ConnectionSite
from conspectus.sources.connectors.markdown_pages import page_id, read_page
from conspectus.sources.connectors.page_index import Difference, File, PageIndexState, Row, identify, is_page
from conspectus.sources.files.local_files import LocalFiles
from conspectus.text.hashing import content_hash

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
        files, not_pages = await asyncio.to_thread(self._list_files, stored.rows)
        keys = identify(stored.rows, list(files.values()), {})
        self._paths = {key: path for path, key in keys.items()}
        difference = Difference(stored, files, keys, "", not_pages)
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

    def _list_files(self, stored: Mapping[str, Row]) -> tuple[dict[str, File], tuple[str, ...]]:
        """Return the pages by path, and the paths of files that are none."""
        if not self._root.is_dir():
            raise FetchFailed(str(self._root), "is not a folder", passing=True)
        files: dict[str, File] = {}
        not_pages: list[str] = []
        for source_file in self._files.discover([self._root]):
            if source_file.path.is_dir():
                raise FetchFailed(str(source_file.path), "cannot be listed", passing=True)
            if not is_page(source_file.name):
                not_pages.append(source_file.name)
            elif file := self._file(source_file, stored.get(source_file.name)):
                files[source_file.name] = file
        return files, tuple(not_pages)

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


@dataclass(frozen=True, slots=True)
class FolderOptions(Checked):
    """The options of a folder."""

    path: Annotated[
        str, Length(1, 4_096), "Absolute path of the folder on the server.", Example("/srv/handbook")
    ]
    watch: Annotated[bool, "Sync after every change."] = False

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if "\0" in self.path or not Path(self.path).is_absolute():
            raise InvalidInput("path", "must be an absolute path")


class MarkdownFolders:
    """Connects with folders of Markdown files."""

    title: ClassVar[str] = "Folder of Markdown on the server"
    options: ClassVar[type[FolderOptions]] = FolderOptions

    def is_local(self, _: FolderOptions) -> bool:
        """Return True: a folder is on the machine that holds the store."""
        return True

    def create(self, options: FolderOptions, site: ConnectionSite) -> MarkdownFolder:
        """Return the connector of a folder."""
        return MarkdownFolder(Path(options.path), files=LocalFiles(site.settings))
