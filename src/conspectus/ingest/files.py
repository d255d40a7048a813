"""Files, folders and answers of web servers into a collection: what is new, changed and gone."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from email.message import Message
from pathlib import Path, PurePath
from urllib.parse import unquote

from conspectus.deferred import dataclass
from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    InvalidInput,
    NotFound,
    UnreadableFile,
    UnsupportedContent,
)
from conspectus.ingest.batch_writes import BATCH_CHARACTERS, BATCH_DOCUMENTS
from conspectus.ingest.captions import HAS_CAPTIONS, recordings_with_captions
from conspectus.ingest.document_fields import message_id
from conspectus.model.captions import CaptionImport
from conspectus.model.files import expand_home
from conspectus.model.filter import And, Between, Eq, Filter
from conspectus.model.filter_operands import folders_of
from conspectus.model.ids import DocumentId
from conspectus.model.jobs import Upload
from conspectus.model.quarantine import Quarantined, as_given, quarantine_notice
from conspectus.model.records import Document, NewDocument, Source, Written
from conspectus.model.reports import READING, FileFailure, FilesReport
from conspectus.ports import Files, FoundFile, ParsedFile, Progress
from conspectus.ports.web import Fetched
from conspectus.text.urls import parse_url

AFTER_SLASH = "0"
"""Follows the characters that the keys of records and members have after the name of their file."""

Write = Callable[[Sequence[NewDocument], Source], Awaitable[Sequence[Written]]]
"""Writes documents into a source."""
Stored = Callable[[Filter], AsyncIterator[Document | Quarantined]]
"""Yields the stored documents that match."""
Delete = Callable[[Sequence[DocumentId]], Awaitable[object]]


@dataclass(slots=True)
class Root:
    """One path that the user named: its source, and the files found below it.

    `containers` are the archives, mailboxes and messages among them, which have files inside.
    """

    path: Path
    source: Source
    prefix: str
    names: set[str] = field(default_factory=set)
    parsed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)

    def has_lost(self, name: str) -> bool:
        """Return whether a file below this folder or archive is gone, and not only unreadable."""
        if not name.startswith(self.prefix) or name in self.names:
            return False
        if not self.path.is_dir() and not any(name.startswith(f"{file}/") for file in self.parsed):
            return False
        return not any(name == folder or name.startswith(f"{folder}/") for folder in self.failed)


@dataclass(slots=True)
class Intake:
    """One run over files, with what it has counted so far."""

    files: Files
    write: Write
    progress: Progress | None
    report: FilesReport = field(default_factory=FilesReport)
    stream_files: list[Upload] = field(default_factory=list)
    named_files: set[str] = field(default_factory=set)
    buffer: list[NewDocument] = field(default_factory=list)
    buffered: int = 0

    async def take(self, root: Root, file: FoundFile) -> None:
        """Parse one file and buffer its documents; errors and skipped files do not end the run."""
        name = root.prefix + file.name
        root.names.add(name)
        try:
            parsed = await asyncio.to_thread(self.files.parse, file)
        except ConspectusError as fault:
            self._miss(root, name, fault, path=file.path, is_named=file.is_named)
            return
        if parsed.has_captions:
            self.stream_files.append(Upload(name, file.path))
            self.named_files |= {name} if file.is_named else set()
        await self._keep(root, name, parsed)
        root.containers |= {name} if parsed.may_have_members else set()
        for member in parsed.members:
            member_name = root.prefix + member.name
            root.names.add(member_name)
            if member.subtitles is not None:
                root.parsed.add(member_name)
                self.stream_files.append(Upload(member_name, member.subtitles))
            elif member.file is not None:
                await self._keep(root, member_name, member.file)
            elif member.fault is not None:
                inside = member.name.removeprefix(f"{file.name}/")
                self._miss(root, member_name, member.fault, path=file.path / inside)

    async def _keep(self, root: Root, name: str, parsed: ParsedFile) -> None:
        if parsed.notice is not None:
            self._notice(name, parsed.notice)
        root.parsed.add(name)
        for document in parsed.documents:
            await self._add(root, name, document)

    def _miss(
        self, root: Root, name: str, fault: ConspectusError, *, path: Path, is_named: bool = False
    ) -> None:
        """Count a file that was not read: as skipped, if its format is not supported and nobody named it."""
        root.failed.add(name)
        if isinstance(fault, UnsupportedContent) and not is_named:
            self._skip(name, fault.reason)
        else:
            self.fail(str(path), fault)

    def take_stream_files(self) -> list[Upload]:
        """Return the files that become streams, and skip recordings with their captions beside them."""
        captioned = recordings_with_captions(upload.name for upload in self.stream_files)
        for name in sorted(captioned):
            self._skip(name, HAS_CAPTIONS)
        return [upload for upload in self.stream_files if upload.name not in captioned]

    def tell(self, done: int, total: int) -> None:
        """Report progress to the caller, if it asked for that."""
        if self.progress is not None:
            self.progress(READING, done, total)

    async def flush(self, root: Root) -> None:
        """Write what is buffered as one batch."""
        waiting, self.buffer, self.buffered = self.buffer, [], 0
        try:
            await self._write(waiting, root)
        except (InvalidInput, NotFound) as batch_fault:
            _raise_if_not_of_document(batch_fault)
            for document in waiting:
                try:
                    await self._write([document], root)
                except (InvalidInput, NotFound) as fault:
                    _raise_if_not_of_document(fault)
                    self.fail(f"{document.metadata['path']}: {document.key}", fault)

    def count_captions(self, imported: CaptionImport) -> None:
        """Add the streams that were made of subtitles and recordings to the report."""
        for name, reason in imported.skipped_files.items():
            if name in self.named_files:
                self.fail(name, UnsupportedContent(name, reason))
            else:
                self._skip(name, reason)
        report = self.report
        failures = (FileFailure(name, UnreadableFile.code, reason) for name, reason in imported.failures)
        self.report = replace(
            report,
            added=report.added + imported.added,
            replaced=report.replaced + imported.replaced,
            unchanged=report.unchanged + imported.unchanged,
            chunks=report.chunks + imported.chunks,
            failures=(*report.failures, *failures),
            notices={**report.notices, **_split_names(imported.notices)},
            streams=imported.streams,
        )

    def fail(self, name: str, fault: ConspectusError) -> None:
        """Add a failure to the report."""
        failure = FileFailure(name=name, code=fault.code, reason=str(fault))
        self.report = replace(self.report, failures=(*self.report.failures, failure))

    def count(self, outcome: str, chunks: int = 0) -> None:
        """Add one document to the report."""
        number = getattr(self.report, outcome) + 1
        self.report = replace(self.report, chunks=self.report.chunks + chunks, **{outcome: number})

    async def _write(self, documents: Sequence[NewDocument], root: Root) -> None:
        written = await self.write(documents, root.source) if documents else ()
        for document, outcome in zip(documents, written, strict=True):
            self.count(outcome.outcome, outcome.chunks)
            if outcome.quarantined is not None:
                self._notice(str(document.metadata["path"]), quarantine_notice(outcome.quarantined))

    def _skip(self, name: str, reason: str) -> None:
        self.count("skipped")
        self.report = replace(self.report, skipped_files={**self.report.skipped_files, name: reason})

    def _notice(self, name: str, notice: str) -> None:
        self.report = replace(self.report, notices={**self.report.notices, name: notice})

    async def _add(self, root: Root, name: str, document: NewDocument) -> None:
        key = root.prefix + (document.key or name.removeprefix(root.prefix))
        root.keys.add(key)
        thread = None if document.thread is None else root.prefix + document.thread
        parent = None
        if document.parent is not None:
            parent = message_id(root.source.id, root.prefix + document.parent)
        metadata = {**document.metadata, "path": name}
        self.buffer.append(
            replace(document, key=key, parent=parent, thread=thread, metadata=metadata, origin="import")
        )
        self.buffered += len(document.text)
        if len(self.buffer) >= BATCH_DOCUMENTS or self.buffered >= BATCH_CHARACTERS:
            await self.flush(root)


def _raise_if_not_of_document(fault: ConspectusError) -> None:
    """Raise a fault that concerns more than one document: all but the loss of the message it belongs to."""
    if isinstance(fault, NotFound) and fault.kind != "parent document":
        raise fault


def resolve_destination(path: str | Path, source: str | None) -> tuple[Path, str, str]:
    """Return the absolute path, the source that it is added to, and the prefix of its keys.

    Without a source, the folder is the source. In a source, the name of the folder keeps keys apart.
    """
    full_path = expand_home(path).absolute()
    folder = full_path if full_path.is_dir() else full_path.parent
    if source is None:
        return full_path, folder.as_posix(), ""
    return full_path, source, f"{folder.name}/" if full_path.is_dir() else ""


async def add_files_below(
    intake: Intake,
    roots: Sequence[Root],
    stored: Stored,
    delete: Delete,
    *,
    prune: bool,
) -> FilesReport:
    """Ingest every file below the roots, then delete what their files no longer hold.

    Archives, mailboxes and messages hold the files inside them. The documents of files that are gone are
    counted, and with `prune` they are deleted. A path that does not exist raises UnreadableFile before
    anything is written.
    """
    files = [(root, file) for root in roots for file in intake.files.discover([root.path])]
    for done, (root, file) in enumerate(files):
        intake.tell(done, len(files))
        await intake.take(root, file)
        if done + 1 == len(files) or files[done + 1][0].source != root.source:
            await intake.flush(root)
    intake.tell(len(files), len(files))
    for source in dict.fromkeys(root.source.id for root in roots):
        outdated = await _find_outdated(stored, [root for root in roots if root.source.id == source])
        deleted = list(outdated.of_read_files)
        if prune:
            deleted += outdated.of_missing_files
        else:
            missing = intake.report.missing + len(outdated.of_missing_files)
            intake.report = replace(intake.report, missing=missing)
        for start in range(0, len(deleted), BATCH_DOCUMENTS):
            await delete(deleted[start : start + BATCH_DOCUMENTS])
        for _ in deleted:
            intake.count("pruned")
    return intake.report


class OutdatedDocuments:
    """Stored documents of one source that their files no longer contain, or whose files are gone.

    `of_read_files` includes documents of files that are gone from an archive or a message that was read.
    """

    def __init__(self, roots: Sequence[Root]) -> None:
        self.of_read_files: dict[DocumentId, None] = {}
        self.of_missing_files: dict[DocumentId, None] = {}
        self._roots = roots
        self._containers = {name for root in roots for name in root.containers}
        self._keys: dict[str, set[str]] = {}
        for root in roots:
            for name in root.parsed:
                self._keys.setdefault(name, set()).update(root.keys)

    def check(self, id: DocumentId, key: str, path: str) -> None:
        """Take a stored document if it is outdated. Its file has the name `path`, unless that is masked."""
        name = _file_of(path, key, self._roots)
        if name in self._keys:
            if key not in self._keys[name]:
                self.of_read_files[id] = None
        elif any(root.has_lost(name) for root in self._roots):
            is_inside = not self._containers.isdisjoint(folders_of(name) or ())
            documents = self.of_read_files if is_inside else self.of_missing_files
            documents[id] = None


async def _find_outdated(stored: Stored, roots: Sequence[Root]) -> OutdatedDocuments:
    outdated = OutdatedDocuments(roots)
    for where in dict.fromkeys(_filter_below(root) for root in roots):
        async for document in stored(where):
            original = as_given(document) if isinstance(document, Document) else document
            path = original.metadata.get("path")
            if isinstance(path, str):
                outdated.check(document.id, document.key, path)
    return outdated


def _filter_below(root: Root) -> Filter:
    """Return the filter of a root's documents: the key of each is the name of its file, or begins with it."""
    name = root.prefix.removesuffix("/") if root.path.is_dir() else root.path.name
    in_source = Eq("source", root.source.id)
    return And((in_source, Between("key", name, f"{name}{AFTER_SLASH}"))) if name else in_source


