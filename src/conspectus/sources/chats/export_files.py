"""Files of chat exports, in a folder or a ZIP archive, within the limits of archives."""

import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile
from conspectus.settings import Settings
from conspectus.sources.encoding import Decoded, decode
from conspectus.sources.files.zip_xml import FAULTS
from conspectus.sources.notices import Notices
from conspectus.text.zips import ENCRYPTED, is_clutter, leads_out, name_of

ZIP_SIGNATURES = (b"PK\x03\x04", b"PK\x05\x06")
COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
UNREADABLE_FILES = "damaged or unreadable files, skipped"
OTHER_FILES = "other files, skipped"
LINKS = "links, skipped"


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file by its name in the export, with slashes between folders."""

    name: str
    open: Callable[[], IO[bytes]]

    @property
    def folder(self) -> str:
        """The name of the folder; empty at the top level."""
        return self.name.rpartition("/")[0]

    @property
    def base(self) -> str:
        """The name without folders."""
        return self.name.rpartition("/")[2]


class Export:
    """The files of an export by name. Reading stops at the limit of total bytes."""

    def __init__(self, name: str, parts: Sequence[ExportFile], limits: Settings, notices: Notices) -> None:
        if len(parts) > limits.max_files:
            raise TooLarge("files", size=len(parts), limit=limits.max_files, unit="files")
        self.name = name
        self.parts = tuple(sorted(parts, key=lambda part: part.name))
        self._limits = limits
        self._notices = notices
        self._read = 0

    def peek(self, part: ExportFile, size: int) -> bytes:
        """Return the first bytes of a file; empty if it cannot be read."""
        try:
            with part.open() as stream:
                return stream.read(size)
        except FAULTS:
            return b""

    def read(self, part: ExportFile) -> bytes | None:
        """Return the bytes of a file; None, with a notice, if it cannot be read. Raises TooLarge."""
        limits = self._limits
        maximum = min(limits.max_file_bytes, limits.max_unpacked_bytes - self._read)
        try:
            with part.open() as stream:
                data = stream.read(maximum + 1)
        except FAULTS:
            self._notices.count_damage(UNREADABLE_FILES, part.name)
            return None
        if len(data) > limits.max_file_bytes:
            raise TooLarge(part.name, size=len(data), limit=limits.max_file_bytes)
        self._read += len(data)
        if self._read > limits.max_unpacked_bytes:
            raise TooLarge("unpacked export", size=self._read, limit=limits.max_unpacked_bytes)
        return data

    def text(self, part: ExportFile) -> Decoded | None:
        """Return the text of a file; None, with a notice, if it cannot be read. Raises TooLarge."""
        data = self.read(part)
        decoded = None if data is None else decode(data)
        if data is not None and decoded is None:
            self._notices.count_damage(UNREADABLE_FILES, part.name)
        return decoded and replace(decoded, text=decoded.text.removeprefix("\ufeff"))


@contextmanager
def open_export(path: Path, limits: Settings, notices: Notices) -> Iterator[Export]:
    """Open the export at a path for the block. Raises UnreadableFile or TooLarge."""
    try:
        mode = path.stat().st_mode
        with path.open("rb") if stat.S_ISREG(mode) else BytesIO() as stream:
            is_zip = stream.read(4).startswith(ZIP_SIGNATURES)
    except FileNotFoundError:
        raise UnreadableFile(str(path), "does not exist") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(str(path), str(error)) from error
    if stat.S_ISDIR(mode):
        name = path.resolve().name
        yield Export(name, list(_folder_files(path, limits, notices)), limits, notices)
    elif is_zip:
        with _open_zip(path, limits) as archive:
            yield Export(path.stem, list(list_archive(path, archive, notices)), limits, notices)
    elif stat.S_ISREG(mode):
        yield Export(path.stem, [ExportFile(path.name, file_opener(path))], limits, notices)
    else:
        raise UnreadableFile(str(path), "neither a file nor a folder")


def _open_zip(path: Path, limits: Settings) -> zipfile.ZipFile:
    size = path.stat().st_size
    if size > limits.max_file_bytes:
        raise TooLarge("file", size=size, limit=limits.max_file_bytes)
    try:
        return zipfile.ZipFile(path)
    except FAULTS as error:
        raise UnreadableFile(str(path), f"a damaged ZIP archive: {error}") from None


def list_archive(path: Path, archive: zipfile.ZipFile, notices: Notices) -> Iterator[ExportFile]:
    """Yield the files of an archive, except links, hidden files and paths that lead out of it."""
    for entry in archive.infolist():
        name = name_of(entry)
        if name.endswith("/"):
            continue
        if entry.flag_bits & ENCRYPTED:
            raise UnreadableFile(str(path), "is encrypted with a password")
        if leads_out(name):
            notices.note("paths outside of the archive, skipped", name)
        elif stat.S_ISLNK(entry.external_attr >> 16):
            notices.note(LINKS, name)
        elif not is_clutter(name):
            yield ExportFile(name, partial(_open_entry, archive, entry))


def _open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    if entry.compress_type not in COMPRESSION_METHODS:
        raise NotImplementedError(entry.compress_type)
    return archive.open(entry)


def _folder_files(folder: Path, limits: Settings, notices: Notices) -> Iterator[ExportFile]:
    """Yield the files below a folder, except links and hidden ones. Raises TooLarge."""
    file_count = 0
    waiting = [(folder, "", 0)]
    while waiting:
        folder_path, prefix, depth = waiting.pop()
        if depth > limits.max_folder_depth:
            raise TooLarge("folder", size=depth, limit=limits.max_folder_depth, unit="levels")
        for entry in _visible_entries(folder_path, prefix or folder.name, notices):
            name = f"{prefix}{entry.name}"
            if entry.is_symlink():
                notices.note(LINKS, name)
            elif entry.is_dir():
                waiting.append((Path(entry.path), f"{name}/", depth + 1))
            elif entry.is_file():
                file_count += 1
                yield ExportFile(name, file_opener(Path(entry.path)))
            else:
                notices.note("pipes, sockets and devices, skipped", name)
        if file_count > limits.max_files:
            raise TooLarge("files", size=file_count, limit=limits.max_files, unit="files")


def file_opener(path: Path) -> Callable[[], IO[bytes]]:
    """Return the function that opens a file."""
    return lambda: path.open("rb")


def _visible_entries(folder: Path, name: str, notices: Notices) -> list[os.DirEntry[str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        notices.count_damage("unreadable folders, skipped", name)
        return []
    return [entry for entry in entries if not entry.name.startswith(".")]
