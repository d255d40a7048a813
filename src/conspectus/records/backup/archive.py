"""The one file of a backup: an archive of named members, and a list of what each of them must be."""

import hashlib
import json
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from conspectus.errors import TooLarge, UnreadableFile
from conspectus.settings import RECORDS
from conspectus.text.zips import DAMAGED

MANIFEST = "manifest.json"
FORMAT = 1
BLOCK = 1 << 20
MANIFEST_BYTES = 1 << 24
LEVEL = 3
_ENCRYPTED = 1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_NAME = re.compile(r"records\.sqlite|secrets/[\w-]{1,200}|uploads/[\w-]{1,200}/\d{1,9}", re.ASCII)
_OUTSIDE = "is no backup of conspectus"


@dataclass(frozen=True, slots=True)
class Member:
    """What a file in a backup must be."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableSum:
    """What a table in a backup must be."""

    rows: int
    hash: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that is in a backup; `version` is that of the records, `moment` when they were so."""

    program: str
    version: str
    moment: str
    tables: Mapping[str, TableSum]
    members: Mapping[str, Member]

    @property
    def size(self) -> int:
        """The bytes of all members."""
        return sum(each.bytes for each in self.members.values())


def member_of(path: Path) -> Member:
    """What a file is."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
    return Member(size, digest.hexdigest())


def write_archive(path: Path, members: Mapping[str, Path], manifest: Manifest) -> None:
    """Write a new archive down to the disk, readable by this account alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            for name, member in members.items():
                archive.write(member, name)
            archive.writestr(MANIFEST, json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def opened(path: Path, *, most_bytes: int) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """An archive of which no name, kind or size is other than its manifest says.

    Raises UnreadableFile, or TooLarge for more than `most_bytes` unpacked.
    """
    with _readable(path), zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            _require_plain(each, path)
        manifest = _manifest(archive, path)
        _require_listed(archive, manifest, path)
        if manifest.size > most_bytes:
            raise TooLarge("backup", size=manifest.size, limit=most_bytes)
        yield archive, manifest


def unpack(archive: zipfile.ZipFile, manifest: Manifest, name: str, target: IO[bytes]) -> None:
    """Write a member out, and never more than it must have. Raises UnreadableFile."""
    expected, digest, size = manifest.members[name], hashlib.sha256(), 0
    with archive.open(name) as member:
        while block := member.read(BLOCK):
            size += len(block)
            if size > expected.bytes:
                break
            digest.update(block)
            target.write(block)
    if (size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise UnreadableFile(str(archive.filename), f"{name} is not what was backed up")


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        listed = archive.getinfo(MANIFEST)
    except KeyError:
        raise UnreadableFile(str(path), _OUTSIDE) from None
    with archive.open(listed) as file:
        written = file.read(MANIFEST_BYTES + 1)
    if len(written) > MANIFEST_BYTES:
        raise UnreadableFile(str(path), "its manifest is too large")
    try:
        return _read_manifest(json.loads(written))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as fault:
        raise UnreadableFile(str(path), f"{_OUTSIDE} that this program can read") from fault


def _read_manifest(given: Any) -> Manifest:
    if given["format"] != FORMAT:
        raise ValueError("another format")
    tables = {
        str(name): TableSum(int(each["rows"]), str(each["hash"])) for name, each in given["tables"].items()
    }
    members = {
        str(name): Member(int(each["bytes"]), str(each["sha256"])) for name, each in given["members"].items()
    }
    if RECORDS not in members or any(each.bytes < 0 for each in members.values()):
        raise ValueError("no records")
    moment = datetime.fromisoformat(given["moment"]).isoformat()
    return Manifest(str(given["program"]), str(given["version"]), moment, tables, members)


def _require_plain(listed: zipfile.ZipInfo, path: Path) -> None:
    """Raise UnreadableFile for what is no plain file, or is packed as no backup is."""
    mode = stat.S_IFMT(listed.external_attr >> 16)
    if mode not in (0, stat.S_IFREG) or listed.is_dir() or listed.flag_bits & _ENCRYPTED:
        raise UnreadableFile(str(path), f"{listed.filename!r} is no plain file")
    if listed.compress_type not in _METHODS:
        raise UnreadableFile(str(path), f"{listed.filename!r} is packed as no backup is")


def _require_listed(archive: zipfile.ZipFile, manifest: Manifest, path: Path) -> None:
    """Raise UnreadableFile for members that the manifest does not have so, or that have no place there."""
    names = [each.filename for each in archive.infolist()]
    if sorted(names) != sorted([*manifest.members, MANIFEST]):
        raise UnreadableFile(str(path), "its files are not those of its manifest")
    for name, expected in manifest.members.items():
        if not _NAME.fullmatch(name):
            raise UnreadableFile(str(path), f"{name!r} has no place in a store")
        if archive.getinfo(name).file_size != expected.bytes:
            raise UnreadableFile(str(path), f"{name!r} has another size than its manifest says")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGED as fault:
        raise UnreadableFile(str(path), f"is damaged or no backup: {fault}") from fault
    except FileNotFoundError as fault:
        raise UnreadableFile(str(path), "is not there") from fault