def _file_of(path: str, key: str, roots: Sequence[Root]) -> str:
    """Return the name of the file of a document: its stored path, or as its key has it if that is masked.

    A path that looks like an address or a number is masked as all metadata are; keys are not.
    """
    names = (path, key, key.rpartition("#")[0])
    return next((name for name in names if any(name in root.names for root in roots)), key)


def _split_names(notices: Iterable[str]) -> dict[str, str]:
    """Return notices by the name of the file with which each begins."""
    return {name: notice for name, _, notice in (notice.partition(": ") for notice in notices)}


PLAIN = "text/plain"
PASSING_STATUSES = frozenset({408, 429})
NEVER_TEXT = frozenset({"image", "audio", "video", "font", "model"})
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "application/pdf": (".pdf",), "application/x-pdf": (".pdf",), "application/epub+zip": (".epub",),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (".docx",),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": (".pptx",),
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": (".xlsx",),
    "application/vnd.oasis.opendocument.text": (".odt",),
    "application/vnd.oasis.opendocument.presentation": (".odp",),
    "application/vnd.oasis.opendocument.spreadsheet": (".ods",),
    "message/rfc822": (".eml",), "application/vnd.ms-outlook": (".msg",), "application/mbox": (".mbox",),
    "application/zip": (".zip",), "application/x-zip-compressed": (".zip",),
    "application/x-tar": (".tar",), "application/gzip": (".gz", ".tgz"),
    "application/x-gzip": (".gz", ".tgz"),
}  # fmt: skip
KINDS_OF_TEXT: Mapping[tuple[str, ...], str] = {
    (".html", ".htm", ".xhtml"): "text/html application/xhtml+xml",
    (".md", ".markdown", ".mdx"): "text/markdown text/x-markdown",
    (".rst", ".rest"): "text/x-rst text/prs.fallenstein.rst",
    (".json", ".ipynb"): "application/json text/json text/x-json",
    (".ipynb",): "application/x-ipynb+json",
    (
        ".jsonl",
        ".ndjson",
    ): "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines",
    (".xml", ".rss", ".atom"): "application/xml text/xml application/rss+xml application/atom+xml",
    (".yaml", ".yml"): "application/yaml application/x-yaml text/yaml text/x-yaml",
    (".toml",): "application/toml text/x-toml",
    (".js", ".mjs", ".jsx"): "application/javascript application/x-javascript application/ecmascript "
    "text/javascript text/ecmascript",
    (".ts", ".tsx"): "application/typescript application/x-typescript",
    (".css",): "text/css",
    (".csv",): "text/csv application/csv",
    (".tsv",): "text/tab-separated-values",
    (".vtt",): "text/vtt",
    (".srt",): "application/x-subrip",
    (".sql",): "application/sql application/x-sql text/x-sql",
    (".graphql",): "application/graphql",
    (".sh", ".bash", ".zsh"): "application/x-sh application/x-shellscript text/x-sh text/x-shellscript",
    (".py",): "application/x-python text/x-python application/x-python-code",
    (".php",): "application/x-httpd-php application/x-php",
    (".rb",): "application/x-ruby",
    (".pl",): "application/x-perl",
    (".tex",): "application/x-tex application/x-latex",
}
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    **{kind: suffixes for suffixes, kinds in KINDS_OF_TEXT.items() for kind in kinds.split()},
    **DOCUMENTS,
}
FAMILIES: Mapping[str, str] = {"+json": ".json", "+xml": ".xml", "+yaml": ".yaml"}
DOCUMENT_SUFFIXES = frozenset(suffix for suffixes in DOCUMENTS.values() for suffix in suffixes)
PAGE_SUFFIXES = DOCUMENT_SUFFIXES | {
    ".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp", ".md", ".markdown", ".rst", ".txt",
}  # fmt: skip
SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
BINARY = bytes({*range(32)} - {8, 9, 10, 12, 13, 14, 15, 27})
WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
SAMPLE_BYTES = 65_536
MAX_NAME_LENGTH = 150


