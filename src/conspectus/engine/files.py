"""The files service: documents as files, with paths, lines and patterns."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath
from time import monotonic
from typing import Annotated, Final, Unpack

from conspectus.access.reader import CollectionAccess
from conspectus.deferred import dataclass
from conspectus.engine.context import EngineContext, Service
from conspectus.engine.search import SearchService
from conspectus.errors import InvalidInput, NotFound
from conspectus.ingest.document_fields import message_id
from conspectus.model.annotations import Example, Range
from conspectus.model.checks import require_settings
from conspectus.model.files import (
    FileEntry,
    FileGlob,
    FileLine,
    FileMatches,
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
from conspectus.model.filter import (
    EVERYTHING,
    And,
    DocumentFilter,
    Eq,
    Filter,
    document_row,
    matches,
    require_document_fields,
)
from conspectus.model.ids import DocumentId
from conspectus.model.pages import portions
from conspectus.model.parameters import Cursor, PageLimit
from conspectus.model.query import EVERYWHERE
from conspectus.model.records import Document, Source
from conspectus.ports import CountTokens
from conspectus.text.graphemes import last_border
from conspectus.text.lines import LinePattern, MatchedLine, find_shown_part

MAX_GLOB_CHARACTERS: Final = 200
DOCUMENTS_PER_BATCH: Final = 200
CHARACTERS_PER_BATCH: Final = 2_000_000
MAX_LIKELY_HITS: Final = 200
"""Number of passages in whose documents a pattern is searched for first."""
MIN_TOKENS: Final = 16
"""The smallest budget of a text: a character has fewer tokens."""
MAX_TOKENS: Final = 1_000_000
MAX_TOKEN_CHARACTERS: Final = 16
"""At most this number of characters for each token is examined."""
_WORD = re.compile(r"\w{3,}")
"""The words of a pattern that keyword search can find."""
_ESCAPE = re.compile(r"\\.")
"""An escape of a regular expression, such as `\\d`, whose letter is no part of a word."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A source, or the documents of it at and below the key that a path names."""

    access: CollectionAccess
    source: Source
    name: str
    """The name of the source in paths."""
    key: str = ""

    @property
    def prefix(self) -> str:
        """The prefix of the keys below the path."""
        return self.key if not self.key or self.key.endswith("/") else f"{self.key}/"

    @property
    def end(self) -> str | None:
        """The first possible key after those below the path; None for the whole source."""
        return _next_key(self.prefix) if self.prefix else None

    def holds(self, document: Document) -> bool:
        """Return whether a document is at or below the path."""
        if document.source != self.source.id:
            return False
        return document.key == self.key or document.key.startswith(self.prefix)

    def path(self, key: str) -> str:
        """Return the path of a key."""
        return path_of(self.access.collection.name, self.name, key)

    def entry(self, document: Document) -> FileEntry:
        """Return a document as a file."""
        return FileEntry(
            self.path(document.key),
            document=document.id,
            title=document.title,
            kind=document.kind,
            characters=document.characters,
            updated=document.updated,
            trust=document.trust,
        )


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
        begin, end = _character_range(text, first_line, last_line, start)
        count = self._parts.counter("o200k_base")
        cut, tokens = await self._core.long_work.run_counting(
            partial(_cut_to_budget, text[begin:end], max_tokens),
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
            lines=_count_lines(text),
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
        selection = FileSelection(_valid_glob(name), filter)
        begin = None if after is None else parse_path(after)
        entries: list[FileEntry] = []
        async for folder, documents in self._documents_below(await self._list_folders(path), begin):
            entries += [folder.entry(document) for document in documents if selection.has(document)]
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
        if source is not None and not _is_folder(source):
            return Folder(access, source, source.name, parts.key)
        for folder_source, name in _with_path_names(await self._authorized.sources(access)):
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
            start = max(start, _next_key(after.key))
        elif folder.key and (file := await self._find_file(folder)) is not None:
            entries[file.key] = folder.entry(file)
        while len(entries) <= limit:
            documents = await self._list_by_key(folder, start)
            for document in documents:
                name, slash, _ = document.key[len(folder.prefix) :].partition("/")
                key = folder.prefix + name + slash
                is_file = key == document.key
                entries.setdefault(
                    key, folder.entry(document) if is_file else FileEntry(folder.path(key), folder=True)
                )
                start = _next_key(key)
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
            folders += [Folder(access, source, name) for source, name in _with_path_names(sources)]
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
        start = folder.prefix if after is None else max(folder.prefix, _next_key(after))
        if folder.key and after is None and (file := await self._find_file(folder)) is not None:
            yield [file]
        while True:
            documents = await self._list_by_key(folder, start)
            yield [document for document in documents if document.key != folder.key]
            if len(documents) < DOCUMENTS_PER_BATCH:
                return
            start = _next_key(documents[-1].key)

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


@dataclass(frozen=True, slots=True)
class FileSelection:
    """A selection of files by a glob of their name and a filter."""

    name: str | None
    filter: Filter

    def __post_init__(self) -> None:
        """Check that the filter can match documents."""
        require_document_fields(self.filter)

    def has(self, document: Document) -> bool:
        """Return whether a document is in the selection."""
        return self._fits(document.key) and matches(self.filter, document_row(document))

    def _fits(self, key: str) -> bool:
        if self.name is None:
            return True
        return fnmatchcase(key if "/" in self.name else key.rpartition("/")[2], self.name)


class Scan:
    """A search of texts for a pattern, which stops at its limit of lines or of seconds."""

    def __init__(self, grep: Grep) -> None:
        self._grep = grep
        self._lines = LinePattern(grep.pattern, literal=grep.literal, ignore_case=grep.ignore_case)
        self._selection = FileSelection(_valid_glob(grep.name), grep.filter)
        self._end = monotonic() + grep.max_seconds
        self._seen: set[DocumentId] = set()
        self._files: list[FileMatches] = []
        self._matches = 0
        self._searched = 0
        self._notice = ""

    @property
    def stopped(self) -> bool:
        """Whether a limit was reached."""
        return bool(self._notice)

    def select_unseen(self, documents: Sequence[Document]) -> Sequence[Document]:
        """Return the selected documents that were not searched yet."""
        unseen = [
            document
            for document in documents
            if document.id not in self._seen and self._selection.has(document)
        ]
        self._seen.update(document.id for document in unseen)
        return unseen

    def run(self, files: Sequence[tuple[str, Document]], texts: Mapping[DocumentId, str]) -> None:
        """Search the texts of documents, given with their paths."""
        for path, document in files:
            if self.stopped:
                return
            self._searched += 1
            text = texts.get(document.id, "")
            matched_lines = list(self._match_lines(text))
            if matched_lines:
                lines = tuple(_with_context(text, matched_lines, self._grep.context))
                self._files.append(FileMatches(path, document.id, document.title, lines, document.trust))

    def _match_lines(self, text: str) -> Iterator[MatchedLine]:
        for line in self._lines.matches(text):
            if line is None:
                if monotonic() >= self._end:
                    self._notice = f"the search ended after {self._grep.max_seconds:g} seconds"
                    return
            elif self._matches == self._grep.limit:
                self._notice = f"the search ended after {self._matches} lines; use a narrower pattern or path"
                return
            else:
                self._matches += 1
                yield line

    @property
    def characters(self) -> int:
        """Number of characters of the matching lines."""
        return sum(len(line.text) for file in self._files for line in file.lines)

    def result(self, count: CountTokens) -> GrepResult:
        """Return the matching lines that fit into the token budget."""
        notices = (self._notice,) if self._notice else ()
        full = GrepResult(tuple(self._files), self._matches, self._searched, not notices, notices)
        limit = self._grep.max_tokens
        if limit is None or _fits_budget(full.text, limit, count):
            return replace(full, tokens=count(full.text))
        # The largest number of lines that fit, by bisection.
        low, high = 0, sum(len(file.lines) for file in self._files)
        while low < high:
            middle = (low + high + 1) // 2
            fits = _fits_budget(_with_first_lines(full, middle).text, limit, count)
            low, high = (middle, high) if fits else (low, middle - 1)
        cut = _with_first_lines(full, low)
        shown = sum(line.matched for file in cut.files for line in file.lines)
        budget_notice = f"{full.matches - shown} of {full.matches} lines are left out: raise max_tokens"
        all_notices = (*notices, budget_notice)
        return replace(cut, complete=False, notices=all_notices, tokens=count(cut.text))


def _with_first_lines(result: GrepResult, number: int) -> GrepResult:
    """Return a result with only its first lines."""
    files: list[FileMatches] = []
    for file in result.files:
        if number <= 0:
            break
        files.append(replace(file, lines=file.lines[:number]))
        number -= len(file.lines)
    return replace(result, files=tuple(files))


def _with_context(text: str, matched_lines: Sequence[MatchedLine], context: int) -> Iterator[FileLine]:
    """Yield matching lines with the lines around them, each once."""
    last, matching = 0, {match.number for match in matched_lines}
    for match in matched_lines:
        for line in (*_lines_beside(text, match, -context), match, *_lines_beside(text, match, context)):
            if line.number > last and (line is match or line.number not in matching):
                start, end = find_shown_part(line)
                yield FileLine(line.number, text[start:end], start, end, line is match)
                last = line.number


def _lines_beside(text: str, line: MatchedLine, context: int) -> Sequence[MatchedLine]:
    """Return lines before a line, or after it, in order."""
    neighbors: list[MatchedLine] = []
    number, start, end = line.number, line.start, line.end
    for _ in range(abs(context)):
        if context < 0 and start > 0:
            number, start, end = number - 1, text.rfind("\n", 0, start - 1) + 1, start - 1
        elif context > 0 and end + 1 < len(text):
            number, start, end = number + 1, end + 1, text.find("\n", end + 1)
            end = len(text) if end < 0 else end
        else:
            break
        neighbors.append(MatchedLine(number, start, end, start))
    return neighbors[::-1] if context < 0 else neighbors


def _is_folder(source: Source) -> bool:
    """Return whether a source is named by a folder of a disk, as `add_files` names it."""
    return PurePosixPath(source.name).is_absolute() or PureWindowsPath(source.name).is_absolute()


def _with_path_names(sources: Sequence[Source]) -> Sequence[tuple[Source, str]]:
    """Return sources with their names in paths.

    A folder of a disk has the name of its last part, unless another source has that name too.
    """
    short = {source.id: PureWindowsPath(source.name).name for source in sources if _is_folder(source)}
    used = Counter([*short.values(), *(source.name for source in sources)])
    names = {id: name for id, name in short.items() if name and used[name] == 1}
    return [(source, names.get(source.id, source.name)) for source in sources]


def _next_key(key: str) -> str:
    """Return the first possible key after a key, or after all keys in a folder."""
    if key.endswith("/"):
        # "0" is the character after "/".
        return f"{key[:-1]}0"
    return f"{key}\x01"


def _first_page(entries: Sequence[FileEntry], limit: int) -> FilePage:
    page = tuple(entries[:limit])
    return FilePage(page, page[-1].path if len(entries) > limit else None)


def _valid_glob(name: str | None) -> str | None:
    if name is not None and not 0 < len(name) <= MAX_GLOB_CHARACTERS:
        raise InvalidInput("name", f"must have 1 to {MAX_GLOB_CHARACTERS} characters")
    return name


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _character_range(text: str, first_line: int, last_line: int | None, start: int) -> tuple[int, int]:
    """Return the characters of a range of lines, from `start` on. Raises InvalidInput."""
    if first_line < 1 or (last_line is not None and last_line < first_line):
        raise InvalidInput("first_line" if first_line < 1 else "last_line", "lines count from 1, in order")
    if not 0 <= start <= len(text):
        raise InvalidInput("start", f"the file has {len(text)} characters")
    borders = [0, *(newline.end() for newline in re.finditer("\n", text)), len(text)]
    begin = max(start, borders[min(first_line, len(borders)) - 1])
    end = len(text) if last_line is None else borders[min(last_line, len(borders) - 1)]
    return begin, max(begin, end)


def _fits_budget(text: str, limit: int, count: CountTokens) -> bool:
    return len(text) <= limit * MAX_TOKEN_CHARACTERS and count(text) <= limit


def _cut_to_budget(text: str, limit: int | None, count: CountTokens) -> tuple[str, int]:
    """Return the beginning of a text that fits the budget, whole lines if possible, and its tokens."""
    if limit is None or _fits_budget(text, limit, count):
        return text, count(text)
    low, high = 0, min(len(text), max(0, limit) * MAX_TOKEN_CHARACTERS)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fits_budget(text[:middle], limit, count) else (low, middle - 1)
    end = text.rfind("\n", 0, low) + 1 or last_border(text, low)
    while end and not _fits_budget(text[:end], limit, count):
        end = last_border(text, end - 1)
    return text[:end], count(text[:end])
