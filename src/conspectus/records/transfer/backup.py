"""Archives of a data directory, with a manifest of their files."""

import hashlib
import json
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, UnreadableFile
from conspectus.private import open_for_writing
from conspectus.settings import RECORDS
from conspectus.text.zips import DAMAGED

MANIFEST = "manifest.json"
FORMAT = 1
BLOCK_BYTES = 1 << 20
MAX_MANIFEST_BYTES = 1 << 24
COMPRESSION_LEVEL = 3
_ENCRYPTED = 1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_NAME = re.compile(r"records\.sqlite|secrets/[\w-]{1,200}|uploads/[\w-]{1,200}/\d{1,9}", re.ASCII)
_OUTSIDE = "is not a backup of Conspectus"


@dataclass(frozen=True, slots=True)
class Member:
    """The size and checksum of a file in a backup."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class TableSum:
    """The number of rows and the checksum of a table in a backup."""

    rows: int
    hash: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a backup; `version` is that of the records, `moment` the time of the snapshot."""

    program: str
    version: str
    moment: str
    tables: Mapping[str, TableSum]
    members: Mapping[str, Member]

    @property
    def size(self) -> int:
        """The bytes of all members."""
        return sum(member.bytes for member in self.members.values())


def member_of(path: Path) -> Member:
    """Return the size and checksum of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return Member(size, digest.hexdigest())


def write_archive(path: Path, members: Mapping[str, Path], manifest: Manifest) -> None:
    """Write a new archive durably, readable by the current account only."""
    packed = zipfile.ZIP_DEFLATED
    with (
        open_for_writing(path) as file,
        zipfile.ZipFile(file, "w", packed, compresslevel=COMPRESSION_LEVEL) as archive,
    ):
        for name, member in members.items():
            archive.write(member, name)
        archive.writestr(MANIFEST, json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1))


@contextmanager
def open_archive(path: Path, *, max_bytes: int) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open an archive, and check that names, types and sizes match its manifest.

    Raises UnreadableFile, or TooLarge for more than `max_bytes` unpacked.
    """
    with _readable(path), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            _require_plain(member, path)
        manifest = _manifest(archive, path)
        _require_listed(archive, manifest, path)
        if manifest.size > max_bytes:
            raise TooLarge("backup", size=manifest.size, limit=max_bytes)
        yield archive, manifest


def unpack(archive: zipfile.ZipFile, manifest: Manifest, name: str, target: IO[bytes]) -> None:
    """Unpack a member, up to its size in the manifest. Raises UnreadableFile."""
    expected, digest, size = manifest.members[name], hashlib.sha256(), 0
    with archive.open(name) as member:
        while block := member.read(BLOCK_BYTES):
            size += len(block)
            if size > expected.bytes:
                break
            digest.update(block)
            target.write(block)
    if (size, digest.hexdigest()) != (expected.bytes, expected.sha256):
        raise UnreadableFile(str(archive.filename), f"{name} does not match its checksum")


def _manifest(archive: zipfile.ZipFile, path: Path) -> Manifest:
    try:
        listed = archive.getinfo(MANIFEST)
    except KeyError:
        raise UnreadableFile(str(path), _OUTSIDE) from None
    with archive.open(listed) as file:
        written = file.read(MAX_MANIFEST_BYTES + 1)
    if len(written) > MAX_MANIFEST_BYTES:
        raise UnreadableFile(str(path), "its manifest is too large")
    try:
        return _read_manifest(json.loads(written))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as fault:
        raise UnreadableFile(str(path), f"{_OUTSIDE} that this program can read") from fault


def _read_manifest(content: Any) -> Manifest:
    if content["format"] != FORMAT:
        raise ValueError("another format")
    tables = {
        str(name): TableSum(int(table["rows"]), str(table["hash"]))
        for name, table in content["tables"].items()
    }
    members = {
        str(name): Member(int(member["bytes"]), str(member["sha256"]))
        for name, member in content["members"].items()
    }
    if RECORDS not in members or any(member.bytes < 0 for member in members.values()):
        raise ValueError("no records")
    moment = datetime.fromisoformat(content["moment"]).isoformat()
    return Manifest(str(content["program"]), str(content["version"]), moment, tables, members)


def _require_plain(listed: zipfile.ZipInfo, path: Path) -> None:
    """Raise UnreadableFile for a member that is not a plain file, or has an unknown compression."""
    mode = stat.S_IFMT(listed.external_attr >> 16)
    if mode not in (0, stat.S_IFREG) or listed.is_dir() or listed.flag_bits & _ENCRYPTED:
        raise UnreadableFile(str(path), f"{listed.filename!r} is not a plain file")
    if listed.compress_type not in _METHODS:
        raise UnreadableFile(str(path), f"{listed.filename!r} has a compression that no backup has")


def _require_listed(archive: zipfile.ZipFile, manifest: Manifest, path: Path) -> None:
    """Raise UnreadableFile for members that differ from the manifest or do not belong to a store."""
    names = [member.filename for member in archive.infolist()]
    if sorted(names) != sorted([*manifest.members, MANIFEST]):
        raise UnreadableFile(str(path), "its files do not match its manifest")
    for name, expected in manifest.members.items():
        if not _NAME.fullmatch(name):
            raise UnreadableFile(str(path), f"{name!r} does not belong to a store")
        if archive.getinfo(name).file_size != expected.bytes:
            raise UnreadableFile(str(path), f"{name!r} has another size than its manifest says")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGED as fault:
        raise UnreadableFile(str(path), f"is damaged or not a backup: {fault}") from fault
    except FileNotFoundError as fault:
        raise UnreadableFile(str(path), "does not exist") from fault