def require_text_answer(fetched: Fetched) -> Fetched:
    """Return the answer if it has text. Its type is text/plain if the server gave none.

    Raises FetchFailed for any status but 2xx, as passing for 408, 429 and 5xx, and UnsupportedContent for
    what is of no kind that holds text, or says it is text and is not.
    """
    address = parse_url(fetched.url).redacted
    status = fetched.status
    if not 200 <= status < 300:
        passing = status in PASSING_STATUSES or status >= 500
        raise FetchFailed(address, f"the server answered {status}", status=status, passing=passing)
    kind = fetched.content_type if "/" in fetched.content_type else PLAIN
    if not _is_text_type(kind):
        raise UnsupportedContent(address, f"{kind[:80]} holds no text that can be read")
    if kind not in DOCUMENTS and _looks_binary(fetched.body[:SAMPLE_BYTES], fetched.charset or ""):
        raise UnsupportedContent(address, f"has the type {kind[:80]}, but is binary data")
    return replace(fetched, content_type=kind)


def source_name(url: str) -> str:
    """The domain that a page belongs to, with its port where that is not the usual one."""
    return parse_url(url).authority


def page_key(url: str) -> str:
    """The page's address in its normal form: two spellings of one address have the same key."""
    return str(parse_url(url))


def file_name(fetched: Fetched) -> str:
    """A name for the content whose end says what it is: as the server or the address has it, if that fits."""
    message = Message()
    message["Content-Disposition"] = CONTROL.sub("", fetched.headers.get("content-disposition", ""))
    path_name = message.get_filename("")
    name = _plain_name(path_name) or _plain_name(_last_part(fetched.url))
    kind = fetched.content_type
    family = next((suffix for end, suffix in FAMILIES.items() if kind.endswith(end)), None)
    fitting = SUFFIXES.get(kind) or ((family,) if family else ())
    suffix = _suffix(name)
    if suffix in fitting or (not fitting and suffix and suffix not in DOCUMENT_SUFFIXES):
        return name
    return (name or parse_url(fetched.url).host) + (fitting[0] if fitting else ".txt")


