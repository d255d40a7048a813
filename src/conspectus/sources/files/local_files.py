"""Files and folders: which files are added, and their text.

Below a folder that the caller names, these are skipped: hidden files and folders, files ignored by
`.gitignore` and `.git/info/exclude`, data directories of Conspectus, `node_modules`, `__pycache__`, virtual
environments, and links that lead out of the folder. A folder is visited once, however many links lead to it.
Pipes, sockets and devices are never opened. An unreadable folder is returned by `discover` like a file and
fails in `parse`, so that it is reported.
"""

import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile, UnsupportedContent
from conspectus.model.captions import is_recording
from conspectus.ports import FoundFile, ParsedFile
from conspectus.settings import RECORDS, Settings
from conspectus.sources.files import ocr
from conspectus.sources.files.extract import Extract
from conspectus.sources.files.file_kinds import binary_kind, format_named, is_text_named_as_binary
from conspectus.sources.files.html_photos import PHOTO_ADDRESS
from conspectus.sources.files.ignore_rules import IgnoreRules, rules_above, rules_in
from conspectus.sources.files.member_reader import MemberFile, MemberReader
from conspectus.sources.files.parser_children import Children
from conspectus.sources.files.parsers import (
    documents_of_extract,
    is_caption_file,
    is_known,
    media_type_of_text,
    parse_text,
)
from conspectus.sources.plain_text import plain_text, refuse_unsupported

SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "CVS", "_darcs"})
VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
SQLITE = b"SQLite format 3\x00"


class ExportCommands(Protocol):
    """Finds the command that imports an export of chats or memories; None for all other files."""

    def command_for_file(self, data: bytes, name: str) -> str | None:
        """The command for a file."""

    def command_for_folder(self, files: Iterable[FoundFile]) -> str | None:
        """The command for a folder with these files."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The `Files` port for the local file system, within the limits of the settings.

    With `exports`, exports of chats and memories are refused with the command that imports them. Binary
    formats are read in a child process, and so are archives, whose members have each their reader.
    """

    settings: Settings = field(default_factory=Settings)
    exports: ExportCommands | None = None
    _children: Children = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_children", Children(self.settings))

    def discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        """Yield every file below the paths, by name relative to the folder that the caller named.

        If two folders contain the same relative name, the later file is named by its full path. Raises
        UnreadableFile at once for a path that does not exist or is a data directory, and TooLarge over a
        limit.
        """
        for path in paths:
            if not path.exists():
                raise UnreadableFile(str(path), "does not exist")
            if _is_data_directory(path):
                raise UnreadableFile(str(path), "is a data directory; name the folder of the documents")
        return self._discover(paths)

    def parse(self, file: FoundFile) -> ParsedFile:
        """Return the file's documents. Raises UnreadableFile or TooLarge.

        A recording is not opened here: it is transcribed when its stream is made.
        """
        if is_recording(file.name):
            return ParsedFile((), has_captions=True)
        return self._parsed(self._read(file), file.name, path=str(file.path))

    def parse_bytes(self, data: bytes, name: str, *, charset: str | None = None) -> ParsedFile:
        """Return the documents of a file in memory.

        `charset` is the encoding that its sender declares. Raises UnreadableFile or TooLarge.
        """
        self._hold_to_limit(len(data))
        return self._parsed(data, name, path=name, charset=charset)

    def problems(self) -> Sequence[str]:
        """Return why pages of scans cannot be recognized, if the extra is installed."""
        problem = ocr.recognition_problem(self.settings.ocr_languages, self.settings.ocr_data)
        return [problem] if problem and ocr.is_installed() else []

    def _parsed(self, data: bytes, name: str, *, path: str, charset: str | None = None) -> ParsedFile:
        """Return the documents of a file, and those of the files inside it."""
        reader = MemberReader(self.settings, partial(self._parse, path))
        return reader.read(MemberFile(name, path, data), charset=charset)

    def _parse(
        self, outer_path: str, data: bytes, name: str, path: str, charset: str | None
    ) -> tuple[ParsedFile, Extract | None]:
        """Return the documents of a file without those inside it, and what its reader extracted."""
        if is_recording(name):
            return ParsedFile((), has_captions=True), None
        command = None if self.exports is None else self.exports.command_for_file(data, name)
        if command is not None:
            raise _export_error(name, command, path if path == outer_path else "FILE")
        kind = binary_kind(data, name)
        is_misnamed = kind is not None and is_text_named_as_binary(data, kind)
        if kind is None or is_misnamed:
            plain = plain_text(data, name, is_text=is_known(name), charset=charset)
            if is_caption_file(plain.text, name):
                return ParsedFile((), plain.encoding, has_captions=True), None
            kind = media_type_of_text(plain.text, name)
            if kind == "text/html" and PHOTO_ADDRESS in plain.text and ocr.is_installed():
                page = self._children.read("page", plain.text.encode(errors="replace"), name)
                documents, notice = documents_of_extract(page, name=name, path=path)
            else:
                documents, notice = parse_text(plain.text, name=name, path=path, kind=kind)
            notices = [*plain.warnings, *([notice] if notice else [])]
            if is_misnamed:
                notices.append(f"is no {format_named(name)}, in spite of its name; it was read as {kind}")
            return ParsedFile(documents, plain.encoding, "; ".join(notices) or None), None
        extract = self._children.read(kind, data, name)
        documents, notice = documents_of_extract(extract, name=name, path=path)
        return ParsedFile(documents, notice=notice), extract

    def _discover(self, paths: Sequence[Path]) -> Iterator[FoundFile]:
        names: set[str] = set()
        for path in paths:
            walk = _Walk(path.resolve(), self.settings.max_folder_depth)
            alone = FoundFile(path, path.name, _size(path), is_named=True)
            for file in self._files_below(path, walk) if path.is_dir() else [alone]:
                full_path = file.path.absolute().as_posix()
                unique = replace(file, name=full_path) if file.name in names else file
                if unique.name in names:
                    continue
                names.add(unique.name)
                if len(names) > self.settings.max_files:
                    raise TooLarge("files", size=len(names), limit=self.settings.max_files, unit="files")
                yield unique

    def _files_below(self, folder: Path, walk: "_Walk") -> Sequence[FoundFile]:
        """Return the files of a named folder. Raises UnsupportedContent for a folder that is an export."""
        files = list(islice(walk.files(folder, 0), self.settings.max_files + 1))
        command = None if self.exports is None else self.exports.command_for_folder(files)
        if command is not None:
            raise _export_error(str(folder), command, str(folder))
        return files

    def _read(self, file: FoundFile) -> bytes:
        """Return the bytes of a regular file. The size limit is checked before and during reading."""
        try:
            state = file.path.stat()
            if not stat.S_ISREG(state.st_mode):
                return _refuse_special(file, state.st_mode)
            with file.path.open("rb") as stream:
                start = stream.peek()
                if binary_kind(start, file.name) != "picture":
                    refuse_unsupported(file.name, start)
                self._hold_to_limit(state.st_size)
                data = stream.read(self.settings.max_file_bytes + 1)
        except OSError as error:
            raise UnreadableFile(file.name, error.strerror or str(error)) from error
        self._hold_to_limit(len(data))
        return data

    def _hold_to_limit(self, size: int) -> None:
        if size > self.settings.max_file_bytes:
            raise TooLarge("file", size=size, limit=self.settings.max_file_bytes)


