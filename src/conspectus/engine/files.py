"""The files service: documents as files, with paths, lines and patterns."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Final, Unpack

from conspectus.access.collection_access import CollectionAccess
from conspectus.engine.context import EngineContext
from conspectus.engine.file_folders import Folder, is_folder, next_key, with_path_names
from conspectus.engine.file_search import FileSelection, Scan, require_glob
from conspectus.engine.file_texts import character_range, count_lines, cut_to_budget
from conspectus.engine.search import SearchService
from conspectus.engine.service import Service
from conspectus.errors import NotFound
from conspectus.ingest.document_fields import message_id
from conspectus.model.annotations import Example, Range
from conspectus.model.checks import require_settings
from conspectus.model.files import (
    FileEntry,
    FileGlob,
    FilePage,
    FilePath,
    FileText,
    Grep,
    GrepOptions,
    GrepResult,
    PathParts,
    parse_path,
    path_of,
)
from conspectus.model.filter import EVERYTHING, And, DocumentFilter, Eq
from conspectus.model.pages import portions
from conspectus.model.parameters import Cursor, PageLimit
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import Document

DOCUMENTS_PER_BATCH: Final = 200
CHARACTERS_PER_BATCH: Final = 2_000_000
MAX_LIKELY_HITS: Final = 200
"""Number of passages in whose documents a pattern is searched for first."""
MIN_TOKENS: Final = 16
"""The smallest budget of a text: a character has fewer tokens."""
MAX_TOKENS: Final = 1_000_000
_WORD = re.compile(r"\w{3,}")
"""The words of a pattern that keyword search can find."""
_ESCAPE = re.compile(r"\\.")
"""An escape of a regular expression, such as `\\d`, whose letter is no part of a word."""


class FileService(Service):
    """Documents as files: list, read, find, and search lines for a pattern.

    A path is `/collection/source/key`; the slashes of a key make folders.
    """

    def __init__(self, context: EngineContext, search: SearchService) -> None:
        super().__init__(context)
        self._search = search

    async def list(
        self, path: FilePath = "/", *, after: Cursor | None = None, limit: PageLimit = 100
    ) -> FilePage:
        """List the files and folders at a path, as `ls` does. Collections and sources are folders.

        `after` is a cursor. Raises NotFound.
        """
        parts, begin = parse_path(path), None if after is None else parse_path(after)
        if parts.source:
            entries = await self._list_entries(await self._require_folder(path, parts), begin, limit)
            if not entries and parts.key and after is None:
                raise NotFound("file", path)
            return _first_page(entries, limit)
        if parts.collection:
            folders = await self._list_folders(path)
            entries = [
                FileEntry(f"{folder.path('')}/", folder=True, kind=folder.source.kind) for folder in folders
            ]
        else:
            accesses = await self._authorized.collections()
            entries = [FileEntry(f"{path_of(access.collection.name)}/", folder=True) for access in accesses]
        ordered = sorted(entries, key=lambda entry: entry.path)
        return _first_page([entry for entry in ordered if after is None or entry.path > after], limit)

    async def read(
        self,
        path: Annotated[FilePath, Example("/notes/handbook/backup.md")],
        *,
        first_line: Annotated[int, Range(1), "First line."] = 1,
        last_line: Annotated[int | None, Range(1), "Last line, included."] = None,
        start: Annotated[int, Range(0), "First character."] = 0,
        max_tokens: Annotated[
            int | None,
            Range(MIN_TOKENS, MAX_TOKENS),
            "Maximum number of tokens, counted with o200k_base.",
            Example(1_000),
        ] = None,
    ) -> FileText:
        """Read lines of a file, as `cat` and `head` do, at most `max_tokens` of o200k_base.

        With `start`, the text begins at that character if it is after the first line. Raises NotFound.
        """
        parts = parse_path(path)
        document = await self._find_file(await self._require_folder(path, parts)) if parts.source else None
        if document is None:
            raise NotFound("file", path)
        text = await self._authorized.text(document)
        begin, end = character_range(text, first_line, last_line, start)
        count = self._parts.counter("o200k_base")
        cut, tokens = await self._core.long_work.run_counting(
            partial(cut_to_budget, text[begin:end], max_tokens),
            count,
            characters=end - begin,
            user=self._person.id,
        )
        close = begin + len(cut)
        return FileText(
            path,
            document.id,
            document.title,
            cut,
            begin,
            close,
            first_line=text.count("\n", 0, begin) + 1,
            last_line=text.count("\n", 0, max(begin, close - 1)) + 1,
            lines=count_lines(text),
            characters=len(text),
            tokens=tokens,
            next=close if close < end else None,
            trust=document.trust,
        )

    async def find(
        self,
        path: FilePath = "/",
        *,
        name: FileGlob | None = None,
        filter: DocumentFilter = EVERYTHING,
        after: Cursor | None = None,
        limit: PageLimit = 100,
    ) -> FilePage:
        """List the files at and below a path, as `find` does, by path.

        `name` is a glob of the file's name, such as `*.md`, or of the whole key if it has a slash. Raises
        NotFound.
        """
        selection = FileSelection(require_glob(name), filter)
        begin = None if after is None else parse_path(after)
        entries: list[FileEntry] = []
        async for folder, documents in self._documents_below(await self._list_folders(path), begin):
            selected = [document for document in documents if selection.has(document)]
            openable = await self._authorized.gate.keep_openable(selected)
            entries += [folder.entry(document) for document in openable]
            if len(entries) > limit:
                break
        return _first_page(entries, limit)

    async def grep(self, /, pattern: str, path: str = "/", **options: Unpack[GrepOptions]) -> GrepResult:
        """Search the lines of files for a pattern, as `grep -r` does. Lines have their place in the document.

        The options are the fields of Grep. Raises InvalidInput for a pattern that is not supported, and
        NotFound.
        """
        grep = Grep(pattern, path, **options)
        require_settings(grep, self._parts.settings)
        scan, folders = Scan(grep), await self._list_folders(path)
        for stage in (self._documents_with_words(grep, folders), self._documents_below(folders)):
            async for folder, documents in stage:
                await self._scan_documents(scan, folder, documents)
                if scan.stopped:
                    break
        return await self._core.long_work.run_counting(
            scan.result,
            self._parts.counter("o200k_base"),
            characters=scan.characters,
            user=self._person.id,
        )

    async def _scan_documents(self, scan: "Scan", folder: Folder, documents: Sequence[Document]) -> None:
        unseen = scan.select_unseen(documents)
        for batch in portions(
            unseen, lambda document: document.characters, most=DOCUMENTS_PER_BATCH, room=CHARACTERS_PER_BATCH
        ):
            if not scan.stopped:
                texts = await self._authorized.texts(batch)
                if folder.source.id in folder.access.roles.verified:
                    matching = await asyncio.to_thread(scan.select_matching, batch, texts)
                    batch = await self._authorized.gate.keep_openable(matching)
                files = [(folder.path(document.key), document) for document in batch]
                await asyncio.to_thread(scan.run, files, texts)

    async def _collection_access(self, path: str, parts: PathParts) -> CollectionAccess:
        """Return the collection of a path. Hidden and missing collections raise the same NotFound."""
        access = await self._authorized.find(parts.collection)
        if access is None:
            raise NotFound("file", path)
        return access

    async def _require_folder(self, path: str, parts: PathParts) -> Folder:
        """Return the folder or file at a path that names a source. Raises NotFound."""
        access = await self._collection_access(path, parts)
        source = await self._authorized.source(access, parts.source)
        if source is not None and not is_folder(source):
            return Folder(access, source, source.name, parts.key)
        for folder_source, name in with_path_names(await self._authorized.sources(access)):
            if name == parts.source or folder_source == source:
                return Folder(access, folder_source, name, parts.key)
        raise NotFound("file", path)

    async def _find_file(self, folder: Folder) -> Document | None:
        """Return the document with the key of the path; None if the path is a folder only."""
        documents = await self._authorized.inside(folder.access, [message_id(folder.source.id, folder.key)])
        return documents[0] if documents and documents[0].key == folder.key else None

    async def _list_entries(self, folder: Folder, after: PathParts | None, limit: int) -> Sequence[FileEntry]:
        """Return the entries of a folder, and the file of its name; more than `limit` if there are more."""
        entries: dict[str, FileEntry] = {}
        start = folder.prefix
        if after is not None:
            start = max(start, next_key(after.key))
        elif folder.key and (file := await self._find_file(folder)) is not None:
            entries[file.key] = folder.entry(file)
        while len(entries) <= limit:
            documents = await self._list_by_key(folder, start)
            openable = await self._authorized.gate.list_openable(documents)
            for document in documents:
                if document.id not in openable:
                    start = max(start, next_key(document.key))
                    continue
                name, slash, _ = document.key[len(folder.prefix) :].partition("/")
                key = folder.prefix + name + slash
                is_file = key == document.key
                entries.setdefault(
                    key, folder.entry(document) if is_file else FileEntry(folder.path(key), folder=True)
                )
                start = next_key(key)
            if len(documents) < DOCUMENTS_PER_BATCH:
                break
        return list(entries.values())

    async def _list_by_key(self, folder: Folder, start: str) -> Sequence[Document]:
        return await self._authorized.list_by_key(
            folder.access, folder.source, start=start, end=folder.end, limit=DOCUMENTS_PER_BATCH
        )

    async def _list_folders(self, path: str) -> Sequence[Folder]:
        """Return the folders at a path: one, or all sources of a collection or of all. Raises NotFound."""
        parts = parse_path(path)
        if parts.source:
            return [await self._require_folder(path, parts)]
        accesses = (
            [await self._collection_access(path, parts)]
            if parts.collection
            else await self._authorized.collections()
        )
        folders: list[Folder] = []
        for access in accesses:
            sources = await self._authorized.sources(access)
            folders += [Folder(access, source, name) for source, name in with_path_names(sources)]
        return sorted(folders, key=lambda folder: (folder.access.collection.name, folder.name))

    async def _documents_below(
        self, folders: Sequence[Folder], after: PathParts | None = None
    ) -> AsyncIterator[tuple[Folder, Sequence[Document]]]:
        """Yield all documents at and below folders in batches, by path."""
        for folder in folders:
            key = None
            if after is not None:
                address = (folder.access.collection.name, folder.name)
                after_address = (after.collection, after.source)
                if address < after_address:
                    continue
                key = after.key if address == after_address else None
            async for documents in self._documents_in_folder(folder, key):
                yield folder, documents

    async def _documents_in_folder(
        self, folder: Folder, after: str | None
    ) -> AsyncIterator[Sequence[Document]]:
        start = folder.prefix if after is None else max(folder.prefix, next_key(after))
        if folder.key and after is None and (file := await self._find_file(folder)) is not None:
            yield [file]
        while True:
            documents = await self._list_by_key(folder, start)
            yield [document for document in documents if document.key != folder.key]
            if len(documents) < DOCUMENTS_PER_BATCH:
                return
            start = next_key(documents[-1].key)

    async def _documents_with_words(
        self, grep: Grep, folders: Sequence[Folder]
    ) -> AsyncIterator[tuple[Folder, Sequence[Document]]]:
        """Yield the documents in which keyword search finds the words of a pattern, best first."""
        words = _WORD.findall(grep.pattern if grep.literal else _ESCAPE.sub(" ", grep.pattern))
        folders_by_source = {str(folder.source.id): folder for folder in folders}
        collections = {str(folder.source.collection) for folder in folders}
        if not words or not folders:
            return
        here = Eq("source", str(folders[0].source.id)) if len(folders) == 1 else EVERYTHING
        retrieval = await self._search.retrieve(
            " ".join(words),
            collection=collections.pop() if len(collections) == 1 else EVERYWHERE,
            filter=And((grep.filter, here)),
            retrievers=("keyword",),
            limit=MAX_LIKELY_HITS,
            rerank=False,
        )
        for document in {hit.document.id: hit.document for hit in retrieval.hits}.values():
            folder = folders_by_source.get(document.source)
            if folder is not None and folder.holds(document):
                yield folder, [document]


def _first_page(entries: Sequence[FileEntry], limit: int) -> FilePage:
    page = tuple(entries[:limit])
    return FilePage(page, page[-1].path if len(entries) > limit else None)
