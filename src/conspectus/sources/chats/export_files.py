"""Files of chat exports within the limits of archives, and the construction of channels from messages."""

import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from itertools import chain, count
from pathlib import Path
from typing import IO

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile
from conspectus.model.channels import NewMessage
from conspectus.settings import Settings
from conspectus.sources.encoding import Decoded, decode
from conspectus.sources.files.zip_xml import FAULTS
from conspectus.sources.json_values import Notices
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED, UTF8_NAME = 0x1, 0x800
RESOURCES = "__MACOSX"
UNREADABLE = "damaged or unreadable files, skipped"
OTHERS = "other files, skipped"
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
            self._notices.damaged(UNREADABLE, part.name)
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
            self._notices.damaged(UNREADABLE, part.name)
        return decoded and replace(decoded, text=decoded.text.removeprefix("\ufeff"))


@contextmanager
def opened(path: Path, limits: Settings, notices: Notices) -> Iterator[Export]:
    """Open the export at a path for the block. Raises UnreadableFile or TooLarge."""
    try:
        mode = path.stat().st_mode
        with path.open("rb") if stat.S_ISREG(mode) else BytesIO() as stream:
            marked = stream.read(4).startswith(ZIP)
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
        yield Export(path.stem, [ExportFile(path.name, _file_opener(path))], limits, notices)
    else:
        raise UnreadableFile(str(path), "neither a file nor a folder")


def _zip(path: Path, limits: Settings) -> zipfile.ZipFile:
    size = path.stat().st_size
    if size > limits.max_file_bytes:
        raise TooLarge("file", size=size, limit=limits.max_file_bytes)
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
            notices.note("paths outside of the archive, skipped", name)
        elif stat.S_ISLNK(entry.external_attr >> 16):
            notices.note(LINKS, name)
        elif not _clutter(name):
            yield ExportFile(name, partial(_open_entry, archive, entry))


def _open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    if entry.compress_type not in METHODS:
        raise NotImplementedError(entry.compress_type)
    return archive.open(entry)


def _label(entry: zipfile.ZipInfo) -> str:
    """Return the name of an entry. Names in UTF-8 without the flag for it are decoded as UTF-8."""
    name = entry.filename
    if not entry.flag_bits & UTF8_NAME and not name.isascii():
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = entry.filename
    return name.replace("\\", "/").removeprefix("./")


def _clutter(name: str) -> bool:
    folders = name.split("/")
    return folders[0] == RESOURCES or any(part.startswith(".") for part in folders)


def _below(folder: Path, limits: Settings, notices: Notices) -> Iterator[ExportFile]:
    file_count = 0
    waiting = [(folder, "", 0)]
    while waiting:
        folder_path, prefix, depth = waiting.pop()
        if depth > limits.max_folder_depth:
            raise TooLarge("folder", size=depth, limit=limits.max_folder_depth, unit="levels")
        for entry in _entries(folder_path, prefix or folder.name, notices):
            name = f"{prefix}{entry.name}"
            if entry.is_symlink():
                notices.note(LINKS, name)
            elif entry.is_dir():
                waiting.append((Path(entry.path), f"{name}/", depth + 1))
            elif entry.is_file():
                file_count += 1
                yield ExportFile(name, _file_opener(Path(entry.path)))
            else:
                notices.note("pipes, sockets and devices, skipped", name)
        if file_count > limits.max_files:
            raise TooLarge("files", size=file_count, limit=limits.max_files, unit="files")


