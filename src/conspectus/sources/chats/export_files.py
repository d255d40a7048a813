"""The files of an export: those in a zip file, those below a folder, or the one that was named.

Names in a zip file are labels, never paths. Hidden files and what macOS adds to zip files are no part of an
export; links are not followed.
"""

import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from conspectus.errors import TooLarge, UnreadableFile
from conspectus.sources.files.zip_xml import FAULTS
from conspectus.sources.import_notices import Notices

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED, UTF8_NAME = 0x1, 0x800
RESOURCES = "__MACOSX"
UNREADABLE = "files that are damaged or cannot be read, left out"
OTHERS = "other files, not read"
LINKS = "links, not followed"


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Bytes of one file and of all together, their number, and the depth of folders."""

    file_bytes: int
    unpacked_bytes: int
    files: int
    depth: int


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file by its name in the export, with slashes between folders."""

    name: str
    open: Callable[[], IO[bytes]]

    @property
    def folder(self) -> str:
        """The name of its folder; empty at the top."""
        return self.name.rpartition("/")[0]

    @property
    def base(self) -> str:
        """Its name without folders."""
        return self.name.rpartition("/")[2]


class Export:
    """The parts of an export by name, together read to no more than the limits allow."""

    def __init__(
        self, name: str, parts: Sequence[ExportFile], limits: ArchiveLimits, notices: Notices
    ) -> None:
        if len(parts) > limits.files:
            raise TooLarge("files", size=len(parts), limit=limits.files, unit="files")
        self.name = name
        self.parts = tuple(sorted(parts, key=lambda part: part.name))
        self._limits = limits
        self._notices = notices
        self._read = 0

    def peek(self, part: ExportFile, size: int) -> bytes:
        """The first bytes of a part; none if it cannot be read."""
        try:
            with part.open() as stream:
                return stream.read(size)
        except FAULTS:
            return b""

    def read(self, part: ExportFile) -> bytes | None:
        """A part; None with a notice that names it where it cannot be read. Raises TooLarge."""
        limits = self._limits
        most = min(limits.file_bytes, limits.unpacked_bytes - self._read)
        try:
            with part.open() as stream:
                data = stream.read(most + 1)
        except FAULTS:
            self._notices.damaged(UNREADABLE, part.name)
            return None
        if len(data) > limits.file_bytes:
            raise TooLarge(part.name, size=len(data), limit=limits.file_bytes)
        self._read += len(data)
        if self._read > limits.unpacked_bytes:
            raise TooLarge("unpacked export", size=self._read, limit=limits.unpacked_bytes)
        return data


@contextmanager
def opened(path: Path, limits: ArchiveLimits, notices: Notices) -> Iterator[Export]:
    """The export at a path until the end of the block. Raises UnreadableFile or TooLarge."""
    try:
        mode = path.stat().st_mode
        marked = stat.S_ISREG(mode) and _head(path).startswith(ZIP)
    except FileNotFoundError:
        raise UnreadableFile(str(path), "does not exist") from None
    except (OSError, ValueError) as error:
        raise UnreadableFile(str(path), str(error)) from error
    if stat.S_ISDIR(mode):
        name = path.resolve().name
        yield Export(name, list(_below(path, limits, notices)), limits, notices)
    elif marked:
        with _zip(path, limits) as archive:
            yield Export(path.stem, list(_packed(path, archive, notices)), limits, notices)
    elif stat.S_ISREG(mode):
        yield Export(path.stem, [ExportFile(path.name, lambda: path.open("rb"))], limits, notices)
    else:
        raise UnreadableFile(str(path), "neither a file nor a folder")


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(4)


def _zip(path: Path, limits: ArchiveLimits) -> zipfile.ZipFile:
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise TooLarge("file", size=size, limit=limits.file_bytes)
    try:
        return zipfile.ZipFile(path)
    except FAULTS as error:
        raise UnreadableFile(str(path), f"a damaged ZIP archive: {error}") from None


def _packed(path: Path, archive: zipfile.ZipFile, notices: Notices) -> Iterator[ExportFile]:
    for entry in archive.infolist():
        name = _label(entry)
        if name.endswith("/"):
            continue
        if entry.flag_bits & ENCRYPTED:
            raise UnreadableFile(str(path), "is encrypted with a password")
        if name.startswith("/") or ".." in name.split("/"):
            notices.note("names that lead out of the archive, left out", name)
        elif stat.S_ISLNK(entry.external_attr >> 16):
            notices.note(LINKS, name)
        elif not _clutter(name):
            yield ExportFile(name, _opener(archive, entry))


def _opener(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    def open_entry() -> IO[bytes]:
        if entry.compress_type not in METHODS:
            raise NotImplementedError(entry.compress_type)
        return archive.open(entry)

    return open_entry


def _label(entry: zipfile.ZipInfo) -> str:
    """The name of an entry; where it was written in UTF-8 without saying so, it is read as that."""
    name = entry.filename
    if not entry.flag_bits & UTF8_NAME and not name.isascii():
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = entry.filename
    return name.replace("\\", "/").removeprefix("./")


def _clutter(name: str) -> bool:
    folders = name.split("/")
    return folders[0] == RESOURCES or any(each.startswith(".") for each in folders)


def _below(folder: Path, limits: ArchiveLimits, notices: Notices) -> Iterator[ExportFile]:
    found = 0
    waiting = [(folder, "", 0)]
    while waiting:
        place, prefix, depth = waiting.pop()
        if depth > limits.depth:
            raise TooLarge("folder", size=depth, limit=limits.depth, unit="levels")
        for entry in _entries(place, prefix or folder.name, notices):
            name = f"{prefix}{entry.name}"
            if entry.is_symlink():
                notices.note(LINKS, name)
            elif entry.is_dir():
                waiting.append((Path(entry.path), f"{name}/", depth + 1))
            elif entry.is_file():
                found += 1
                yield ExportFile(name, _file_opener(Path(entry.path)))
            else:
                notices.note("pipes, sockets and devices, left out", name)
        if found > limits.files:
            raise TooLarge("files", size=found, limit=limits.files, unit="files")


def _entries(folder: Path, name: str, notices: Notices) -> list[os.DirEntry[str]]:
    try:
        return [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError:
        notices.damaged("folders that cannot be listed, left out", name)
        return []


def _file_opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")