def title_of(url: str) -> str:
    """A title for a page that has none: the last part of its path in words, or its host."""
    name = _plain_name(_last_part(url))
    if _suffix(name) in PAGE_SUFFIXES:
        name = PurePath(name).stem
    words = " ".join(name.replace("_", " ").replace("-", " ").split())
    return words or parse_url(url).host


def _is_text_type(kind: str) -> bool:
    family = kind.partition("/")[0]
    if family in NEVER_TEXT:
        return False
    return family == "text" or kind in SUFFIXES or kind.endswith(tuple(FAMILIES))


def _looks_binary(sample: bytes, charset: str) -> bool:
    """Whether one byte in twenty is a control character that no text has, UTF-16 and UTF-32 left aside."""
    if charset.startswith(("utf-16", "utf-32", "utf16", "utf32", "ucs")) or sample.startswith(WIDE_MARKS):
        return False
    zeros = sorted((sample[::2].count(0), sample[1::2].count(0)))
    if zeros[1] > 0.2 * len(sample) and zeros[0] < 0.1 * zeros[1]:
        return False
    return len(sample) - len(sample.translate(None, BINARY)) > 0.05 * len(sample)


def _last_part(url: str) -> str:
    """The last part of the path that is not empty."""
    return unquote(parse_url(url).path.rstrip("/").rpartition("/")[2])


def _plain_name(path_name: str) -> str:
    """A file's name without folders and control characters, cut in the middle where it is too long."""
    name = CONTROL.sub("", path_name).replace("\\", "/").rpartition("/")[2].strip(" .")
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return name[: MAX_NAME_LENGTH - 10] + name[-10:]


def _suffix(name: str) -> str:
    suffix = PurePath(name).suffix
    return suffix.lower() if SUFFIX.fullmatch(suffix) else ""