@dataclass(frozen=True, slots=True)
class _Walk:
    """One named folder: its real path, and the real paths of the folders visited so far."""

    root: Path
    max_depth: int
    entered: set[Path] = field(default_factory=set)

    def files(
        self, folder: Path, depth: int, prefix: str = "", rules: IgnoreRules | None = None
    ) -> Iterator[FoundFile]:
        if depth > self.max_depth:
            raise TooLarge("folder", size=depth, limit=self.max_depth, unit="levels")
        real = folder.resolve()
        if real in self.entered:
            return
        self.entered.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield FoundFile(folder, prefix.rstrip("/") or folder.name, 0)
            return
        if depth and (
            any(entry.name == VIRTUAL_ENVIRONMENT for entry in entries) or _is_data_directory(real)
        ):
            return
        rules = rules_in(real, rules if depth else rules_above(real))
        for entry in entries:
            if not entry.name.startswith("."):
                yield from self._entry(entry, depth, f"{prefix}{entry.name}", rules)

    def _entry(
        self, entry: os.DirEntry[str], depth: int, name: str, rules: IgnoreRules | None
    ) -> Iterator[FoundFile]:
        path = Path(entry.path)
        linked, is_folder = entry.is_symlink(), path.is_dir()
        if linked and not self._inside(path):
            return
        if rules is not None and rules.ignore(path.parent.resolve() / entry.name, is_folder=is_folder):
            return
        if is_folder:
            if entry.name not in SKIPPED_FOLDERS:
                yield from self.files(path, depth + 1, f"{name}/", rules)
        elif linked or entry.is_file():
            yield FoundFile(path, name, _size(path))

    def _inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return True


def _export_error(name: str, command: str, path: str) -> UnsupportedContent:
    return UnsupportedContent(name, f"is an export; import it with: {command} {shlex.quote(path)}")


def _is_data_directory(folder: Path) -> bool:
    """Return whether a folder is a data directory of Conspectus, whatever its name."""
    try:
        with (folder / RECORDS).open("rb") as stream:
            return stream.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _refuse_special(file: FoundFile, mode: int) -> bytes:
    kinds = (
        (stat.S_ISDIR, "a folder that cannot be listed"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    what = next((what for test, what in kinds if test(mode)), "a device")
    raise UnreadableFile(file.name, f"{what}, not a file")
