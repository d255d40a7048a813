"""What files would become: their documents and chunks, read and split as they would be, and not stored."""

from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import ConspectusError, UnsupportedContent
from conspectus.ingest.document_fields import Preparation
from conspectus.ingest.files import resolve_destination
from conspectus.ingest.prepare import describe, prepare
from conspectus.model.jobs import Upload
from conspectus.model.quarantine import as_given, quarantine_notice, quarantine_pattern
from conspectus.model.records import NewDocument
from conspectus.model.reports import ChunkPreview, DocumentPreview, FileFailure, FilesPreview
from conspectus.ports import Files, FoundFile, ParsedFile

STREAM_NOTICE = "becomes a stream of captions, which are not listed here"


def preview_files(
    files: Files, paths: Iterable[str | Path], by: Preparation, *, source: str | None = None
) -> FilesPreview:
    """Return what adding files and folders would store.

    Raises UnreadableFile for a path that does not exist.
    """
    preview = _Preview(by)
    for path in paths:
        full_path, _, prefix = resolve_destination(path, source)
        for file in files.discover([full_path]):
            preview.read(files, file, prefix)
    return preview.result


def preview_uploads(
    files: Files, uploads: Iterable[Upload], by: Preparation, *, max_chunks: int
) -> FilesPreview:
    """Return what adding uploaded files would store, with at most so many chunks."""
    preview = _Preview(by, max_chunks)
    for upload in uploads:
        preview.read_upload(files, upload)
    return preview.result


@dataclass(slots=True)
class _Preview:
    """A preview of files, with what was read so far; without `chunks_left` it has all chunks."""

    by: Preparation
    chunks_left: int | None = None
    documents: list[DocumentPreview] = field(default_factory=list)
    failures: list[FileFailure] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def result(self) -> FilesPreview:
        """The preview of all files read so far."""
        return FilesPreview(tuple(self.documents), tuple(self.failures), self.notices, self.skipped)

    def read(self, files: Files, file: FoundFile, prefix: str) -> None:
        """Add a file, and those inside it, to the preview."""
        try:
            parsed = files.parse(file)
        except ConspectusError as fault:
            self._miss(prefix + file.name, fault, is_named=file.is_named)
            return
        self._keep_all(prefix, file.name, parsed)

    def read_upload(self, files: Files, upload: Upload) -> None:
        """Add an uploaded file, and those inside it, to the preview."""
        try:
            if isinstance(upload.data, Path):
                parsed = files.parse(FoundFile(upload.data, upload.name, 0))
            else:
                parsed = files.parse_bytes(upload.data, upload.name)
        except ConspectusError as fault:
            self._miss(upload.name, fault, is_named=True)
            return
        self._keep_all("", upload.name, parsed)

    def _keep_all(self, prefix: str, name: str, parsed: ParsedFile) -> None:
        """Keep what was read of a file, and of those inside it."""
        if parsed.has_captions:
            self.notices[prefix + name] = STREAM_NOTICE
            return
        self._keep(prefix, name, parsed)
        for member in parsed.members:
            if member.subtitles is not None:
                self.notices[prefix + member.name] = STREAM_NOTICE
            elif member.file is not None:
                self._keep(prefix, member.name, member.file)
            elif member.fault is not None:
                self._miss(prefix + member.name, member.fault)

    def _keep(self, prefix: str, name: str, parsed: ParsedFile) -> None:
        path = prefix + name
        if parsed.notice is not None:
            self.notices[path] = parsed.notice
        for new in parsed.documents:
            key, metadata = prefix + (new.key or name), {**new.metadata, "path": path}
            try:
                document = self._preview(replace(new, key=key, metadata=metadata, origin="import"))
            except ConspectusError as fault:
                self._miss(f"{path}: {new.key}", fault, is_named=True)
                continue
            self.documents.append(document)

    def _preview(self, new: NewDocument) -> DocumentPreview:
        screen = self.by.screen
        screened = new if screen is None else screen.screen_document(new)
        document, vector = describe(screened, self.by)
        pattern = quarantine_pattern(document)
        prepared = prepare(screened, document, self.by, vector=vector).chunks
        first_chunks = prepared[: self.chunks_left]
        if self.chunks_left is not None:
            self.chunks_left -= len(first_chunks)
        chunks = tuple(
            ChunkPreview(
                chunk.position,
                chunk.start,
                chunk.end,
                chunk.tokens,
                chunk.page,
                chunk.heading,
                chunk.text,
                chunk.table_header,
            )
            for chunk in first_chunks
        )
        notice = None if pattern is None else quarantine_notice(pattern)
        return DocumentPreview(
            document.key,
            document.title,
            as_given(document).kind,
            len(screened.text),
            chunks,
            notice,
            document.read_by,
            len(prepared),
            sum(chunk.tokens for chunk in prepared),
        )

    def _miss(self, name: str, fault: ConspectusError, *, is_named: bool = False) -> None:
        if isinstance(fault, UnsupportedContent) and not is_named:
            self.skipped[name] = fault.reason
        else:
            self.failures.append(FileFailure(name=name, code=fault.code, reason=str(fault)))