def _file_opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _entries(folder: Path, name: str, notices: Notices) -> list[os.DirEntry[str]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        notices.damaged("unreadable folders, skipped", name)
        return []
    return [entry for entry in entries if not entry.name.startswith(".")]


BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
MAX_NAME_LENGTH = 200
MAX_KEY_LENGTH = 500
HASHED = 16
MAX_TOPIC_LENGTH = 2_000
MEMBERS_BYTES = 40_000
NO_TEXT = "messages without text, skipped"
NO_TIME = "messages with an invalid time, kept without it"


class ExportUsers:
    """The names of authors by id. Names are unique."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def learn(self, person: str, display_name: str, handle: str = "") -> str:
        """Set the name of a user: the display name, with the handle if that name is taken."""
        if person in self._names:
            return self._names[person]
        plain = as_name(display_name or handle or person)
        candidates = [plain, *(f"{plain} ({as_name(suffix)})" for suffix in (handle, person) if suffix)]
        name = next(
            candidate for candidate in [*candidates, person] if self._owners.get(candidate, person) == person
        )
        self._owners[name] = person
        self._names[person] = name
        return name

    def name(self, person: str) -> str | None:
        """Return the name of a user, if it is known."""
        return self._names.get(person)


class ChannelNames:
    """Assigns unique names to channels."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, *candidates: str) -> str:
        """Return the first free candidate, else the last one with a number appended."""
        names = [as_name(candidate) for candidate in candidates if candidate.strip()] or ["unnamed"]
        numbered = (f"{names[-1]} ({number})" for number in count(2))
        free = next(name for name in chain(names, numbered) if name not in self._taken)
        self._taken.add(free)
        return free


def as_name(text: str) -> str:
    """Return a name on one line that can be stored."""
    return clean(" ".join(text.split()))[:MAX_NAME_LENGTH] or "unnamed"


def as_key(text: str) -> str:
    """Return a key that can be stored. A very long key is truncated and gets a hash."""
    key = clean(text)
    return key if len(key) <= MAX_KEY_LENGTH else f"{key[:MAX_KEY_LENGTH]}~{content_hash(key)[:HASHED]}"


def finished(messages: Iterable[NewMessage], notices: Notices) -> tuple[NewMessage, ...]:
    """Return messages with unique keys, oldest first. Messages without a time keep their predecessor."""
    return in_time(with_own_keys(messages, notices))


def with_own_keys(messages: Iterable[NewMessage], notices: Notices) -> list[NewMessage]:
    """Drop exact duplicates of messages, and rename other messages with a key that is taken."""
    messages_by_key: dict[str, NewMessage] = {}
    numbers: dict[str, int] = {}
    for message in messages:
        key = message.key or ""
        first = messages_by_key.get(key)
        if first is None:
            messages_by_key[key] = message
        elif first == message:
            notices.note("duplicate messages, kept once", key)
        else:
            free_key = _own_key(key, messages_by_key, numbers)
            notices.note("messages with a key that is taken, renumbered", key)
            messages_by_key[free_key] = replace(message, key=free_key)
    return list(messages_by_key.values())


def in_time(messages: Sequence[NewMessage]) -> tuple[NewMessage, ...]:
    """Sort messages, oldest first."""
    moments = []
    latest = BEFORE_ALL
    for message in messages:
        latest = message.at if isinstance(message.at, datetime) else latest
        moments.append(latest)
    order = sorted(range(len(messages)), key=moments.__getitem__)
    return tuple(messages[position] for position in order)


def in_threads(messages: Iterable[NewMessage], threads: set[str]) -> list[NewMessage]:
    """Set the thread of messages that start a thread."""
    return [
        replace(message, thread=message.key) if message.thread is None and message.key in threads else message
        for message in messages
    ]


def member_names(names: Iterable[str], notices: Notices) -> list[str]:
    """Return as many distinct names as fit into the metadata of a channel."""
    room = MEMBERS_BYTES
    members = []
    for name in dict.fromkeys(names):
        room -= len(name.encode("utf-8", "surrogatepass")) + 4
        if room < 0:
            notices.note("channels with more members than can be stored", name)
            break
        members.append(name)
    return members


def described(topic: str, purpose: str) -> dict[str, str]:
    """Return the metadata of a channel."""
    texts = {"topic": topic.strip()[:MAX_TOPIC_LENGTH], "purpose": purpose.strip()[:MAX_TOPIC_LENGTH]}
    return {name: clean(text) for name, text in texts.items() if text}


def _own_key(key: str, used_keys: dict[str, NewMessage], numbers: dict[str, int]) -> str:
    number = numbers.get(key, 1)
    candidate = key
    while candidate in used_keys:
        number += 1
        candidate = f"{key}~{number}"
    numbers[key] = number
    return candidate
